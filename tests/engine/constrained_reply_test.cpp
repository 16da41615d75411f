// Grammars and thinking budgets through the whole engine, with the bundled model.
#include <future>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/model_runner.h"
#include "text/chat_template.h"
#include "text/grammar.h"
#include "text/reply_reader.h"

namespace sluice::test {
namespace {

class ConstrainedReply : public testing::Test {
 protected:
  void SetUp() override {
    if (!grammars_supported()) GTEST_SKIP() << "this build has no xgrammar";
    auto ops = make_cpu_backend({.threads = 2, .compute = Compute::f32, .instruction_set = ""});
    auto model = load_model(read_config(tiny_model()), *checkpoint_, *ops);
    EngineOptions options;
    options.max_model_len = 1024;
    options.max_num_seqs = 8;
    options.stop_tokens = model->info().stop_tokens;
    stops_ = options.stop_tokens;
    options.vocabulary_size = tokenizer_->size();
    engine_ = std::make_unique<Engine>(std::move(ops), std::move(model), options);
    compiler_ = make_grammar_compiler(tokenizer_, tokenizer_->size(), stops_);
  }

  struct Told {
    Reply reply;
    FinishReason reason = FinishReason::none;
    int reasoning_tokens = 0;
  };
  Told ask(bool thinking, ReplyConstraint constraint, float temperature, std::uint64_t seed) {
    TemplateOptions variables;
    variables.variables["enable_thinking"] = thinking;
    const Json messages = {{{"role", "user"}, {"content", "What is the capital of Peru?"}}};
    const std::string prompt = template_->render(messages, nullptr, variables);
    constraint.starts_in_reasoning = ends_in_reasoning(prompt);
    EXPECT_EQ(constraint.starts_in_reasoning, thinking);
    Request request;
    request.prompt = tokenizer_->encode(prompt);
    request.sampling.temperature = temperature;
    request.sampling.seed = seed;
    request.sampling.max_tokens = 150;
    request.filter = make_reply_filter(tokenizer_, constraint);
    auto done = std::make_shared<std::promise<FinishReason>>();
    auto tokens = std::make_shared<std::vector<TokenId>>();
    request.on_event = [done, tokens](const TokenEvent& event) {
      if (event.token) tokens->push_back(*event.token);
      if (event.finish_reason != FinishReason::none) done->set_value(event.finish_reason);
    };
    auto future = done->get_future();
    engine_->submit(std::move(request));
    Told told;
    told.reason = future.get();
    ReplyReading reading;
    reading.is_chat = true;
    reading.format = {thinking, nullptr};
    ReplyReader reader(tokenizer_, reading);
    const auto close = tokenizer_->id_of("</think>");
    bool open = thinking;
    for (const TokenId token : *tokens) {
      if (open && token != close) ++told.reasoning_tokens;
      if (token == close) open = false;
      reader.add(token, std::count(stops_.begin(), stops_.end(), token) > 0);
    }
    reader.finish();
    told.reply = reader.reply();
    return told;
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = Tokenizer::load(tiny_model());
  std::shared_ptr<const ChatTemplate> template_ = ChatTemplate::load(tiny_model());
  std::unique_ptr<Checkpoint> checkpoint_ = open_safetensors(tiny_model());
  std::vector<TokenId> stops_;
  std::unique_ptr<GrammarCompiler> compiler_;
  std::unique_ptr<Engine> engine_;
};

GrammarSource city_schema() {
  GrammarSource source;
  source.kind = GrammarSource::Kind::json_schema;
  source.schema = parse_json(R"({"type": "object", "properties": {"city": {"type": "string", "maxLength": 10},
    "people": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["city", "people"],
    "additionalProperties": false})",
                             "schema");
  return source;
}

TEST_F(ConstrainedReply, KeepsToASchemaWhateverTheModelWouldRatherSay) {
  const ReplyConstraint constraint{compiler_->compile(city_schema()), false, std::nullopt};
  for (const bool thinking : {false, true}) {
    for (const float temperature : {0.0f, 1.0f, 1.5f}) {
      for (std::uint64_t seed = 1; seed <= (temperature > 0.0f ? 4u : 1u); ++seed) {
        const Told told = ask(thinking, constraint, temperature, seed);
        if (told.reason == FinishReason::length) continue;
        ASSERT_EQ(told.reason, FinishReason::stop);
        const Json value = Json::parse(told.reply.content, nullptr, false);
        ASSERT_TRUE(value.is_object()) << told.reply.content;
        EXPECT_TRUE(value["city"].is_string() && value["people"].is_number_integer() && value.size() == 2) << value;
        EXPECT_EQ(told.reply.reasoning.empty(), !thinking);
      }
    }
  }
}

TEST_F(ConstrainedReply, ThinksAsItWouldWithoutTheGrammar) {
  const ReplyConstraint constraint{compiler_->compile(city_schema()), false, std::nullopt};
  EXPECT_EQ(ask(true, constraint, 0.0f, 1).reply.reasoning, ask(true, {}, 0.0f, 1).reply.reasoning);
}

TEST_F(ConstrainedReply, StopsThinkingWhenTheBudgetIsSpent) {
  const int free = ask(true, {}, 0.0f, 1).reasoning_tokens;
  ASSERT_GT(free, 4);
  for (const int budget : {0, 1, 4}) {
    const Told told = ask(true, {nullptr, false, budget}, 0.0f, 1);
    // The line break before the tag is part of what ends the reasoning.
    EXPECT_LE(told.reasoning_tokens, budget + 1) << budget;
    EXPECT_FALSE(told.reply.content.empty());
  }
}

}  // namespace
}  // namespace sluice::test
