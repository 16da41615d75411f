#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace sluice {

/// Text of a growing token stream: what add() returns, joined with finish(), equals Tokenizer::decode of all
/// ids, and no returned piece ever ends inside a UTF-8 character.
class Detokenizer {
 public:
  explicit Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = true);
  /// The characters that this token completes; may be empty.
  std::string add(TokenId token);
  /// What is left: an unfinished character as U+FFFD.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  std::string pending_;  // bytes of an unfinished character, at most 3
};

}  // namespace sluice
