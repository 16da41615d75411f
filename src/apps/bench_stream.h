#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// Reads one HTTP/1.1 response from bytes as they come, cut anywhere. Interim (1xx) responses are passed over.
class ResponseReader {
 public:
  /// Takes what belongs to the response from the front of `bytes` and appends what is body to `body`. Returns how much
  /// it took: less than all only once the response is complete. Throws RequestError for what is no HTTP response.
  std::size_t read(std::string_view bytes, std::string& body);
  /// The connection has ended. Throws RequestError when the response has not.
  void end_of_connection();

  bool started() const { return part_ != Part::status || !line_.empty(); }
  bool complete() const { return part_ == Part::complete; }
  int status() const { return status_; }
  /// Another request may follow on the connection.
  bool keeps_connection() const { return keeps_connection_; }

 private:
  enum class Part : std::uint8_t { status, headers, body, rest, chunk_size, chunk, chunk_end, trailers, complete };
  bool take_line(std::string_view& bytes);
  void take_body(std::string_view& bytes, std::string& body);
  void read_status();
  void read_header();
  void read_chunk_size();
  void end_headers();

  Part part_ = Part::status;
  std::string line_;  // so far
  std::size_t head_bytes_ = 0;
  std::uint64_t left_ = 0;  // of the body, or of the chunk
  int status_ = 0;
  bool has_length_ = false, chunked_ = false, keeps_connection_ = true;
};

/// Cuts a stream of server-sent events, which may come in any pieces, into the data of its events.
class EventReader {
 public:
  /// Calls on_data(std::string_view) for each event that is complete. Throws RequestError for an endless line.
  template <class OnData>
  void read(std::string_view bytes, const OnData& on_data) {
    while (!bytes.empty()) {
      if (take_line(bytes)) on_data(std::string_view(data_));
    }
  }

 private:
  /// Takes up to the end of a line; true when that line ends an event, whose data is then in data_.
  bool take_line(std::string_view& bytes);

  std::string line_, data_;
  bool has_data_ = false, dispatched_ = false;
};

/// What is to be known of an event of a completion's stream, found without parsing it.
struct EventContent {
  bool has_text = false;   // text, content, reasoning or arguments that are not empty
  bool has_usage = false;  // an object under "usage"
  bool has_error = false;  // an object under "error"
  bool done = false;       // [DONE]
};
EventContent scan_event(std::string_view data);

}  // namespace sluice
