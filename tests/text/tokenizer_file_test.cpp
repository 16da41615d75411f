// Files that cannot be used, and what is said about them.
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

const std::string& tiny_text() {
  static const std::string text = [] {
    std::ifstream file(SLUICE_SOURCE_DIR "/models/tiny/tokenizer.json", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

std::string file_error(const std::string& json, const std::string& config = "") {
  try {
    Tokenizer::parse(json, config, "bad.json");
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

/// What is said about the tiny model's file after a change.
std::string error_after(const std::function<void(Json&)>& change) {
  Json file = Json::parse(tiny_text());
  change(file);
  return file_error(file.dump());
}

testing::AssertionResult says(const std::string& error, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (error.find(word) == std::string::npos) return testing::AssertionFailure() << error << " lacks " << word;
  return testing::AssertionSuccess();
}

TEST(TokenizerFile, RefusesWhatIsNoJson) {
  EXPECT_TRUE(says(file_error(""), {"bad.json", "JSON"}));
  EXPECT_TRUE(says(file_error("[1, 2]"), {"bad.json", "not a JSON object"}));
  EXPECT_TRUE(says(file_error(std::string(100000, '[')), {"bad.json", "JSON"}));
  EXPECT_TRUE(says(file_error("{\"model\": \"\xFF\"}"), {"bad.json", "JSON"}));
}

TEST(TokenizerFile, RefusesATruncatedFileWhereverItEnds) {
  for (std::size_t size = 0; size + 1 < tiny_text().size(); size += 997)
    EXPECT_TRUE(says(file_error(tiny_text().substr(0, size)), {"bad.json", "not valid JSON"})) << size;
}

TEST(TokenizerFile, NamesTypesThatAreNotSupported) {
  EXPECT_TRUE(says(error_after([](Json& file) { file["model"]["type"] = "Unigram"; }), {"model", "Unigram"}));
  EXPECT_TRUE(
      says(error_after([](Json& file) { file["normalizer"]["type"] = "Lowercase"; }), {"normalizer", "Lowercase"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["pre_tokenizer"] = {{"type", "Metaspace"}}; }),
                   {"pre_tokenizer", "Metaspace"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["pre_tokenizer"]["pretokenizers"][1]["type"] = "Digits"; }),
                   {"pre_tokenizer", "Digits"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["decoder"]["type"] = "WordPiece"; }), {"decoder", "WordPiece"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["post_processor"] = {{"type", "TemplateProcessing"}}; }),
                   {"post_processor", "TemplateProcessing"}));
}

TEST(TokenizerFile, NamesOptionsThatAreNotSupported) {
  const auto model = [](const char* key, Json value) {
    return error_after([&](Json& file) { file["model"][key] = value; });
  };
  EXPECT_TRUE(says(model("byte_fallback", true), {"byte_fallback"}));
  EXPECT_TRUE(says(model("dropout", 0.1), {"dropout"}));
  EXPECT_TRUE(says(model("end_of_word_suffix", "</w>"), {"end_of_word_suffix"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["added_tokens"][0]["single_word"] = true; }),
                   {"<|endoftext|>", "single_word"}));
  EXPECT_TRUE(
      says(error_after([](Json& file) { file["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }),
           {"add_prefix_space"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }),
                   {"Removed"}));
}

TEST(TokenizerFile, ShowsAnUnknownPattern) {
  const std::string error = error_after(
      [](Json& file) { file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"(\p{N}{1,3}|\s+)"; });
  EXPECT_TRUE(says(error, {"unknown pattern", R"(\p{N}{1,3}|\s+)"}));
}

TEST(TokenizerFile, RefusesIdsThatAreOutOfRangeOrNoIntegers) {
  for (const Json& id : {Json(-1), Json(1 << 24), Json(1ull << 63), Json(1.5), Json("7"), Json(nullptr)}) {
    EXPECT_TRUE(says(error_after([&](Json& file) { file["model"]["vocab"]["new"] = id; }), {"\"new\"", "id"})) << id;
    EXPECT_TRUE(says(error_after([&](Json& file) { file["added_tokens"][0]["id"] = id; }), {"<|endoftext|>", "id"}))
        << id;
  }
}

TEST(TokenizerFile, RefusesIdsAndTextsThatStandTwice) {
  EXPECT_TRUE(
      says(error_after([](Json& file) { file["model"]["vocab"]["new"] = 5; }), {"\"new\"", "both have the id 5"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["added_tokens"][1]["id"] = 1651; }), {"1651", "<|im_start|>"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["added_tokens"][1]["content"] = "<|endoftext|>"; }),
                   {"<|endoftext|>", "1652", "disagrees"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["added_tokens"][0]["id"] = 7; }), {"<|endoftext|>", "disagrees"}));
  EXPECT_TRUE(
      says(file_error(R"({"model": {"type": "BPE", "vocab": {"a": 1, "a": 2}, "merges": []}})"), {"\"a\"", "twice"}));
}

TEST(TokenizerFile, RefusesMergesOfUnknownTokensAndOfAWrongShape) {
  const auto merge = [](Json value) { return error_after([&](Json& file) { file["model"]["merges"][3] = value; }); };
  EXPECT_TRUE(says(merge({"zz", "q"}), {"merge 3", "\"zz\""}));
  EXPECT_TRUE(says(merge({"q", "z"}), {"merge 3", "\"qz\""}));
  EXPECT_TRUE(says(merge("abc"), {"merge 3", "abc"}));
  EXPECT_TRUE(says(merge("a b c"), {"merge 3", "a b c"}));
  EXPECT_TRUE(says(merge({"a", "b", "c"}), {"merge 3"}));
  EXPECT_TRUE(says(merge(7), {"merge 3"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["model"]["merges"][3] = file["model"]["merges"][1]; }),
                   {"merge 3", "twice"}));
}

TEST(TokenizerFile, QuotesNoMoreThanAFewLines) {
  const std::string error = error_after([](Json& file) { file["model"]["merges"][3] = std::string(100000, 'x'); });
  EXPECT_TRUE(says(error, {"merge 3", "xxx..."}));
  EXPECT_LT(error.size(), 1100u);
}

TEST(TokenizerFile, RefusesAVocabularyWithoutATokenForAByte) {
  EXPECT_TRUE(says(error_after([](Json& file) {
                     file["model"]["vocab"].erase("!");
                     file["model"]["vocab"]["other"] = 0;
                   }),
                   {"no token for the byte 0x21"}));
}

TEST(TokenizerFile, RefusesPartsThatAreMissingOrOfTheWrongType) {
  for (const char* key : {"model", "pre_tokenizer", "decoder"}) {
    EXPECT_TRUE(says(error_after([&](Json& file) { file.erase(key); }), {key, "has no"})) << key;
    EXPECT_TRUE(says(error_after([&](Json& file) { file[key] = 7; }), {key, "wrong JSON type"})) << key;
  }
  for (const char* key : {"vocab", "merges"})
    EXPECT_TRUE(says(error_after([&](Json& file) { file["model"][key] = "text"; }), {key, "wrong JSON type"})) << key;
  EXPECT_TRUE(says(error_after([](Json& file) { file["added_tokens"][2] = "text"; }), {"added token 2"}));
  EXPECT_TRUE(says(error_after([](Json& file) { file["added_tokens"][2]["content"] = ""; }), {"added token 2"}));
}

TEST(TokenizerFile, RefusesABrokenConfig) {
  EXPECT_TRUE(says(file_error(tiny_text(), "{"), {"tokenizer_config.json", "JSON"}));
  EXPECT_TRUE(says(file_error(tiny_text(), "[]"), {"tokenizer_config.json"}));
  EXPECT_TRUE(says(file_error(tiny_text(), R"({"eos_token": 5})"), {"tokenizer_config.json", "eos_token"}));
}

TEST(TokenizerFile, SaysWhichFileIsMissing) {
  try {
    Tokenizer::load("/no/such/place");
    FAIL() << "loaded from nowhere";
  } catch (const LoadError& error) {
    EXPECT_TRUE(says(error.what(), {"/no/such/place/tokenizer.json"}));
  }
}

TEST(TokenizerFile, LoadsOrRefusesAFileWithRandomBytesChanged) {
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    std::string text = tiny_text();
    for (auto i = random() % 3 + 1; i > 0; --i) text[random() % text.size()] = static_cast<char>(random());
    try {
      const auto loaded = Tokenizer::parse(text, "", "changed.json");
      EXPECT_EQ(loaded->decode(loaded->encode("plain text")), "plain text");
    } catch (const LoadError&) {
    }
  }
}

}  // namespace
}  // namespace sluice
