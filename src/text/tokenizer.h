#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// Byte-level BPE as tokenizer.json describes it (NFC, the family's pre-tokenizer, added tokens).
/// Immutable after loading; safe to use from many threads.
class Tokenizer {
 public:
  /// Reads DIR/tokenizer.json and, for the names of the special tokens, DIR/tokenizer_config.json if present.
  /// Throws LoadError: unknown model, normalizer or pre-tokenizer type, a merge of unknown pieces, and so on.
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& directory);
  /// The same from text; `what` names it in errors. (Fuzz target and GGUF loader use this.)
  static std::shared_ptr<const Tokenizer> parse(std::string_view tokenizer_json, std::string_view config_json,
                                                std::string_view what);
  virtual ~Tokenizer() = default;

  /// Ids of UTF-8 text; invalid bytes are replaced by U+FFFD first. With recognize_special, added tokens
  /// found in the text become their ids; without, only those marked special are read as plain text.
  virtual std::vector<TokenId> encode(std::string_view text, bool recognize_special = true) const = 0;
  /// Raw bytes of one id (not always whole characters); empty for an unknown id.
  virtual std::string_view bytes_of(TokenId id) const = 0;
  /// Text of ids; broken characters become U+FFFD. skip_special leaves out tokens marked special.
  virtual std::string decode(const std::vector<TokenId>& ids, bool skip_special = false) const = 0;
  virtual bool is_special(TokenId id) const = 0;
  /// Whether it is one of added_tokens, special or not: encode() never makes it of plain text.
  virtual bool is_added(TokenId id) const = 0;
  virtual bool is_known(TokenId id) const = 0;
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  /// Largest id + 1 that has a token; ids from here to the padded vocabulary are never sampled.
  virtual int size() const = 0;
  /// eos_token of tokenizer_config.json, if it names a known token.
  virtual std::optional<TokenId> eos() const = 0;
};

}  // namespace sluice
