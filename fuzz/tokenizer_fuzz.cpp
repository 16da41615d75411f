// Reads the input as a tokenizer.json, and as text for a small tokenizer.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "text/bpe.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace {

using namespace sluice;

/// All bytes, a few merges, and added tokens of every kind.
std::shared_ptr<const Tokenizer> small_tokenizer() {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text = bytes_to_printable(std::string(1, static_cast<char>(byte)));
    if (text == "\"" || text == "\\") text.insert(0, "\\");
    vocabulary += fmt::format("\"{}\": {}, ", text, byte);
  }
  const std::string json = fmt::format(
      R"({{"model": {{"type": "BPE", "vocab": {{{} "aa": 256, "aaaa": 257, "ab": 258, "\u0120a": 259}},
           "merges": ["a a", "aa aa", ["a", "b"], "\u0120 a"]}},
          "added_tokens": [{{"id": 260, "content": "<a>", "special": true}}, {{"id": 261, "content": "<ab>", "lstrip": true}},
                           {{"id": 262, "content": "\u00e9<", "normalized": true, "rstrip": true}}],
          "normalizer": {{"type": "NFC"}}, "decoder": {{"type": "ByteLevel"}}, "pre_tokenizer": {{"type": "Sequence",
          "pretokenizers": [{{"type": "Split", "behavior": "Isolated", "pattern": {{"Regex": "{}"}}}},
                            {{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}}]}}}})",
      vocabulary,
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)");
  return Tokenizer::parse(json, "", "the small tokenizer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto parsed = Tokenizer::parse(text, "", "the input");
    parsed->decode(parsed->encode(text));
  } catch (const LoadError&) {
  }
  static const std::shared_ptr<const Tokenizer> tokenizer = small_tokenizer();
  for (bool recognize_special : {false, true}) {
    const std::vector<TokenId> ids = tokenizer->encode(text, recognize_special);
    Detokenizer detokenizer(tokenizer, false);
    std::string streamed;
    for (TokenId id : ids) {
      streamed += detokenizer.add(id);
      CHECK(is_valid_utf8(streamed));
    }
    streamed += detokenizer.finish();
    CHECK(streamed == tokenizer->decode(ids));
  }
  return 0;
}
