#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "apps/bench_statistics.h"
#include "apps/bench_stream.h"

namespace sluice {

/// Reads the body of one completion, streamed or whole, and fills in its sample.
class CompletionReply {
 public:
  CompletionReply() = default;
  /// `started`: seconds since the start of the run.
  CompletionReply(bool streamed, double started);

  /// A piece of the body of a response with this status, and when it came. Throws RequestError for a body that is too
  /// long.
  void read(int status, std::string_view piece, double now);
  /// The response is complete, or the exchange failed with this error.
  RequestSample end(int status, const std::string& error, double now);

  double started() const { return sample_.started; }

 private:
  void read_event(std::string_view data, double now);
  void read_usage(std::string_view json);
  void fail_with(std::string error);

  bool streamed_ = true, has_usage_ = false, has_first_ = false, done_ = false;
  double last_ = 0;   // event with text
  std::string text_;  // a body that is no stream
  EventReader events_;
  RequestSample sample_;
};

/// What an error body says, in one line: OpenAI's {"error": {"message"}}, or the beginning of the text.
std::string error_message(int status, std::string_view body);

}  // namespace sluice
