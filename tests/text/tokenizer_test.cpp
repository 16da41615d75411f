#include "text/tokenizer.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "text/detokenizer.h"

namespace sluice {
namespace {

const std::filesystem::path tiny = std::filesystem::path(SLUICE_SOURCE_DIR) / "models/tiny";

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json expected(const std::string& name) { return parse_json(read(tiny / "expected" / name), name); }

const Tokenizer& tokenizer() {
  static const std::shared_ptr<const Tokenizer> loaded = Tokenizer::load(tiny);
  return *loaded;
}

TEST(Tokenizer, GivesTheIdsAndTextsOfTheReferenceForEveryRow) {
  const Json rows = expected("tokens.json");
  ASSERT_GE(rows.size(), 200u);
  for (const Json& row : rows) {
    const auto ids = row["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer().encode(row["text"].get<std::string>()), ids) << row["text"];
    EXPECT_EQ(tokenizer().decode(ids), row["decoded"].get<std::string>()) << row["text"];
  }
}

TEST(Tokenizer, GivesThePromptIdsOfEveryTextChat) {
  int chats = 0;
  for (const Json& chat : expected("chats.json")) {
    if (!chat["media"].empty()) continue;
    ++chats;
    EXPECT_EQ(tokenizer().encode(chat["rendered"].get<std::string>()), chat["prompt_ids"].get<std::vector<TokenId>>())
        << chat["name"];
  }
  EXPECT_GE(chats, 20);
}

TEST(Tokenizer, DecodesTheOutputOfEveryChat) {
  for (const Json& chat : expected("chats.json"))
    EXPECT_EQ(tokenizer().decode(chat["output_ids"].get<std::vector<TokenId>>()),
              chat["output_text"].get<std::string>())
        << chat["name"];
}

}  // namespace
}  // namespace sluice
