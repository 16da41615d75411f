#include "text/detokenizer.h"

#include <random>

#include <gtest/gtest.h>

#include "text/tiny_files.h"
#include "text/unicode.h"

namespace sluice {
namespace {

TEST(Detokenizer, NeverGivesHalfACharacterAndJoinsToTheDecodedText) {
  std::mt19937 random(11);
  for (int round = 0; round < 5000; ++round) {
    const bool skip_special = round % 2 == 0;
    std::vector<TokenId> ids;
    // Half of them among the single bytes, where characters break.
    for (auto i = random() % 20; i > 0; --i)
      ids.push_back(
          static_cast<TokenId>(random() % (random() % 2 ? 256u : static_cast<unsigned>(tiny_tokenizer()->size()))));
    Detokenizer detokenizer(tiny_tokenizer(), skip_special);
    std::string text;
    for (TokenId id : ids) {
      const std::string piece = detokenizer.add(id);
      ASSERT_TRUE(is_valid_utf8(piece));
      text += piece;
    }
    text += detokenizer.finish();
    ASSERT_EQ(text, tiny_tokenizer()->decode(ids, skip_special));
  }
}

TEST(Detokenizer, GivesACharacterWithTheTokenThatCompletesIt) {
  const auto ids = tiny_tokenizer()->encode("\u4e2d");
  ASSERT_EQ(ids.size(), 3u);
  Detokenizer detokenizer(tiny_tokenizer());
  EXPECT_EQ(detokenizer.add(ids[0]), "");
  EXPECT_EQ(detokenizer.add(ids[1]), "");
  EXPECT_EQ(detokenizer.add(ids[2]), "\u4e2d");
}

TEST(Detokenizer, ReplacesACharacterThatTheEndCutOff) {
  const auto ids = tiny_tokenizer()->encode("\u4e2d");
  Detokenizer detokenizer(tiny_tokenizer());
  detokenizer.add(ids[0]);
  detokenizer.add(ids[1]);
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, LeavesSpecialTokensOutOnlyWhenAskedTo) {
  const TokenId end = *tiny_tokenizer()->id_of("<|im_end|>"), think = *tiny_tokenizer()->id_of("<think>");
  EXPECT_EQ(Detokenizer(tiny_tokenizer(), true).add(end), "");
  EXPECT_EQ(Detokenizer(tiny_tokenizer(), false).add(end), "<|im_end|>");
  EXPECT_EQ(Detokenizer(tiny_tokenizer(), true).add(think), "<think>");
}

}  // namespace
}  // namespace sluice
