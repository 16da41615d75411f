#include "server/openai_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "server/json_text.h"
#include "text/unicode.h"

namespace sluice {

namespace {
constexpr std::string_view done = "data: [DONE]\n\n";
}

OpenAiWriter::OpenAiWriter(const GenerationRequest& request, const ReplyIdentity& identity, const Names& names)
    : names_(names),
      identity_(identity),
      top_logprobs_(request.sampling.top_logprobs),
      prompt_logprobs_(request.shown_prompt_logprobs),
      returns_token_ids_(request.return_token_ids),
      has_tokens_(request.return_token_ids || request.sampling.top_logprobs >= 0),
      include_usage_(request.include_usage),
      continuous_usage_(request.continuous_usage),
      choices_a_prompt_(static_cast<std::size_t>(request.n)),
      choices_(choices_a_prompt_ * std::max<std::size_t>(request.prompts.size(), 1)) {
  text_head_ = "data: " + json_text(head(names_.chunk));
  text_head_.pop_back();
  text_head_ += R"(,"choices":[{"index":)";
  text_tail_ = include_usage_ ? "}],\"usage\":null}\n\n" : "}]}\n\n";
}

Json OpenAiWriter::head(std::string_view object) const {
  return {{"id", std::string(names_.id_prefix) + identity_.id},
          {"object", object},
          {"created", identity_.created},
          {"model", identity_.model},
          {"system_fingerprint", identity_.fingerprint}};
}

void OpenAiWriter::write(const Json& event, std::string& out) const {
  out += "data: ";
  out += json_text(event);
  out += "\n\n";
}

void OpenAiWriter::write_choice(Json choice, const ReplyResult& so_far, std::string& out, const Json& more) const {
  Json event = head(names_.chunk);
  event["choices"] = Json::array({std::move(choice)});
  event.update(more);
  if (include_usage_) event["usage"] = continuous_usage_ ? usage_json(so_far.usage) : Json();
  write(event, out);
}

void OpenAiWriter::write_text(int index, std::string_view opening, std::string_view text, std::string_view closing,
                              std::string& out) const {
  out += text_head_;
  fmt::format_to(std::back_inserter(out), "{}", index);
  out += opening;
  if (is_valid_utf8(text)) {
    append_json_string(out, text);
  } else {
    std::string valid;
    append_valid_utf8(valid, text);
    append_json_string(out, valid);
  }
  out += closing;
  out += text_tail_;
}

Json OpenAiWriter::ended(const ChoiceEnd& end) const {
  Json choice = {{"index", end.index}};
  choice.update(ending());
  choice["finish_reason"] = name_of(end.reason);
  choice["stop_reason"] = stop_reason(end);
  return choice;
}

void OpenAiWriter::end_choice(const ChoiceEnd& end, const ReplyResult& so_far, std::string& out) {
  if (++ended_ < choices_) {
    write_choice(ended(end), so_far, out);
  } else {
    waiting_ = end;
  }
}

void OpenAiWriter::end(const ReplyResult& result, std::string& out) {
  if (waiting_) write_choice(ended(*waiting_), result, out, {{"timings", timings_json(result.timings)}});
  if (include_usage_) {
    Json event = head(names_.chunk);
    event["choices"] = Json::array();
    event["usage"] = usage_json(result.usage);
    write(event, out);
  }
  out += done;
}

void OpenAiWriter::fail(const ApiError& error, std::string& out) {
  write(error.json(), out);
  out += done;
}

void OpenAiWriter::ping(std::string& out) { out += ": ping\n\n"; }

Json OpenAiWriter::whole(const ReplyResult& result) {
  Json reply = head(names_.object);
  reply["service_tier"] = nullptr;
  Json choices = Json::array();
  for (std::size_t i = 0; i < result.choices.size(); ++i) {
    const ReplyResult::Choice& choice = result.choices[i];
    Json shown = {{"index", i}};
    shown.update(whole_choice(result, i));
    shown["finish_reason"] = name_of(choice.end.reason);
    shown["stop_reason"] = stop_reason(choice.end);
    if (returns_token_ids_) shown["token_ids"] = ids_of(choice.tokens);
    choices.push_back(std::move(shown));
  }
  reply["choices"] = std::move(choices);
  reply["usage"] = usage_json(result.usage);
  reply["timings"] = timings_json(result.timings);
  reply.update(more_of_whole(result));
  return reply;
}

std::string_view name_of(ChoiceEnd::Reason reason) {
  switch (reason) {
    case ChoiceEnd::Reason::stop: return "stop";
    case ChoiceEnd::Reason::length: return "length";
    case ChoiceEnd::Reason::tool_calls: return "tool_calls";
  }
  return "stop";
}

Json stop_reason(const ChoiceEnd& end) {
  if (end.stop_string) return *end.stop_string;
  return end.stop_token ? Json(*end.stop_token) : Json();
}

Json ids_of(const std::vector<ReportedToken>& tokens) {
  Json ids = Json::array();
  for (const ReportedToken& token : tokens) ids.push_back(token.token);
  return ids;
}

}  // namespace sluice
