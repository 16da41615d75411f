#include "text/jinja/token_stream.h"

#include <algorithm>

#include <fmt/format.h>

namespace sluice::jinja {

namespace {

std::string describe(const Token& token) {
  switch (token.type) {
    case Token::Type::data: return "template text";
    case Token::Type::block_begin: return "'{%'";
    case Token::Type::block_end: return "the end of the tag";
    case Token::Type::variable_begin: return "'{{'";
    case Token::Type::variable_end: return "'}}'";
    case Token::Type::string: return "a string";
    case Token::Type::integer:
    case Token::Type::floating: return "a number";
    case Token::Type::end: return "the end of the template";
    case Token::Type::name:
    case Token::Type::symbol: break;
  }
  return fmt::format("'{}'", token.text);
}

}  // namespace

bool TokenStream::is_any_name(std::initializer_list<std::string_view> names) const {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return is_name(name); });
}

Token TokenStream::take() {
  const size_t taken = index_;
  if (index_ + 1 < tokens_.size()) ++index_;
  return tokens_[taken];
}

bool TokenStream::skip_symbol(std::string_view text) {
  if (!is_symbol(text)) return false;
  take();
  return true;
}

bool TokenStream::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  take();
  return true;
}

Token TokenStream::expect(Token::Type type, std::string_view described) {
  if (!is(type)) fail_unexpected(described);
  return take();
}

void TokenStream::expect_symbol(std::string_view text) {
  if (!skip_symbol(text)) fail_unexpected(fmt::format("'{}'", text));
}

void TokenStream::expect_name(std::string_view text) {
  if (!skip_name(text)) fail_unexpected(fmt::format("'{}'", text));
}

void TokenStream::fail_unexpected(std::string_view expected) const {
  fail(fmt::format("expected {}, found {}", expected, describe(current())));
}

}  // namespace sluice::jinja
