#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/json.h"
#include "server/echo_server.h"

namespace sluice {

using test::Answer;
using test::EchoServer;
using test::eventually;
using test::RawClient;
using test::request_text;
using namespace std::chrono_literals;

namespace {

/// The answer is this error in OpenAI's shape, and the connection ends after it.
void expect_refused(RawClient& client, int status) {
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, status) << answer.body;
  EXPECT_TRUE(answer.has("\r\nconnection: close\r\n"));
  const Json error = Json::parse(answer.body, nullptr, false);
  ASSERT_TRUE(error.contains("error")) << answer.body;
  EXPECT_EQ(error["error"]["type"], status >= 500 ? "server_error" : "invalid_request_error");
  EXPECT_TRUE(error["error"]["message"].is_string());
  EXPECT_TRUE(error["error"]["param"].is_null() && error["error"]["code"].is_null());
  EXPECT_TRUE(client.ended());
}

struct BadRequest {
  const char* what;
  std::string bytes;
  int status;
};

std::string with_header(std::string_view header) { return request_text("POST", "/echo", header); }

HttpOptions short_times() {
  HttpOptions options;
  options.header_timeout = options.body_timeout = options.idle_timeout = options.write_timeout = 150ms;
  return options;
}

/// Bytes of virtual memory of this process.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Sends one byte of `bytes` every few milliseconds until the server ends the connection; false if it never does.
bool dribble(RawClient& client, std::string_view bytes) {
  for (std::size_t i = 0; i < 1000; ++i) {
    pollfd waiting{.fd = client.descriptor(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 0) > 0 || !client.send(bytes.substr(i % bytes.size(), 1))) return true;
    usleep(5000);
  }
  return false;
}

}  // namespace

TEST(HttpLimits, GarbageIsRefusedWithAnErrorAndClosed) {
  using namespace std::string_literals;
  const std::vector<BadRequest> rows = {
      {"no request line", "\x16\x03\x01\x02garbage\r\n\r\n", 400},
      {"no target", "GET\r\nHost: a\r\n\r\n", 400},
      {"a lower version in words", "GET / HTTP/one\r\nHost: a\r\n\r\n", 400},
      {"another version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"bare line feeds", "GET / HTTP/1.1\nHost: a\n\n", 400},
      {"a NUL in a header", with_header("X: a\0b\r\n"s), 400},
      {"a NUL in the target", "GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n"s, 400},
      {"an escaped NUL in the path", request_text("GET", "/a%00b"), 400},
      {"a broken escape", request_text("GET", "/a%2"), 400},
      {"a control character in a header", with_header("X: a\x01\r\n"), 400},
      {"a bare carriage return in a header", with_header("X: a\rb\r\n"), 400},
      {"a space before the colon", with_header("X : a\r\n"), 400},
      {"a header without a name", with_header(": a\r\n"), 400},
      {"a header without a colon", with_header("abc\r\n"), 400},
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", with_header("Host: b\r\n"), 400},
      {"two lengths", with_header("Content-Length: 1\r\nContent-Length: 2\r\n") + "ab", 400},
      {"the same length twice", with_header("Content-Length: 1\r\nContent-Length: 1\r\n") + "a", 400},
      {"a list of lengths", with_header("Content-Length: 1, 1\r\n") + "a", 400},
      {"a negative length", with_header("Content-Length: -1\r\n"), 400},
      {"a length with a plus", with_header("Content-Length: +1\r\n") + "a", 400},
      {"a length in hexadecimal", with_header("Content-Length: 0x1\r\n") + "a", 400},
      {"a length beyond all numbers", with_header("Content-Length: 99999999999999999999999\r\n"), 400},
      {"length, then encoding", with_header("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
      {"encoding, then length", with_header("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n", 400},
      {"another encoding and a length", with_header("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n") + "hello", 400},
      {"another encoding", with_header("Transfer-Encoding: gzip\r\n"), 501},
      {"another encoding before chunked", with_header("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n", 501},
      {"an encoding that hides", with_header("Transfer-Encoding: xchunked\r\n") + "0\r\n\r\n", 501},
      {"encodings in two headers", with_header("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 501},
      {"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"a chunk that is no number", with_header("Transfer-Encoding: chunked\r\n") + "zz\r\n\r\n", 400},
      {"a chunk that does not end", with_header("Transfer-Encoding: chunked\r\n") + "1\r\nabc\r\n0\r\n\r\n", 400},
      {"a chunk beyond all numbers", with_header("Transfer-Encoding: chunked\r\n") + "fffffffffffffffff\r\n", 400},
      {"a length in the trailers", with_header("Transfer-Encoding: chunked\r\n") + "0\r\nContent-Length: 1\r\n\r\n",
       400},
      {"another expectation", with_header("Expect: cookies\r\n"), 417},
      {"a target that is no path", request_text("GET", "echo"), 400},
  };
  EchoServer server;
  for (const BadRequest& row : rows) {
    SCOPED_TRACE(row.what);
    RawClient client = server.client();
    client.send(row.bytes);
    expect_refused(client, row.status);
  }
  EXPECT_EQ(server->stats().requests, 0u);
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
}

TEST(HttpLimits, ABodyThatIsAnnouncedTooLongIsA413BeforeItIsSent) {
  HttpOptions options;
  options.max_body_bytes = 1000;
  EchoServer server(options);
  RawClient client = server.client();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
  expect_refused(client, 413);
}

TEST(HttpLimits, ChunksThatGrowTooLongAreA413EvenIfTheClientGoesOnSending) {
  HttpOptions options;
  options.max_body_bytes = 1000;
  EchoServer server(options);
  RawClient client = server.client();
  client.send(request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n"));
  const std::string chunk = "100\r\n" + std::string(256, 'x') + "\r\n";
  for (int i = 0; i < 400; ++i) client.send(chunk);
  expect_refused(client, 413);
}

TEST(HttpLimits, ABodyAsLongAsTheLimitIsTaken) {
  HttpOptions options;
  options.max_body_bytes = 1000;
  EchoServer server(options);
  EXPECT_EQ(server.client().ask(request_text("POST", "/echo", "", std::string(1000, 'x'))).status, 200);
}

TEST(HttpLimits, HeadersThatAreTooLongAreA431) {
  EchoServer server;
  RawClient client = server.client();
  client.send(request_text("GET", "/echo", "X: " + std::string(70'000, 'x') + "\r\n"));
  expect_refused(client, 431);
}

TEST(HttpLimits, TenThousandHeadersAreA431HoweverTheyCome) {
  EchoServer server;
  std::string headers;
  for (int i = 0; i < 10'000; ++i) headers += fmt::format("X{}: y\r\n", i);
  RawClient at_once = server.client();
  at_once.send(request_text("GET", "/echo", headers));
  expect_refused(at_once, 431);

  RawClient one_by_one = server.client();
  one_by_one.send("GET /echo HTTP/1.1\r\n");
  for (int i = 0; i < 10'000 && one_by_one.send(fmt::format("X{}: y\r\n", i)); ++i) {
  }
  expect_refused(one_by_one, 431);
}

TEST(HttpLimits, LongHeadersInManyPiecesAreA431) {
  HttpOptions options;
  options.max_header_bytes = 2000;
  EchoServer server(options);
  RawClient client = server.client();
  client.send("GET /echo HTTP/1.1\r\nHost: a\r\n");
  for (int i = 0; i < 50; ++i) {
    usleep(1000);
    client.send("X: " + std::string(50, 'x') + "\r\n");
  }
  expect_refused(client, 431);
}

TEST(HttpLimits, TheLimitHoldsForAllHeadersTogether) {
  HttpOptions options;
  options.max_header_bytes = 2000;
  EchoServer server(options);
  RawClient client = server.client();
  const std::string line = "X: " + std::string(95, 'x') + "\r\n";
  std::string lines;
  for (int i = 0; i < 14; ++i) lines += line;
  client.send("GET /echo HTTP/1.1\r\nHost: a\r\n" + lines);
  usleep(50'000);
  client.send(lines + "\r\n");
  expect_refused(client, 431);
}

TEST(HttpLimits, EndlessTrailersAreRefused) {
  EchoServer server;
  RawClient client = server.client();
  client.send(request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") + "0\r\n");
  const std::string trailer = "X: " + std::string(1000, 'x') + "\r\n";
  for (int i = 0; i < 200 && client.send(trailer); ++i) {
  }
  expect_refused(client, 400);
}

TEST(HttpLimits, ABodyTakesMemoryAsItComesNotAsItIsAnnounced) {
  EchoServer server;
  const std::size_t before = address_space();
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(server.client());
    clients.back().send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n\r\nabc");
  }
  EXPECT_EQ(server.client().ask(request_text("POST", "/echo", "", std::string(100'000, 'x'))).status, 200);
  EXPECT_LT(address_space(), before + 600'000'000u) << "announced are 1.2 GB";
}

TEST(HttpLimits, MoreBytesOfBodiesThanAllMayHoldAreA503) {
  HttpOptions options;
  options.max_bodies_bytes = 100'000;
  EchoServer server(options);
  RawClient first = server.client(), second = server.client();
  first.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n" + std::string(80'000, 'x'));
  ASSERT_TRUE(eventually([&] { return server->stats().connections == 2; }));
  usleep(50'000);
  second.send(request_text("POST", "/echo", "", std::string(30'000, 'x')));
  expect_refused(second, 503);
  first.send(std::string(10'000, 'x'));
  EXPECT_EQ(first.read_answer().status, 200);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(first.ask(request_text("POST", "/echo", "", std::string(90'000, 'x'))).status, 200);
}

TEST(HttpLimits, ABodyCountsUntilTheHandlerTakesIt) {
  HttpOptions options;
  options.max_bodies_bytes = 100'000;
  EchoServer server(options);
  const std::string request = request_text("POST", "/hold", "", std::string(80'000, 'x'));
  RawClient first = server.client(), refused = server.client(), second = server.client();
  first.send(request);
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  refused.send(request);
  expect_refused(refused, 503);
  server.run([&] { EXPECT_EQ(server.held[0]->take_body().size(), 80'000u); });
  second.send(request);
  EXPECT_TRUE(eventually([&] { return server.held_count == 2; }));
}

TEST(HttpLimits, SlowHeadersAreCutWithA408) {
  EchoServer server(short_times());
  RawClient client = server.client();
  EXPECT_TRUE(dribble(client, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1000, 'x')));
  expect_refused(client, 408);
}

TEST(HttpLimits, ASlowBodyIsCutWithA408) {
  HttpOptions options;
  options.body_timeout = 150ms;
  EchoServer server(options);
  RawClient client = server.client();
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  EXPECT_TRUE(dribble(client, "x"));
  expect_refused(client, 408);
}

TEST(HttpLimits, ASlowSecondRequestIsCutLikeTheFirst) {
  HttpOptions options;
  options.header_timeout = 150ms;
  EchoServer server(options);
  RawClient client = server.client();
  EXPECT_EQ(client.ask(request_text("GET", "/echo")).status, 200);
  EXPECT_TRUE(dribble(client, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1000, 'x')));
  expect_refused(client, 408);
}

TEST(HttpLimits, SilentConnectionsAreClosedWithoutAnAnswer) {
  EchoServer server(short_times());
  RawClient silent = server.client(), idle = server.client(), empty_lines = server.client();
  EXPECT_EQ(idle.ask(request_text("GET", "/echo")).status, 200);
  empty_lines.send("\r\n\r\n");
  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(idle.ended());
  EXPECT_TRUE(empty_lines.ended());
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
}

TEST(HttpLimits, AnAnswerMayTakeLongerThanAllTimeouts) {
  EchoServer server(short_times());
  RawClient client = server.client();
  client.send(request_text("GET", "/hold"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  usleep(400'000);
  server.run([&] { server.held[0]->send({.status = 200, .content_type = "a/b", .body = "late", .headers = {}}); });
  EXPECT_EQ(client.read_answer().body, "late");
}

TEST(HttpLimits, FurtherConnectionsGetA503UntilOthersLeave) {
  HttpOptions options;
  options.max_connections = 3;
  EchoServer server(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(server.client());
    EXPECT_EQ(clients.back().ask(request_text("GET", "/echo")).status, 200);
  }
  RawClient further = server.client();
  further.send(request_text("GET", "/echo"));
  const Answer answer = further.read_answer();
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.has("\r\nretry-after: "));
  EXPECT_EQ(Json::parse(answer.body)["error"]["type"], "server_error");
  EXPECT_TRUE(further.ended());
  EXPECT_EQ(server->stats().refused, 1u);
  clients.clear();
  ASSERT_TRUE(eventually([&] { return server.all_quiet(); }));
  EXPECT_EQ(server.client().ask(request_text("GET", "/echo")).status, 200);
}

TEST(HttpLimits, RefusingConnectionsGoesOnHoweverManyCome) {
  HttpOptions options;
  options.max_connections = 0;
  EchoServer server(options);
  for (int i = 0; i < 600; ++i) ASSERT_EQ(server.client().read_answer().status, 503) << i;
}

TEST(HttpLimits, GoesOnAfterTheDescriptorsRanOut) {
  EchoServer server;
  RawClient before = server.client();
  // Twice: when the second is answered, all of the first is over. UBSan opens a pipe to look at an object of a type
  // that it has not seen yet, and could not below.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(before.ask(request_text("GET", "/echo")).status, 200);
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit none = usual;
  none.rlim_cur = 1;
  RawClient late(0);  // gets its descriptor before the limit falls, and connects below
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(late.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  usleep(150'000);
  EXPECT_EQ(server->stats().accepted, 1u);
  EXPECT_EQ(before.ask(request_text("GET", "/echo")).status, 200) << "others are served meanwhile";
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(late.ask(request_text("GET", "/echo")).status, 200);
}

}  // namespace sluice
