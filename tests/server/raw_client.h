#pragma once
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice::test {

/// One answer, with the chunks of its body put together. `complete` is false if the connection ended before that.
struct Answer {
  int status = 0;
  std::string head, body;  // the head in lower case
  bool complete = false;
  bool has(std::string_view line) const { return head.find(line) != std::string::npos; }
};

/// A client that sends any bytes at all. Everything it waits for has a limit.
class RawClient {
 public:
  static constexpr std::chrono::milliseconds patience{10'000};

  /// receive_buffer: bytes that the kernel holds for a client that does not read; 0: as usual.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const int yes = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { leave(); }
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        received_(std::move(other.received_)) {}
  RawClient& operator=(RawClient&&) = delete;

  bool connected() const { return connected_; }
  int descriptor() const { return socket_; }

  /// False if the server no longer takes bytes.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void finish_sending() const { ::shutdown(socket_, SHUT_WR); }
  void leave() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  /// Closes with a reset, as a program does that crashes.
  void vanish() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    leave();
  }

  /// Reads until `end` has come; returns all up to and including it, or what came before the connection ended.
  std::string read_until(std::string_view end) {
    std::size_t at = 0;
    while ((at = received_.find(end)) == std::string::npos) {
      if (!receive()) return std::exchange(received_, {});
    }
    return take(at + end.size());
  }
  std::string read_bytes(std::size_t count) {
    while (received_.size() < count && receive()) {
    }
    return take(std::min(count, received_.size()));
  }
  std::string read_to_end() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }
  /// The server has ended the connection; nothing comes before that.
  bool ended() { return read_to_end().empty() && ended_; }

  Answer read_answer(bool has_body = true) {
    Answer answer;
    answer.head = read_until("\r\n\r\n");
    for (char& c : answer.head) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!answer.head.ends_with("\r\n\r\n") || answer.head.size() < 12) return answer;
    answer.status = std::atoi(answer.head.c_str() + 9);
    if (!has_body || answer.status == 204 || answer.status == 304 || answer.status < 200) {
      answer.complete = true;
    } else if (answer.has("transfer-encoding: chunked")) {
      read_chunks(answer);
    } else if (const std::size_t at = answer.head.find("content-length: "); at != std::string::npos) {
      const auto length = static_cast<std::size_t>(std::atoll(answer.head.c_str() + at + 16));
      answer.body = read_bytes(length);
      answer.complete = answer.body.size() == length;
    } else {
      answer.body = read_to_end();
      answer.complete = ended_;
    }
    return answer;
  }

  Answer ask(std::string_view request) {
    send(request);
    return read_answer(!request.starts_with("HEAD"));
  }

 private:
  void read_chunks(Answer& answer) {
    for (;;) {
      const std::string size = read_until("\r\n");
      if (!size.ends_with("\r\n")) return;
      const std::size_t length = std::strtoull(size.c_str(), nullptr, 16);
      const std::string chunk = read_bytes(length + 2);
      answer.body += chunk.substr(0, length);
      if (chunk.size() < length + 2) return;
      answer.complete = length == 0;
      if (answer.complete) return;
    }
  }
  bool receive() {
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) return false;
    char buffer[16 << 10];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    ended_ = count <= 0;
    if (count <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }
  std::string take(std::size_t count) {
    std::string taken = received_.substr(0, count);
    received_.erase(0, count);
    return taken;
  }

  int socket_;
  bool connected_ = false, ended_ = false;
  std::string received_;
};

/// "METHOD PATH HTTP/1.1" with a Host and the other headers, each with its line end.
inline std::string request_text(std::string_view method, std::string_view path, std::string_view headers = "",
                                std::string_view body = "") {
  std::string text = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n";
  text += headers;
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + std::string(body);
}

/// Waits, within limits, for something that another thread brings about.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = RawClient::patience) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(2000);
  }
  return true;
}

}  // namespace sluice::test
