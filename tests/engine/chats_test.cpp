// From messages to tokens: every text chat of the bundled checkpoint, against what HF transformers answers in float32.
#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/golden.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice::test {
namespace {

Json text_chats() {
  Json kept = Json::array();
  for (const Json& chat : parse_json(read_text_file(tiny_model() / "expected/chats.json"), "chats.json")) {
    if (chat["media"].empty()) kept.push_back(chat);
  }
  return kept;
}

std::string render(const ChatTemplate& chat_template, const Json& chat) {
  TemplateOptions options;
  options.variables["enable_thinking"] = chat["enable_thinking"];
  return chat_template.render(chat["messages"], chat["tools"], options);
}

TEST(Chats, RenderAsTheReferenceDoes) {
  const auto chat_template = ChatTemplate::load(tiny_model());
  const Json chats = text_chats();
  ASSERT_GE(chats.size(), 20u);
  for (const Json& chat : chats)
    EXPECT_EQ(render(*chat_template, chat), chat["rendered"].get<std::string>()) << chat["name"];
}

TEST(Chats, TokenizeAsTheReferenceDoes) {
  const auto tokenizer = Tokenizer::load(tiny_model());
  for (const Json& chat : text_chats()) {
    EXPECT_EQ(tokenizer->encode(chat["rendered"].get<std::string>()), chat["prompt_ids"].get<std::vector<TokenId>>())
        << chat["name"];
  }
}

TEST(Chats, BeginWithTheLogitsOfTheReference) {
  const Golden golden(tiny_model() / "expected/chats_logits.safetensors");
  ModelRunner runner(tiny_model(), {.threads = 2, .compute = Compute::f32, .instruction_set = ""});
  for (const Json& chat : text_chats()) {
    const auto name = chat["name"].get<std::string>();
    const Rows expected = golden.rows(name + ".first_logits");
    auto ids = chat["prompt_ids"].get<std::vector<std::int32_t>>();
    const auto output = chat["output_ids"].get<std::vector<std::int32_t>>();
    ids.insert(ids.end(), output.begin(), output.begin() + static_cast<long>(expected.size()) - 1);
    EXPECT_LT(relative_error(runner.run(ids).logits, expected), 1e-4) << name;
  }
}

/// Collects one request's tokens and wakes the test at its end.
class Collector {
 public:
  TokenCallback callback() {
    return [this](const TokenEvent& event) {
      const std::lock_guard lock(mutex_);
      if (event.token) tokens_.push_back(*event.token);
      if (event.finish_reason == FinishReason::none) return;
      reason_ = event.finish_reason;
      finished_.notify_all();
    };
  }
  std::vector<TokenId> wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return reason_ != FinishReason::none; });
    return tokens_;
  }
  FinishReason reason() const { return reason_; }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<TokenId> tokens_;
  FinishReason reason_ = FinishReason::none;
};

TEST(Chats, AnswerWithTheTokensOfTheReference) {
  auto ops = make_cpu_backend({.threads = 2, .compute = Compute::f32, .instruction_set = ""});
  const auto checkpoint = open_safetensors(tiny_model());
  auto model = load_model(read_config(tiny_model()), *checkpoint, *ops);
  EngineOptions options;
  options.max_model_len = 2048;
  options.max_num_seqs = 32;
  options.vocabulary_size = Tokenizer::load(tiny_model())->size();
  options.stop_tokens = {1653, 1651};
  Engine engine(std::move(ops), std::move(model), options);

  const Json chats = text_chats();
  std::vector<Collector> collectors(chats.size());
  for (std::size_t i = 0; i < chats.size(); ++i) {
    Request request;
    request.prompt = chats[i]["prompt_ids"].get<std::vector<TokenId>>();
    request.sampling.temperature = 0.0f;
    request.sampling.max_tokens = 512;
    request.on_event = collectors[i].callback();
    engine.submit(std::move(request));
  }
  for (std::size_t i = 0; i < chats.size(); ++i) {
    EXPECT_EQ(collectors[i].wait(), chats[i]["output_ids"].get<std::vector<TokenId>>()) << chats[i]["name"];
    EXPECT_EQ(collectors[i].reason(), FinishReason::stop) << chats[i]["name"];
  }
}

}  // namespace
}  // namespace sluice::test
