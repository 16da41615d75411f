#include "text/bpe.h"

#include <random>

#include <gtest/gtest.h>

namespace sluice {
namespace {

/// Merges over a small alphabet, so that long pieces merge often and in many ways.
BytePairEncoder random_encoder(std::mt19937& random) {
  BytePairEncoder encoder;
  std::vector<std::string> tokens;
  const auto add = [&](const std::string& text) {
    const auto id = static_cast<TokenId>(tokens.size());
    if (encoder.vocabulary.add(text, text, id) == Vocabulary::Added::yes) tokens.push_back(text);
  };
  encoder.byte_tokens.fill(-1);
  for (char c : {'a', 'b', 'c'}) {
    encoder.byte_tokens[static_cast<std::uint8_t>(c)] = static_cast<TokenId>(tokens.size());
    add(std::string(1, c));
  }
  for (std::uint32_t rank = 0; rank < 60; ++rank) {
    const auto left = static_cast<TokenId>(random() % tokens.size());
    const auto right = static_cast<TokenId>(random() % tokens.size());
    add(tokens[left] + tokens[right]);
    encoder.merges.add(left, right, {rank, *encoder.vocabulary.find(tokens[left] + tokens[right])});
  }
  return encoder;
}

/// The definition: merge the leftmost pair of lowest rank until there is none.
std::vector<TokenId> encoded_by_definition(const BytePairEncoder& encoder, const std::string& piece) {
  std::vector<TokenId> ids;
  for (char c : piece) ids.push_back(encoder.byte_tokens[static_cast<std::uint8_t>(c)]);
  while (true) {
    MergeTable::Merge best;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i)
      if (const auto merge = encoder.merges.find(ids[i], ids[i + 1]); merge.rank < best.rank) best = merge, at = i;
    if (best.merged < 0) return ids;
    ids[at] = best.merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(BytePairEncoder, MergesShortAndLongPiecesByTheDefinition) {
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    const BytePairEncoder encoder = random_encoder(random);
    std::string piece;
    for (auto i = random() % 150; i > 0; --i) piece += static_cast<char>('a' + random() % 3);
    std::vector<TokenId> ids;
    encoder.encode(piece, ids);
    ASSERT_EQ(ids, encoded_by_definition(encoder, piece)) << piece;
  }
}

TEST(Vocabulary, FindsManyTextsLikeOneByOne) {
  Vocabulary vocabulary;
  std::vector<std::string> texts;
  for (TokenId id = 0; id < 5000; ++id) {
    texts.push_back(std::to_string(id * 7919));
    if (id % 3 != 0) vocabulary.add(texts.back(), "", id);
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<TokenId> ids(views.size());
  vocabulary.find_all(views, ids);
  for (TokenId id = 0; id < 5000; ++id) {
    EXPECT_EQ(ids[id], id % 3 != 0 ? id : -1);
    EXPECT_EQ(vocabulary.find(texts[id]).value_or(-1), ids[id]);
  }
}

TEST(Vocabulary, TakesIdsAndTextsOnce) {
  Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.add("a", "x", 3), Vocabulary::Added::yes);
  EXPECT_EQ(vocabulary.add("b", "x", 3), Vocabulary::Added::id_taken);
  EXPECT_EQ(vocabulary.add("a", "x", 4), Vocabulary::Added::text_taken);
  EXPECT_EQ(vocabulary.size(), 4);
  EXPECT_TRUE(vocabulary.contains(3));
  EXPECT_FALSE(vocabulary.contains(2));
  EXPECT_EQ(vocabulary.bytes_of(3), "x");
}

TEST(ByteAlphabet, WritesEveryByteAsOneCharacterAndBack) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    EXPECT_EQ(printable_to_bytes(bytes_to_printable(bytes)), bytes);
  }
  EXPECT_EQ(bytes_to_printable(" \n"), "\u0120\u010A");
  EXPECT_FALSE(printable_to_bytes("a b"));
  EXPECT_FALSE(printable_to_bytes("\u4e2d"));
}

}  // namespace
}  // namespace sluice
