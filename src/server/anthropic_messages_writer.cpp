#include <utility>

#include <fmt/format.h>

#include "server/anthropic_messages.h"
#include "server/json_text.h"
#include "server/part_writer.h"

namespace sluice {

namespace {

/// Tool calls are called toolu_... by Anthropic's clients.
std::string tool_use_id(std::string_view call) {
  constexpr std::string_view prefix = "call_";
  if (call.substr(0, prefix.size()) == prefix) call.remove_prefix(prefix.size());
  return fmt::format("toolu_{}", call);
}

/// Arguments are a JSON object by construction; what is none is shown as text.
Json input_json(const std::string& arguments) {
  Json input = Json::parse(arguments, nullptr, false);
  return input.is_object() ? input : Json{{"arguments", arguments}};
}

/// A content block; in a stream it opens empty.
Json block_json(const ReplyPart& part, bool opens) {
  const Json text = opens ? "" : part.text;
  switch (part.kind) {
    case ReplyPart::Kind::reasoning: return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
    case ReplyPart::Kind::text: return {{"type", "text"}, {"text", text}};
    case ReplyPart::Kind::tool_call: break;
  }
  return {{"type", "tool_use"},
          {"id", tool_use_id(part.call)},
          {"name", part.name},
          {"input", opens ? Json::object() : input_json(part.text)}};
}

Json messages_usage_json(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"thinking_tokens", usage.reasoning_tokens}}},
          {"service_tier", "standard"}};
}

std::string_view stop_reason(const ChoiceEnd& end) {
  if (end.stop_string) return "stop_sequence";
  switch (end.reason) {
    case ChoiceEnd::Reason::length: return "max_tokens";
    case ChoiceEnd::Reason::tool_calls: return "tool_use";
    case ChoiceEnd::Reason::stop: break;
  }
  return "end_turn";
}

Json stop_sequence(const ChoiceEnd& end) { return end.stop_string ? Json(*end.stop_string) : Json(); }

class MessagesWriter final : public PartWriter {
 public:
  explicit MessagesWriter(ReplyIdentity identity) : identity_(std::move(identity)) {}

  void begin(const ReplyResult& so_far, std::string& out) override {
    Json message = message_json();
    message["usage"] = messages_usage_json({so_far.usage.prompt_tokens, 0, 0, so_far.usage.cached_tokens});
    write_event("message_start", {{"message", std::move(message)}}, out);
  }
  void add(const ChoiceDelta& delta, const ReplyResult& /*so_far*/, std::string& out) override {
    add_parts(delta.text, out);
  }
  void end_choice(const ChoiceEnd& /*end*/, const ReplyResult& /*so_far*/, std::string& out) override {
    close_part(out);
  }
  void end(const ReplyResult& result, std::string& out) override {
    const ChoiceEnd& end = result.choices.front().end;
    write_event("message_delta",
                {{"delta", {{"stop_reason", stop_reason(end)}, {"stop_sequence", stop_sequence(end)}}},
                 {"usage", messages_usage_json(result.usage)},
                 {"timings", timings_json(result.timings)}},
                out);
    write_event("message_stop", Json::object(), out);
  }
  void fail(const ApiError& error, std::string& out) override {
    write_event("error", {{"error", anthropic_error_json(error)["error"]}}, out);
  }
  void ping(std::string& out) override { write_event("ping", Json::object(), out); }

  Json whole(const ReplyResult& result) override {
    const ReplyResult::Choice& choice = result.choices.front();
    Json message = message_json();
    for (const ReplyPart& part : parts_of(choice.reply)) message["content"].push_back(block_json(part, false));
    message["stop_reason"] = stop_reason(choice.end);
    message["stop_sequence"] = stop_sequence(choice.end);
    message["usage"] = messages_usage_json(result.usage);
    message["timings"] = timings_json(result.timings);
    return message;
  }

 private:
  Json message_json() const {
    return {{"id", "msg_" + identity_.id}, {"type", "message"},        {"role", "assistant"},
            {"model", identity_.model},    {"content", Json::array()}, {"stop_reason", Json()},
            {"stop_sequence", Json()}};
  }

  static void write_event(std::string_view type, const Json& members, std::string& out) {
    Json event = {{"type", type}};
    event.update(members);
    fmt::format_to(std::back_inserter(out), "event: {}\ndata: {}\n\n", type, json_text(event));
  }

  void write_opening(std::string& out) override {
    write_event("content_block_start", {{"index", part_index()}, {"content_block", block_json(parts().back(), true)}},
                out);
  }

  void write_piece(std::string_view piece, std::string& out) override {
    switch (parts().back().kind) {
      case ReplyPart::Kind::reasoning: return write_delta("thinking_delta", "thinking", piece, out);
      case ReplyPart::Kind::text: return write_delta("text_delta", "text", piece, out);
      case ReplyPart::Kind::tool_call: return write_delta("input_json_delta", "partial_json", piece, out);
    }
  }

  void write_delta(std::string_view type, std::string_view key, std::string_view piece, std::string& out) const {
    fmt::format_to(std::back_inserter(out),
                   "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{},"
                   "\"delta\":{{\"type\":\"{}\",\"{}\":",
                   part_index(), type, key);
    append_json_string(out, piece);
    out += "}}\n\n";
  }

  void write_closing(std::string& out) override {
    if (parts().back().kind == ReplyPart::Kind::reasoning) write_delta("signature_delta", "signature", "", out);
    write_event("content_block_stop", {{"index", part_index()}}, out);
  }

  ReplyIdentity identity_;
};

std::string_view error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 408: return "timeout_error";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

std::unique_ptr<ReplyWriter> make_messages_writer(const GenerationRequest& /*request*/, const ReplyIdentity& identity) {
  return std::make_unique<MessagesWriter>(identity);
}

Json anthropic_error_json(const ApiError& error) {
  const Json given = error.json()["error"];
  return {{"type", "error"},
          {"error",
           {{"type", error_type(error.status())},
            {"message", given["message"]},
            {"param", given["param"]},
            {"code", given["code"]}}}};
}

}  // namespace sluice
