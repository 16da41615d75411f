#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "server/content_tokens.h"
#include "server/json_text.h"
#include "server/openai_logprobs.h"
#include "server/openai_responses.h"
#include "server/part_writer.h"

namespace sluice {

namespace {

/// A setting as the request has it, or what it is by default.
Json setting(const Json& body, std::string_view key, Json otherwise) {
  const auto found = body.find(key);
  return found == body.end() || found->is_null() ? std::move(otherwise) : *found;
}

/// A float as people wrote it: 0.7, not 0.699999988079071.
double rounded(float value) { return std::round(static_cast<double>(value) * 1e6) / 1e6; }

/// With the members that clients expect to be there.
Json tools_json(const Json& body) {
  Json tools = setting(body, "tools", Json::array());
  for (Json& tool : tools) {
    for (const char* member : {"parameters", "strict"}) {
      if (!tool.contains(member)) tool[member] = nullptr;
    }
  }
  return tools;
}

/// What the reply repeats of the request; what has no effect here is shown as it is in truth.
Json settings_json(const Json& body, const GenerationRequest& request) {
  Json reasoning = {{"effort", nullptr}, {"summary", nullptr}};
  reasoning.update(setting(body, "reasoning", Json::object()));
  Json text = {{"format", {{"type", "text"}}}};
  text.update(setting(body, "text", Json::object()));
  if (text["format"].is_null()) text["format"] = {{"type", "text"}};
  return {{"background", false},
          {"instructions", setting(body, "instructions", nullptr)},
          {"max_output_tokens", setting(body, "max_output_tokens", nullptr)},
          {"max_tool_calls", setting(body, "max_tool_calls", nullptr)},
          {"metadata", setting(body, "metadata", Json::object())},
          {"parallel_tool_calls", request.parallel_tool_calls},
          {"previous_response_id", nullptr},
          {"prompt_cache_key", setting(body, "prompt_cache_key", nullptr)},
          {"reasoning", std::move(reasoning)},
          {"safety_identifier", setting(body, "safety_identifier", nullptr)},
          {"service_tier", "default"},
          {"store", false},
          {"temperature", rounded(request.sampling.temperature)},
          {"text", std::move(text)},
          {"tool_choice", setting(body, "tool_choice", "auto")},
          {"tools", tools_json(body)},
          {"top_logprobs", std::max(request.sampling.top_logprobs, 0)},
          {"top_p", rounded(request.sampling.top_p)},
          {"truncation", "disabled"},
          {"user", setting(body, "user", nullptr)}};
}

Json responses_usage_json(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json text_part_json(std::string_view text, Json logprobs) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", std::move(logprobs)}};
}

Json reasoning_part_json(std::string_view text) { return {{"type", "reasoning_text"}, {"text", text}}; }

/// One reply in the form of the Responses API, as far as it is known.
class ResponsesWriter final : public PartWriter {
 public:
  ResponsesWriter(const Json& body, const GenerationRequest& request, ReplyIdentity identity)
      : identity_(std::move(identity)),
        settings_(settings_json(body, request)),
        top_logprobs_(request.sampling.top_logprobs) {}

  void begin(const ReplyResult& so_far, std::string& out) override;
  void add(const ChoiceDelta& delta, const ReplyResult& so_far, std::string& out) override;
  void end_choice(const ChoiceEnd& end, const ReplyResult& so_far, std::string& out) override;
  void end(const ReplyResult& result, std::string& out) override;
  void fail(const ApiError& error, std::string& out) override;
  void ping(std::string& out) override { out += ": ping\n\n"; }
  Json whole(const ReplyResult& result) override;

 private:
  std::string item_id(const ReplyPart& part, std::size_t index) const;
  Json item_json(const ReplyPart& part, std::size_t index, std::string_view status, Json logprobs) const;
  Json response_json(std::string_view status, Json output) const;
  Json finished_json(const ReplyResult& result, Json output) const;

  Json logprobs_json(const std::vector<ReportedToken>& tokens) const;
  void take_tokens(const ChoiceDelta& delta);
  void move_new_tokens();
  void open_event(std::string_view type, std::string& out);
  void write_event(std::string_view type, const Json& members, std::string& out);
  void write_content_event(std::string_view type, std::string_view key, const Json& value, std::string& out);
  void write_opening(std::string& out) override;
  void write_piece(std::string_view piece, std::string& out) override;
  void write_closing(std::string& out) override;
  void close_content(const ReplyPart& part, std::string& out);

  ReplyIdentity identity_;
  Json settings_;
  int top_logprobs_;  // -1: none
  int sequence_ = 0;
  Json output_ = Json::array();                    // the items that are complete
  std::string_view closing_status_ = "completed";  // of the item that is closed next
  std::optional<ContentTokens> content_tokens_;    // once it is known whether the reply begins with reasoning
  std::vector<ReportedToken> undecided_;           // tokens until then
  std::vector<ReportedToken> new_tokens_;          // of content, not in an event yet
  std::vector<ReportedToken> part_tokens_;         // of the text that is open
};

std::string ResponsesWriter::item_id(const ReplyPart& part, std::size_t index) const {
  const std::string_view prefix = part.kind == ReplyPart::Kind::reasoning ? "rs"
                                  : part.kind == ReplyPart::Kind::text    ? "msg"
                                                                          : "fc";
  return fmt::format("{}_{}_{}", prefix, identity_.id, index);
}

/// An item of the output. Its text is left out while it is in progress: it comes by events.
Json ResponsesWriter::item_json(const ReplyPart& part, std::size_t index, std::string_view status,
                                Json logprobs) const {
  const bool opens = status == "in_progress";
  Json item = {{"id", item_id(part, index)}};
  if (part.kind == ReplyPart::Kind::tool_call) {
    item.update({{"type", "function_call"},
                 {"status", status},
                 {"call_id", part.call},
                 {"name", part.name},
                 {"arguments", part.text}});
    return item;
  }
  Json content = Json::array();
  if (part.kind == ReplyPart::Kind::reasoning) {
    if (!opens) content.push_back(reasoning_part_json(part.text));
    item.update(
        {{"type", "reasoning"}, {"status", status}, {"summary", Json::array()}, {"content", std::move(content)}});
    return item;
  }
  if (!opens) content.push_back(text_part_json(part.text, std::move(logprobs)));
  item.update({{"type", "message"}, {"status", status}, {"role", "assistant"}, {"content", std::move(content)}});
  return item;
}

Json ResponsesWriter::response_json(std::string_view status, Json output) const {
  Json response = {{"id", "resp_" + identity_.id},
                   {"object", "response"},
                   {"created_at", identity_.created},
                   {"completed_at", nullptr},
                   {"status", status},
                   {"error", nullptr},
                   {"incomplete_details", nullptr},
                   {"model", identity_.model},
                   {"output", std::move(output)},
                   {"usage", nullptr}};
  response.update(settings_);
  return response;
}

Json ResponsesWriter::finished_json(const ReplyResult& result, Json output) const {
  const bool is_whole = result.choices.front().end.reason != ChoiceEnd::Reason::length;
  Json response = response_json(is_whole ? "completed" : "incomplete", std::move(output));
  if (is_whole) {
    response["completed_at"] = identity_.created + static_cast<std::int64_t>(result.timings.total_ms / 1e3);
  } else {
    response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  }
  response["usage"] = responses_usage_json(result.usage);
  response["timings"] = timings_json(result.timings);
  return response;
}

Json ResponsesWriter::whole(const ReplyResult& result) {
  const ReplyResult::Choice& choice = result.choices.front();
  std::vector<ReportedToken> tokens;
  ContentTokens content(!choice.reply.reasoning.empty());
  for (const ReportedToken& token : choice.tokens) {
    if (content.takes(token)) tokens.push_back(token);
  }
  const Json logprobs = logprobs_json(tokens);
  const std::vector<ReplyPart> parts = parts_of(choice.reply);
  const bool is_cut = choice.end.reason == ChoiceEnd::Reason::length;
  Json output = Json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool unfinished = is_cut && i + 1 == parts.size();
    output.push_back(item_json(parts[i], i, unfinished ? "incomplete" : "completed", logprobs));
  }
  return finished_json(result, std::move(output));
}

void ResponsesWriter::begin(const ReplyResult& /*so_far*/, std::string& out) {
  const Json members = {{"response", response_json("in_progress", Json::array())}};
  write_event("response.created", members, out);
  write_event("response.in_progress", members, out);
}

void ResponsesWriter::add(const ChoiceDelta& delta, const ReplyResult& /*so_far*/, std::string& out) {
  if (top_logprobs_ >= 0) take_tokens(delta);
  add_parts(delta.text, out);
}

void ResponsesWriter::end_choice(const ChoiceEnd& end, const ReplyResult& /*so_far*/, std::string& out) {
  if (end.reason == ChoiceEnd::Reason::length) closing_status_ = "incomplete";
  close_part(out);
}

void ResponsesWriter::end(const ReplyResult& result, std::string& out) {
  const Json response = finished_json(result, std::move(output_));
  const std::string_view type = response["status"] == "completed" ? "response.completed" : "response.incomplete";
  write_event(type, {{"response", response}}, out);
}

void ResponsesWriter::fail(const ApiError& error, std::string& out) {
  const Json given = error.json()["error"];
  write_event("error", {{"code", given["code"]}, {"message", given["message"]}, {"param", given["param"]}}, out);
  Json response = response_json("failed", std::move(output_));
  response["error"] = {{"code", error.status() == 429 ? "rate_limit_exceeded" : "server_error"},
                       {"message", given["message"]}};
  write_event("response.failed", {{"response", std::move(response)}}, out);
}

Json ResponsesWriter::logprobs_json(const std::vector<ReportedToken>& tokens) const {
  return top_logprobs_ < 0 ? Json::array() : chat_logprobs(tokens, top_logprobs_)["content"];
}

/// Tokens of the content, whose log-probabilities come with its next event.
void ResponsesWriter::take_tokens(const ChoiceDelta& delta) {
  undecided_.insert(undecided_.end(), delta.tokens.begin(), delta.tokens.end());
  const ReplyDelta& text = delta.text;
  if (!content_tokens_) {
    if (text.reasoning.empty() && text.content.empty() && text.tool_calls.empty()) return;
    content_tokens_.emplace(!text.reasoning.empty());
  }
  for (const ReportedToken& token : undecided_) {
    if (content_tokens_->takes(token)) new_tokens_.push_back(token);
  }
  undecided_.clear();
}

void ResponsesWriter::move_new_tokens() {
  for (ReportedToken& token : new_tokens_) part_tokens_.push_back(std::move(token));
  new_tokens_.clear();
}

/// Up to where the members of the event go on.
void ResponsesWriter::open_event(std::string_view type, std::string& out) {
  fmt::format_to(std::back_inserter(out), "event: {}\ndata: {{\"type\":\"{}\",\"sequence_number\":{},", type, type,
                 sequence_++);
}

void ResponsesWriter::write_event(std::string_view type, const Json& members, std::string& out) {
  open_event(type, out);
  // The members follow the ones of every event: without their opening brace.
  out.append(json_text(members), 1);
  out += "\n\n";
}

/// An event of the content of the last part.
void ResponsesWriter::write_content_event(std::string_view type, std::string_view key, const Json& value,
                                          std::string& out) {
  Json members = {{"item_id", item_id(parts().back(), part_index())}, {"output_index", part_index()}};
  if (parts().back().kind != ReplyPart::Kind::tool_call) members["content_index"] = 0;
  members[std::string(key)] = value;
  if (type == "response.output_text.done") members["logprobs"] = logprobs_json(part_tokens_);
  if (parts().back().kind == ReplyPart::Kind::tool_call) members["name"] = parts().back().name;
  write_event(type, members, out);
}

void ResponsesWriter::write_opening(std::string& out) {
  const ReplyPart& part = parts().back();
  write_event("response.output_item.added",
              {{"output_index", part_index()}, {"item", item_json(part, part_index(), "in_progress", {})}}, out);
  if (part.kind == ReplyPart::Kind::tool_call) return;
  const bool is_text = part.kind == ReplyPart::Kind::text;
  write_content_event("response.content_part.added", "part",
                      is_text ? text_part_json("", Json::array()) : reasoning_part_json(""), out);
}

void ResponsesWriter::write_piece(std::string_view piece, std::string& out) {
  const ReplyPart& part = parts().back();
  const bool is_call = part.kind == ReplyPart::Kind::tool_call, is_text = part.kind == ReplyPart::Kind::text;
  open_event(is_text   ? "response.output_text.delta"
             : is_call ? "response.function_call_arguments.delta"
                       : "response.reasoning_text.delta",
             out);
  fmt::format_to(std::back_inserter(out),
                 "\"item_id\":\"{}\",\"output_index\":{},{}\"delta\":", item_id(part, part_index()), part_index(),
                 is_call ? "" : "\"content_index\":0,");
  append_json_string(out, piece);
  if (is_text) {
    out += ",\"logprobs\":" + (new_tokens_.empty() ? "[]" : json_text(logprobs_json(new_tokens_)));
    move_new_tokens();
  }
  out += "}\n\n";
}

void ResponsesWriter::close_content(const ReplyPart& part, std::string& out) {
  switch (part.kind) {
    case ReplyPart::Kind::tool_call:
      return write_content_event("response.function_call_arguments.done", "arguments", part.text, out);
    case ReplyPart::Kind::reasoning:
      write_content_event("response.reasoning_text.done", "text", part.text, out);
      return write_content_event("response.content_part.done", "part", reasoning_part_json(part.text), out);
    case ReplyPart::Kind::text: break;
  }
  write_content_event("response.output_text.done", "text", part.text, out);
  write_content_event("response.content_part.done", "part", text_part_json(part.text, logprobs_json(part_tokens_)),
                      out);
}

void ResponsesWriter::write_closing(std::string& out) {
  const ReplyPart& part = parts().back();
  if (part.kind == ReplyPart::Kind::text) move_new_tokens();
  close_content(part, out);
  output_.push_back(item_json(part, part_index(), closing_status_, logprobs_json(part_tokens_)));
  part_tokens_.clear();
  write_event("response.output_item.done", {{"output_index", part_index()}, {"item", output_.back()}}, out);
}

}  // namespace

std::unique_ptr<ReplyWriter> make_responses_writer(const Json& body, const GenerationRequest& request,
                                                   const ReplyIdentity& identity) {
  return std::make_unique<ResponsesWriter>(body, request, identity);
}

}  // namespace sluice
