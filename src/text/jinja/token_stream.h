#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/lexer.h"

namespace sluice::jinja {

/// A place in a template's tokens, with the questions a parser asks.
class TokenStream {
 public:
  explicit TokenStream(const Source& source) : source_(source), tokens_(tokenize(source)) {}

  const Token& current() const { return tokens_[index_]; }
  const Token& following() const { return tokens_[std::min(index_ + 1, tokens_.size() - 1)]; }
  bool is(Token::Type type) const { return current().type == type; }
  bool is_symbol(std::string_view text) const { return matches(current(), Token::Type::symbol, text); }
  bool is_name(std::string_view text) const { return matches(current(), Token::Type::name, text); }
  bool is_any_name(std::initializer_list<std::string_view> names) const;
  static bool matches(const Token& token, Token::Type type, std::string_view text) {
    return token.type == type && token.text == text;
  }

  Token take();
  bool skip_symbol(std::string_view text);
  bool skip_name(std::string_view text);
  Token expect(Token::Type type, std::string_view described);
  void expect_symbol(std::string_view text);
  void expect_name(std::string_view text);

  int line_of(const Token& token) const { return source_.line_of(token.offset); }
  [[noreturn]] void fail(std::string_view message) const { source_.fail_at(current().offset, message); }
  [[noreturn]] void fail_at(const Token& token, std::string_view message) const {
    source_.fail_at(token.offset, message);
  }
  [[noreturn]] void fail_unexpected(std::string_view expected) const;

 private:
  const Source& source_;
  std::vector<Token> tokens_;
  size_t index_ = 0;
};

}  // namespace sluice::jinja
