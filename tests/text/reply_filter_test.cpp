// Reasoning passes, ends with its budget, and a grammar holds from there on.
#include <gtest/gtest.h>

#include "base/error.h"
#include "grammar_walk.h"
#include "text/reply_parser.h"

namespace sluice {
namespace {

std::shared_ptr<const CompiledGrammar> yes_or_no() {
  GrammarSource source;
  source.kind = GrammarSource::Kind::choice;
  source.choices = {"yes", "no"};
  return tiny_compiler().compile(source);
}

TokenId token_of(const std::string& text) {
  const std::vector<TokenId> tokens = tiny_tokenizer()->encode(text);
  EXPECT_EQ(tokens.size(), 1u) << text;
  return tokens[0];
}

void accept_all(TokenFilter& filter, const std::string& text) {
  for (const TokenId token : tiny_tokenizer()->encode(text)) {
    const std::vector<TokenId> allowed = allowed_after(filter);
    ASSERT_TRUE(std::binary_search(allowed.begin(), allowed.end(), token)) << tiny_tokenizer()->bytes_of(token);
    filter.accept(token);
  }
}

TEST(ReplyFilter, IsAbsentWhereNothingIsAsked) {
  EXPECT_EQ(make_reply_filter(tiny_tokenizer(), {}), nullptr);
  EXPECT_EQ(make_reply_filter(tiny_tokenizer(), {nullptr, true, {}}), nullptr);
  EXPECT_EQ(make_reply_filter(tiny_tokenizer(), {nullptr, false, 10}), nullptr) << "no reasoning to limit";
}

TEST(ReplyFilter, TheBudgetOfReasoningIsKeptToTheToken) {
  for (const int budget : {0, 1, 5}) {
    const auto filter = make_reply_filter(tiny_tokenizer(), {nullptr, true, budget});
    for (int i = 0; i < budget; ++i) {
      EXPECT_EQ(allowed_after(*filter).size(), static_cast<std::size_t>(tiny_tokenizer()->size()));
      filter->accept(token_of("a"));
    }
    for (const TokenId token : tiny_tokenizer()->encode("\n</think>\n\n")) {
      EXPECT_EQ(allowed_after(*filter), std::vector<TokenId>{token}) << "budget " << budget;
      filter->accept(token);
    }
    EXPECT_EQ(allowed_after(*filter).size(), static_cast<std::size_t>(tiny_tokenizer()->size()));
  }
}

TEST(ReplyFilter, ReasoningThatEndsEarlierIsNotEndedAgain) {
  const auto filter = make_reply_filter(tiny_tokenizer(), {nullptr, true, 5});
  accept_all(*filter, "a\n</think>\n\n");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(allowed_after(*filter).size(), static_cast<std::size_t>(tiny_tokenizer()->size()));
    filter->accept(token_of("a"));
  }
}

TEST(ReplyFilter, ANegativeBudgetIsRefused) {
  EXPECT_THROW(make_reply_filter(tiny_tokenizer(), {nullptr, true, -1}), RequestError);
}

class ReplyFilterWithGrammar : public testing::Test {
 protected:
  void SetUp() override {
    if (!grammars_supported()) GTEST_SKIP() << "this build has no xgrammar";
  }
};

TEST_F(ReplyFilterWithGrammar, AnythingButTheEndPassesWhileReasoning) {
  const auto filter = make_reply_filter(tiny_tokenizer(), {yes_or_no(), true, {}});
  for (int i = 0; i < 3; ++i) {
    const std::vector<TokenId> allowed = allowed_after(*filter);
    EXPECT_EQ(allowed.size(), static_cast<std::size_t>(tiny_tokenizer()->size()) - tiny_stops().size());
    filter->accept(token_of("a"));
  }
}

TEST_F(ReplyFilterWithGrammar, TheGrammarHoldsAfterTheReasoningAndAFewLineBreaks) {
  const auto filter = make_reply_filter(tiny_tokenizer(), {yes_or_no(), true, {}});
  accept_all(*filter, "x</think>\n\n");
  const Walk walk = random_walk(*filter, 1, 20);
  ASSERT_TRUE(walk.ended);
  ReplyParser parser({true, {}});
  parser.add("x</think>\n\n" + walk.text);
  parser.finish();
  EXPECT_EQ(parser.reply().reasoning, "x");
  EXPECT_TRUE(parser.reply().content == "yes" || parser.reply().content == "no") << parser.reply().content;
}

TEST_F(ReplyFilterWithGrammar, LineBreaksBeforeTheContentComeToAnEnd) {
  const auto filter = make_reply_filter(tiny_tokenizer(), {yes_or_no(), true, {}});
  accept_all(*filter, "x</think>");
  for (int i = 0; i < 4; ++i) accept_all(*filter, "\n");
  const std::vector<TokenId> allowed = allowed_after(*filter);
  EXPECT_FALSE(std::binary_search(allowed.begin(), allowed.end(), token_of("\n")));
  EXPECT_FALSE(allowed.empty());
}

TEST_F(ReplyFilterWithGrammar, ATagThatTheModelSpellsOutEndsTheReasoningToo) {
  const auto filter = make_reply_filter(tiny_tokenizer(), {yes_or_no(), true, {}});
  for (const char letter : std::string("</think>")) filter->accept(token_of(std::string(1, letter)));
  for (const TokenId token : allowed_after(*filter)) {
    const std::string_view bytes = tiny_tokenizer()->bytes_of(token);
    EXPECT_TRUE(bytes.find_first_not_of("yesno\n") == std::string_view::npos) << bytes;
  }
}

TEST_F(ReplyFilterWithGrammar, TheGrammarHoldsAfterAForcedEnd) {
  const auto filter = make_reply_filter(tiny_tokenizer(), {yes_or_no(), true, 2});
  const Walk walk = random_walk(*filter, 5, 40);
  ASSERT_TRUE(walk.ended);
  const std::size_t end = walk.text.find("</think>\n\n");
  ASSERT_NE(end, std::string::npos) << walk.text;
  const std::string content = walk.text.substr(end + 10);
  EXPECT_TRUE(content == "yes" || content == "no") << walk.text;
}

TEST_F(ReplyFilterWithGrammar, WithoutReasoningTheGrammarHoldsFromTheBeginning) {
  const auto filter = make_reply_filter(tiny_tokenizer(), {yes_or_no(), false, {}});
  const Walk walk = random_walk(*filter, 2, 20);
  EXPECT_TRUE(walk.text == "yes" || walk.text == "no") << walk.text;
}

}  // namespace
}  // namespace sluice
