#include "apps/bench_reply.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace sluice {

namespace {

constexpr std::size_t most_body_bytes = 64u << 20, shown_bytes = 200;

/// A count of a usage object; nothing for what is no sensible number.
std::int64_t count_of(const Json& usage, const char* name) {
  const auto at = usage.find(name);
  return at != usage.end() && at->is_number_integer() ? std::max<std::int64_t>(0, at->get<std::int64_t>()) : 0;
}

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, shown_bytes));
  std::replace_if(line.begin(), line.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  return line;
}

}  // namespace

std::string error_message(int status, std::string_view body) {
  std::string said;
  try {
    const Json json = parse_json(body, "the error");
    const Json& error = json.is_object() && json.contains("error") ? json["error"] : json;
    if (error.is_object() && error.contains("message") && error["message"].is_string()) said = error["message"];
  } catch (const LoadError&) {
    said = body;
  }
  const std::string line = one_line(said.empty() ? body : std::string_view(said));
  return status == 200 ? fmt::format("an error in the stream: {}", line) : fmt::format("status {}: {}", status, line);
}

CompletionReply::CompletionReply(bool streamed, double started) : streamed_(streamed) { sample_.started = started; }

void CompletionReply::read(int status, std::string_view piece, double now) {
  if (streamed_ && status == 200) {
    events_.read(piece, [&](std::string_view data) { read_event(data, now); });
    return;
  }
  if (text_.size() + piece.size() > most_body_bytes) {
    fail<RequestError>("the body of the response is longer than {} bytes", most_body_bytes);
  }
  text_ += piece;
}

void CompletionReply::read_event(std::string_view data, double now) {
  const EventContent content = scan_event(data);
  if (content.has_text) {
    if (has_first_) {
      sample_.gaps.push_back(now - last_);
    } else {
      sample_.first_token = now;
    }
    has_first_ = true;
    last_ = now;
  }
  if (content.has_error) fail_with(error_message(200, data));
  if (content.has_usage) read_usage(data);
  done_ = done_ || content.done;
}

void CompletionReply::read_usage(std::string_view text) {
  try {
    const Json json = parse_json(text, "the reply");
    if (!json.is_object() || !json.contains("usage") || !json["usage"].is_object()) return;
    sample_.input_tokens = count_of(json["usage"], "prompt_tokens");
    sample_.output_tokens = count_of(json["usage"], "completion_tokens");
    has_usage_ = true;
  } catch (const LoadError& error) {
    fail_with(one_line(error.what()));
  }
}

void CompletionReply::fail_with(std::string error) {
  if (sample_.error.empty()) sample_.error = std::move(error);
}

RequestSample CompletionReply::end(int status, const std::string& error, double now) {
  sample_.ended = now;
  if (!error.empty()) {
    fail_with(error);
  } else if (status != 200) {
    fail_with(error_message(status, text_));
  } else if (!streamed_) {
    read_usage(text_);
  } else if (!done_ && !has_usage_) {
    fail_with("the stream ended before [DONE]");
  }
  if (!has_usage_) fail_with("the reply says no usage, so its tokens cannot be counted");
  // Without an event that has text (a whole reply, or tokens that are no text) the first token came with the end.
  if (!has_first_) sample_.first_token = now;
  sample_.succeeded = sample_.error.empty();
  return std::move(sample_);
}

}  // namespace sluice
