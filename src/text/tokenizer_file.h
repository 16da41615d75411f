#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_added.h"

namespace sluice {

/// Everything that tokenizer.json and tokenizer_config.json say about a tokenizer.
struct TokenizerFile {
  BytePairEncoder encoder;
  std::vector<AddedToken> added_tokens;  // ids differ
  WordPattern pattern = WordPattern::marks_in_words;
  bool normalize = false;  // to NFC
  std::optional<TokenId> eos;
};

/// Reads both; config_json may be empty. Throws LoadError for anything that would not be honoured: `what`
/// names the tokenizer file and `config_what` the other one.
TokenizerFile read_tokenizer_file(std::string_view tokenizer_json, std::string_view config_json, std::string_view what,
                                  std::string_view config_what);

}  // namespace sluice
