#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/openai_completions.h"
#include "server/openai_logprobs.h"
#include "server/openai_writer.h"

namespace sluice {

namespace {

class CompletionWriter : public OpenAiWriter {
 public:
  CompletionWriter(const GenerationRequest& request, const ReplyIdentity& identity)
      : OpenAiWriter(request, identity, {"cmpl-", "text_completion", "text_completion"}),
        echo_(request.echo),
        logprobs_(request.prompts.size() * static_cast<std::size_t>(request.n),
                  CompletionLogprobs(request.sampling.top_logprobs)) {}

  void begin(const ReplyResult& so_far, std::string& out) override {
    if (!echo_ && !returns_token_ids()) return;
    for (std::size_t i = 0; i < logprobs_.size(); ++i) {
      const PromptInfo& prompt = so_far.prompts[prompt_of(i)];
      Json event = choice(static_cast<int>(i), echo_ ? prompt.text : std::string());
      if (echo_ && top_logprobs() >= 0) event["logprobs"] = logprobs_[i].add(prompt.logprobs);
      if (returns_token_ids()) {
        event["prompt_token_ids"] = prompt.ids;
        event["token_ids"] = Json::array();
      }
      write_choice(std::move(event), so_far, out);
    }
  }

  void add(const ChoiceDelta& delta, const ReplyResult& so_far, std::string& out) override {
    const std::string& text = delta.text.content;
    if (is_plain()) {
      if (!text.empty()) write_text(delta.index, R"(,"text":)", text, R"(,"logprobs":null,"finish_reason":null)", out);
      return;
    }
    if (text.empty() && delta.tokens.empty()) return;
    Json event = choice(delta.index, text);
    if (top_logprobs() >= 0 && !delta.tokens.empty())
      event["logprobs"] = logprobs_[static_cast<std::size_t>(delta.index)].add(delta.tokens);
    if (returns_token_ids()) event["token_ids"] = ids_of(delta.tokens);
    write_choice(std::move(event), so_far, out);
  }

 private:
  static Json choice(int index, const std::string& text) {
    return {{"index", index}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  }

  Json ending() const override { return {{"text", ""}, {"logprobs", nullptr}}; }

  Json whole_choice(const ReplyResult& result, std::size_t index) const override {
    const ReplyResult::Choice& choice = result.choices[index];
    const PromptInfo& prompt = result.prompts[prompt_of(index)];
    Json shown = {{"text", echo_ ? prompt.text + choice.reply.content : choice.reply.content}, {"logprobs", nullptr}};
    if (top_logprobs() >= 0) {
      std::vector<ReportedToken> tokens;
      if (echo_) tokens = prompt.logprobs;
      tokens.insert(tokens.end(), choice.tokens.begin(), choice.tokens.end());
      shown["logprobs"] = CompletionLogprobs(top_logprobs()).add(tokens);
    }
    if (prompt_logprobs() >= 0) shown["prompt_logprobs"] = prompt_logprobs_json(prompt.logprobs, prompt_logprobs());
    if (returns_token_ids()) shown["prompt_token_ids"] = prompt.ids;
    return shown;
  }

  Json more_of_whole(const ReplyResult&) const override { return Json::object(); }

  const bool echo_;
  std::vector<CompletionLogprobs> logprobs_;  // of each choice of a stream
};

}  // namespace

std::unique_ptr<ReplyWriter> make_completion_writer(const GenerationRequest& request, const ReplyIdentity& identity) {
  return std::make_unique<CompletionWriter>(request, identity);
}

}  // namespace sluice
