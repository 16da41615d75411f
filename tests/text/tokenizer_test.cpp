#include "text/tokenizer.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>

#include "base/json.h"
#include "text/tiny_files.h"

namespace sluice {
namespace {

const std::filesystem::path root = SLUICE_SOURCE_DIR;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json json_of(const std::filesystem::path& path) { return parse_json(read(path), path.string()); }

using Ids = std::vector<TokenId>;

/// The tiny model's tokenizer with some of its file changed.
std::shared_ptr<const Tokenizer> changed(const std::function<void(Json&)>& change) {
  Json file = json_of(tiny_folder() / "tokenizer.json");
  change(file);
  return Tokenizer::parse(file.dump(), "", "the changed tokenizer");
}

TEST(Tokenizer, GivesTheIdsAndTextsOfTheReferenceForEveryRow) {
  const Json rows = json_of(tiny_folder() / "expected/tokens.json");
  ASSERT_GE(rows.size(), 200u);
  for (const Json& row : rows) {
    const Ids ids = row["ids"];
    EXPECT_EQ(tiny_tokenizer()->encode(row["text"].get<std::string>()), ids) << row["text"];
    EXPECT_EQ(tiny_tokenizer()->decode(ids), row["decoded"].get<std::string>()) << row["text"];
  }
}

TEST(Tokenizer, GivesThePromptIdsOfEveryTextChat) {
  int chats = 0;
  for (const Json& chat : json_of(tiny_folder() / "expected/chats.json")) {
    if (!chat["media"].empty()) continue;
    ++chats;
    EXPECT_EQ(tiny_tokenizer()->encode(chat["rendered"].get<std::string>()), chat["prompt_ids"].get<Ids>())
        << chat["name"];
  }
  EXPECT_GE(chats, 20);
}

TEST(Tokenizer, DecodesTheOutputOfEveryChat) {
  for (const Json& chat : json_of(tiny_folder() / "expected/chats.json"))
    EXPECT_EQ(tiny_tokenizer()->decode(chat["output_ids"].get<Ids>()), chat["output_text"].get<std::string>())
        << chat["name"];
}

TEST(Tokenizer, AgreesWithTheReferenceOnRandomTextInEveryVariant) {
  for (const Json& variant : json_of(root / "tests/data/text/tokenizers.json")) {
    const auto loaded = changed([&](Json& file) {
      file.merge_patch(variant["patch"]);
      for (const Json& token : variant["added_tokens"]) file["added_tokens"].push_back(token);
    });
    for (const Json& row : variant["encoded"]) {
      const std::string text = row[0];
      EXPECT_EQ(loaded->encode(text), row[1].get<Ids>()) << variant["name"] << row;
      EXPECT_EQ(loaded->encode(text, false), row.back().get<Ids>()) << variant["name"] << row;
    }
    for (const Json& row : variant["decoded"]) {
      EXPECT_EQ(loaded->decode(row[0].get<Ids>()), row[1].get<std::string>());
      EXPECT_EQ(loaded->decode(row[0].get<Ids>(), true), row[2].get<std::string>());
    }
  }
}

TEST(Tokenizer, ReadsMergesWrittenAsStringsLikePairs) {
  const auto strings = changed([](Json& file) {
    for (Json& merge : file["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  });
  for (const Json& row : json_of(tiny_folder() / "expected/tokens.json"))
    EXPECT_EQ(strings->encode(row["text"].get<std::string>()), row["ids"].get<Ids>());
}

TEST(Tokenizer, ReplacesBrokenBytesBeforeEncoding) {
  EXPECT_EQ(tiny_tokenizer()->encode("a\xFF\xE2\x82 b"), tiny_tokenizer()->encode("a\uFFFD\uFFFD b"));
}

TEST(Tokenizer, TakesSpecialTokensAsTextWhenAskedToButNotOtherAddedOnes) {
  const Ids ids = tiny_tokenizer()->encode("<think><|im_end|>", false);
  EXPECT_EQ(ids.front(), tiny_tokenizer()->id_of("<think>"));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *tiny_tokenizer()->id_of("<|im_end|>")), 0);
  EXPECT_EQ(tiny_tokenizer()->decode(ids), "<think><|im_end|>");
}

TEST(Tokenizer, KnowsItsTokens) {
  EXPECT_EQ(tiny_tokenizer()->size(), 1677);
  EXPECT_EQ(tiny_tokenizer()->id_of("<|im_end|>"), 1653);
  EXPECT_EQ(tiny_tokenizer()->bytes_of(1653), "<|im_end|>");
  EXPECT_EQ(tiny_tokenizer()->bytes_of(220), " ");
  EXPECT_TRUE(tiny_tokenizer()->is_special(1653));
  EXPECT_FALSE(tiny_tokenizer()->is_special(*tiny_tokenizer()->id_of("<think>")));
  EXPECT_FALSE(tiny_tokenizer()->id_of("no such token"));
  for (TokenId unknown : {-1, 1677, 1 << 30}) {
    EXPECT_FALSE(tiny_tokenizer()->is_known(unknown));
    EXPECT_FALSE(tiny_tokenizer()->is_special(unknown));
    EXPECT_EQ(tiny_tokenizer()->bytes_of(unknown), "");
  }
}

TEST(Tokenizer, ReadsTheEndTokenInBothForms) {
  const std::string file = read(tiny_folder() / "tokenizer.json");
  EXPECT_EQ(tiny_tokenizer()->eos(), tiny_tokenizer()->id_of("<|im_end|>"));
  const auto eos = [&](const char* config) { return Tokenizer::parse(file, config, "test")->eos(); };
  EXPECT_EQ(eos(R"({"eos_token": {"content": "<|endoftext|>", "special": true}})"), 1651);
  EXPECT_FALSE(eos(R"({"eos_token": null})"));
  EXPECT_FALSE(eos(R"({"eos_token": "</s>"})"));
  EXPECT_FALSE(eos(""));
}

TEST(Tokenizer, TakesLongTextsWithoutABreakInNoTime) {
  for (const std::string part : {"a", "the", "\u4e2d", " ", "<|", "\n ", "1", "e\u0301"}) {
    std::string text;
    while (text.size() < 1 << 18) text += part;
    const auto begin = std::chrono::steady_clock::now();
    const Ids ids = tiny_tokenizer()->encode(text);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << part;
    EXPECT_FALSE(ids.empty());
  }
}

}  // namespace
}  // namespace sluice
