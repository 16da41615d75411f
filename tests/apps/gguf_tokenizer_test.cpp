#include "apps/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/gguf_file.h"
#include "support/temporary_directory.h"
#include "text/bpe.h"

namespace sluice {
namespace {

using test::GgufFile;
using test::message_of;

/// The 256 bytes, "ab", an end of turn, an open tag, and two ids without a token.
struct Parts {
  Parts() {
    for (int byte = 0; byte < 256; ++byte) add(bytes_to_printable(std::string(1, static_cast<char>(byte))), 1);
    add("ab", 1);
    add("<|im_end|>", 3);
    add("<think>", 4);
    add("[PAD259]", 4);
    add("anything", 5);
  }
  void add(const std::string& text, std::int32_t type) {
    tokens.push_back(text);
    types.push_back(type);
  }
  GgufFile file() const {
    GgufFile file;
    file.text("tokenizer.ggml.model", model).text("tokenizer.ggml.pre", pre).texts("tokenizer.ggml.tokens", tokens);
    file.integers("tokenizer.ggml.token_type", types).texts("tokenizer.ggml.merges", merges);
    return file;
  }
  std::string model = "gpt2", pre = "qwen35";
  std::vector<std::string> tokens, merges{"a b"};
  std::vector<std::int32_t> types;
};

std::shared_ptr<const Tokenizer> read_tokenizer(const GgufFile& file) {
  const std::string bytes = file.bytes();
  return gguf_tokenizer(
      parse_gguf_header({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, bytes.size(), "x.gguf")
          .metadata);
}

std::string error_of(const GgufFile& file) {
  return message_of<LoadError>([&] { read_tokenizer(file); });
}

TEST(GgufTokenizer, EncodesMergesAndAddedTokens) {
  const auto tokenizer = read_tokenizer(Parts().file().u32("tokenizer.ggml.eos_token_id", 257));
  EXPECT_EQ(tokenizer->encode("ab<|im_end|><think>\n"), (std::vector<TokenId>{256, 257, 258, '\n'}));
  EXPECT_TRUE(tokenizer->is_special(257));
  EXPECT_FALSE(tokenizer->is_special(258));
  EXPECT_EQ(tokenizer->eos(), 257);
}

TEST(GgufTokenizer, IdsWithoutATokenAreUnknown) {
  const auto tokenizer = read_tokenizer(Parts().file());
  EXPECT_EQ(tokenizer->size(), 259);
  EXPECT_EQ(tokenizer->encode("[PAD259]").size(), 8u);
}

TEST(GgufTokenizer, MarksJoinWordsInThisFamilyOnly) {
  Parts parts;
  const std::string mark = bytes_to_printable("\xcc");  // the first byte of U+0301
  parts.add("x" + mark, 1);
  parts.merges.push_back("x " + mark);
  const std::pair<const char*, std::size_t> counts[] = {{"qwen35", 2}, {"qwen2", 3}, {"deepseek-r1-qwen", 3}};
  for (const auto& [name, count] : counts) {
    parts.pre = name;
    EXPECT_EQ(read_tokenizer(parts.file())->encode("x\xcc\x81").size(), count) << name;
  }
}

TEST(GgufTokenizer, IsNullWhereThereIsNone) { EXPECT_EQ(read_tokenizer(GgufFile().u32("a", 1)), nullptr); }

TEST(GgufTokenizer, RefusesWhatIsNotTheFamilys) {
  Parts parts;
  parts.model = "llama";
  EXPECT_SAYS(error_of(parts.file()), "\"tokenizer.ggml.model\" is \"llama\"; supported is gpt2");
  parts = Parts();
  parts.pre = "llama-bpe";
  EXPECT_SAYS(error_of(parts.file()), "\"tokenizer.ggml.pre\" is \"llama-bpe\"; supported are qwen35");
  EXPECT_SAYS(error_of(Parts().file().boolean("tokenizer.ggml.add_bos_token", true)), "add_bos_token\" is true");
  EXPECT_EQ(error_of(Parts().file().boolean("tokenizer.ggml.add_bos_token", false)), "");
}

TEST(GgufTokenizer, RefusesWhatDoesNotAddUp) {
  Parts parts;
  parts.types.pop_back();
  EXPECT_SAYS(error_of(parts.file()), "has 260 entries for 261 tokens");
  parts = Parts();
  parts.add("\x01", 6);
  EXPECT_SAYS(error_of(parts.file()), "holds 6 for token 261");
  parts = Parts();
  parts.add("ab", 1);
  EXPECT_SAYS(error_of(parts.file()), "\"ab\" is in the vocabulary twice");
  parts = Parts();
  parts.add("\xff\xfe", 1);
  EXPECT_SAYS(error_of(parts.file()), "x.gguf, tokenizer: not valid JSON");
  parts = Parts();
  parts.tokens[0] = "other";
  EXPECT_SAYS(error_of(parts.file()), "no token for the byte");
  EXPECT_SAYS(error_of(Parts().file().u32("tokenizer.ggml.eos_token_id", 261)), "is 261, of 261 tokens");
}

TEST(GgufStopTokens, AreFoundByName) {
  Parts parts;
  parts.add("<|endoftext|>", 3);
  const std::string bytes = parts.file().bytes();
  const auto header =
      parse_gguf_header({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, bytes.size(), "x.gguf");
  EXPECT_EQ(gguf_stop_tokens(header.metadata), (std::vector<TokenId>{257, 261}));
}

}  // namespace
}  // namespace sluice
