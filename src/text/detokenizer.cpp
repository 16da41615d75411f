#include "text/detokenizer.h"

#include <utility>

#include "text/unicode.h"

namespace sluice {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

std::string Detokenizer::add(TokenId token) {
  if (skip_special_ && tokenizer_->is_special(token)) return {};
  pending_ += tokenizer_->bytes_of(token);
  std::string text;
  pending_.erase(0, append_valid_utf8(text, pending_, true));
  return text;
}

std::string Detokenizer::finish() {
  std::string text;
  append_valid_utf8(text, pending_);
  pending_.clear();
  return text;
}

}  // namespace sluice
