#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/openai_chat.h"
#include "server/openai_logprobs.h"
#include "server/openai_writer.h"

namespace sluice {

namespace {

/// Between reasoning and content where both are one text.
constexpr std::string_view end_of_reasoning = "\n</think>\n\n";

Json fragment_json(const ReplyDelta::CallFragment& fragment) {
  if (fragment.name.empty()) return {{"index", fragment.index}, {"function", {{"arguments", fragment.arguments}}}};
  return {{"index", fragment.index},
          {"id", fragment.id},
          {"type", "function"},
          {"function", {{"name", fragment.name}, {"arguments", fragment.arguments}}}};
}

Json calls_json(const std::vector<ToolCall>& calls) {
  Json list = Json::array();
  for (const ToolCall& call : calls)
    list.push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  return list;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

class ChatWriter : public OpenAiWriter {
 public:
  ChatWriter(const GenerationRequest& request, const ReplyIdentity& identity)
      : OpenAiWriter(request, identity, {"chatcmpl-", "chat.completion", "chat.completion.chunk"}),
        separates_(request.separate_reasoning),
        shows_reasoning_(request.include_reasoning),
        has_reasoning_(static_cast<std::size_t>(request.n)) {}

  void begin(const ReplyResult& so_far, std::string& out) override {
    Json more = Json::object();
    if (returns_token_ids()) more["prompt_token_ids"] = so_far.prompts.front().ids;
    for (std::size_t i = 0; i < has_reasoning_.size(); ++i) {
      write_choice(choice(static_cast<int>(i), {{"role", "assistant"}, {"content", ""}}), so_far, out, more);
    }
  }

  void add(const ChoiceDelta& delta, const ReplyResult& so_far, std::string& out) override {
    const bool as_it_is = separates_ && shows_reasoning_;
    const ReplyDelta changed = as_it_is ? ReplyDelta{} : reshaped(delta);
    const ReplyDelta& text = as_it_is ? delta.text : changed;
    if (is_plain() && text.tool_calls.empty()) {
      write_plain(delta.index, text, out);
    } else if (!text.reasoning.empty() || !text.content.empty() || !text.tool_calls.empty() || !delta.tokens.empty()) {
      write_any(delta, text, so_far, out);
    }
  }

 private:
  static Json choice(int index, Json delta) {
    return {{"index", index}, {"delta", std::move(delta)}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  }

  void write_plain(int index, const ReplyDelta& text, std::string& out) const {
    constexpr std::string_view closing = R"(},"logprobs":null,"finish_reason":null)";
    if (!text.reasoning.empty()) {
      const std::string both = Json(text.reasoning).dump(-1, ' ', false, Json::error_handler_t::replace);
      write_text(index, R"(,"delta":{"reasoning_content":)" + both + R"(,"reasoning":)", text.reasoning, closing, out);
    }
    if (!text.content.empty()) write_text(index, R"(,"delta":{"content":)", text.content, closing, out);
  }

  void write_any(const ChoiceDelta& delta, const ReplyDelta& text, const ReplyResult& so_far, std::string& out) const {
    Json shown = Json::object();
    if (!text.reasoning.empty()) shown = {{"reasoning_content", text.reasoning}, {"reasoning", text.reasoning}};
    if (!text.content.empty()) shown["content"] = text.content;
    if (!text.tool_calls.empty()) {
      Json fragments = Json::array();
      for (const auto& fragment : text.tool_calls) fragments.push_back(fragment_json(fragment));
      shown["tool_calls"] = std::move(fragments);
    }
    Json event = choice(delta.index, std::move(shown));
    if (top_logprobs() >= 0 && !delta.tokens.empty()) event["logprobs"] = chat_logprobs(delta.tokens, top_logprobs());
    if (returns_token_ids()) event["token_ids"] = ids_of(delta.tokens);
    write_choice(std::move(event), so_far, out);
  }

  /// Without the reasoning, or with the reasoning as the beginning of the content.
  ReplyDelta reshaped(const ChoiceDelta& delta) {
    ReplyDelta text{{}, {}, delta.text.tool_calls};
    const auto index = static_cast<std::size_t>(delta.index);
    if (shows_reasoning_) {
      text.content = delta.text.reasoning;
      if (!delta.text.reasoning.empty()) has_reasoning_[index] = true;
    }
    if (!delta.text.content.empty()) {
      if (has_reasoning_[index]) text.content += end_of_reasoning;
      has_reasoning_[index] = false;
      text.content += delta.text.content;
    }
    return text;
  }

  Json ending() const override { return {{"delta", Json::object()}, {"logprobs", nullptr}}; }

  Json whole_choice(const ReplyResult& result, std::size_t index) const override {
    const ReplyResult::Choice& choice = result.choices[index];
    std::string reasoning = shows_reasoning_ ? choice.reply.reasoning : std::string();
    std::string content = choice.reply.content;
    if (!separates_ && !reasoning.empty()) {
      if (!content.empty()) reasoning += end_of_reasoning;
      content = std::exchange(reasoning, {}) + content;
    }
    Json message = {{"role", "assistant"},
                    {"content", text_or_null(content)},
                    {"refusal", nullptr},
                    {"reasoning_content", text_or_null(reasoning)},
                    {"reasoning", text_or_null(reasoning)}};
    if (!choice.reply.tool_calls.empty()) message["tool_calls"] = calls_json(choice.reply.tool_calls);
    return {{"message", std::move(message)},
            {"logprobs", top_logprobs() >= 0 ? chat_logprobs(choice.tokens, top_logprobs()) : Json()}};
  }

  Json more_of_whole(const ReplyResult& result) const override {
    Json more = Json::object();
    const PromptInfo& prompt = result.prompts.front();
    if (prompt_logprobs() >= 0) more["prompt_logprobs"] = prompt_logprobs_json(prompt.logprobs, prompt_logprobs());
    if (returns_token_ids()) more["prompt_token_ids"] = prompt.ids;
    return more;
  }

  const bool separates_, shows_reasoning_;
  std::vector<char> has_reasoning_;  // of each choice, where it is not separated: it has begun and not ended
};

}  // namespace

std::unique_ptr<ReplyWriter> make_chat_writer(const GenerationRequest& request, const ReplyIdentity& identity) {
  return std::make_unique<ChatWriter>(request, identity);
}

}  // namespace sluice
