#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "text/jinja/budget.h"
#include "text/jinja/characters.h"
#include "text/jinja/literals.h"

namespace sluice::jinja {

namespace {

using Type = Token::Type;

constexpr std::array<std::string_view, 26> symbols = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  std::vector<Token> run() {
    while (position_ < text_.size()) read_data();
    add(Type::end, text_.size());
    return std::move(tokens_);
  }

 private:
  bool at(std::string_view expected) const { return text_.substr(position_).starts_with(expected); }

  void add(Type type, size_t offset, std::string text = {}) {
    Token token;
    token.type = type;
    token.offset = offset;
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
  }

  void skip_spaces() {
    while (position_ < text_.size()) {
      size_t next = position_;
      if (!is_space(next_character(text_, next))) return;
      position_ = next;
    }
  }

  size_t find_tag(size_t from) const {
    for (size_t found = text_.find('{', from); found != text_.npos; found = text_.find('{', found + 1)) {
      const char next = found + 1 < text_.size() ? text_[found + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return found;
    }
    return text_.npos;
  }

  /// Consumes the sign behind "{%", "{{" or "{#".
  char read_sign() {
    const char next = position_ < text_.size() ? text_[position_] : '\0';
    if (next != '-' && next != '+') return '\0';
    ++position_;
    return next;
  }

  /// Data up to a tag, without the white space that the tag takes away.
  void add_data(size_t start, size_t stop, char sign, bool is_variable) {
    std::string_view data = text_.substr(start, stop - start);
    if (sign == '-') {
      data = strip(data, std::nullopt, false, true);
    } else if (sign != '+' && !is_variable) {
      const size_t line_start = data.rfind('\n') + 1;
      const bool is_line = line_start > 0 || start == 0 || text_[start - 1] == '\n';
      if (is_line && strip(data.substr(line_start), std::nullopt, true, false).empty())
        data = data.substr(0, line_start);
    }
    if (!data.empty()) add(Type::data, start, std::string(data));
  }

  void read_data() {
    const size_t start = position_, tag = find_tag(start);
    if (tag == text_.npos) {
      add(Type::data, start, std::string(text_.substr(start)));
      position_ = text_.size();
      return;
    }
    position_ = tag + 2;
    const char sign = read_sign(), kind = text_[tag + 1];
    add_data(start, tag, sign, kind == '{');
    if (kind == '#') {
      read_comment(tag);
    } else if (kind == '{') {
      read_tag(tag, Type::variable_begin, Type::variable_end, "}}");
    } else if (!read_raw(tag)) {
      read_tag(tag, Type::block_begin, Type::block_end, "%}");
    }
  }

  /// Behind a closing tag: "-" takes white space away, "+" nothing, neither one line end.
  void trim_behind(char sign) {
    if (sign == '-') {
      skip_spaces();
    } else if (sign != '+' && position_ < text_.size() && text_[position_] == '\n') {
      ++position_;
    }
  }

  void read_comment(size_t tag) {
    const size_t content = position_, end = text_.find("#}", content);
    if (end == text_.npos) source_.fail_at(tag, "the comment is never closed by '#}'");
    const char sign = end > content ? text_[end - 1] : '\0';
    position_ = end + 2;
    trim_behind(sign);
  }

  /// Consumes a closing tag with its sign, if there is one here.
  std::optional<char> read_close(std::string_view close, bool plus_allowed) {
    const char first = position_ < text_.size() ? text_[position_] : '\0';
    const bool has_sign = first == '-' || (first == '+' && plus_allowed);
    if (!text_.substr(position_ + (has_sign ? 1 : 0)).starts_with(close)) return std::nullopt;
    position_ += close.size() + (has_sign ? 1 : 0);
    return has_sign ? first : '\0';
  }

  /// "{% raw %}": everything up to "{% endraw %}" is data. False, nothing consumed, for another tag.
  bool read_raw(size_t tag) {
    const size_t behind_sign = position_;
    std::optional<char> closed;
    skip_spaces();
    if (at("raw")) {
      position_ += 3;
      skip_spaces();
      closed = read_close("%}", false);
    }
    if (!closed) {
      position_ = behind_sign;
      return false;
    }
    if (*closed == '-') skip_spaces();
    const size_t start = position_;
    for (size_t end = text_.find("{%", start); end != text_.npos; end = text_.find("{%", end + 1)) {
      position_ = end + 2;
      const char sign = read_sign();
      skip_spaces();
      if (!at("endraw")) continue;
      position_ += 6;
      skip_spaces();
      if (const auto closing = read_close("%}", true)) {
        add_data(start, end, sign, false);
        trim_behind(*closing);
        return true;
      }
    }
    source_.fail_at(tag, "the raw block is never closed by '{% endraw %}'");
  }

  void read_tag(size_t tag, Type begin, Type end, std::string_view close) {
    add(begin, tag);
    std::string brackets;  // the closing ones expected
    while (position_ < text_.size()) {
      const size_t start = position_;
      if (brackets.empty()) {
        if (const auto sign = read_close(close, end == Type::block_end)) {
          add(end, start);
          if (end == Type::block_end) {
            trim_behind(*sign);
          } else if (*sign == '-') {
            skip_spaces();
          }
          return;
        }
      }
      skip_spaces();
      if (position_ == start) read_token(brackets);
    }
  }

  void read_token(std::string& brackets) {
    const char first = text_[position_];
    if (std::isdigit(static_cast<unsigned char>(first))) return read_number();
    if (first == '\'' || first == '"') return read_string(first);
    size_t next = position_;
    const char32_t character = next_character(text_, next);
    if (first == '_' || is_alphabetic(character)) return read_name();
    for (const std::string_view symbol : symbols) {
      if (!at(symbol)) continue;
      balance(symbol, brackets);
      add(Type::symbol, position_, std::string(symbol));
      position_ += symbol.size();
      return;
    }
    source_.fail_at(position_, fmt::format("unexpected character '{}'", text_.substr(position_, next - position_)));
  }

  void balance(std::string_view symbol, std::string& brackets) {
    if (symbol == "(") brackets.push_back(')');
    if (symbol == "[") brackets.push_back(']');
    if (symbol == "{") brackets.push_back('}');
    if (symbol != ")" && symbol != "]" && symbol != "}") return;
    if (brackets.empty()) source_.fail_at(position_, fmt::format("unexpected '{}'", symbol));
    if (brackets.back() != symbol[0])
      source_.fail_at(position_, fmt::format("unexpected '{}', expected '{}'", symbol, brackets.back()));
    brackets.pop_back();
  }

  void read_name() {
    const size_t start = position_;
    while (position_ < text_.size()) {
      size_t next = position_;
      const char32_t character = next_character(text_, next);
      if (character != '_' && !is_alphanumeric(character)) break;
      position_ = next;
    }
    add(Type::name, start, std::string(text_.substr(start, position_ - start)));
  }

  void read_number() {
    const bool behind_dot = position_ > 0 && text_[position_ - 1] == '.';
    const size_t start = position_;
    const NumberLiteral literal = read_number_literal(text_.substr(start), !behind_dot);
    position_ += literal.size;
    if (!literal.valid) source_.fail_at(start, "an integer outside of 64 bits is not supported");
    add(literal.is_float ? Type::floating : Type::integer, start);
    tokens_.back().integer = literal.integer;
    tokens_.back().floating = literal.floating;
  }

  void read_string(char quote) {
    const size_t start = position_++;
    while (position_ < text_.size() && text_[position_] != quote) position_ += text_[position_] == '\\' ? 2 : 1;
    if (position_ >= text_.size()) source_.fail_at(start, "the string is never closed");
    std::string value, error;
    if (!unescape(text_.substr(start + 1, position_ - start - 1), value, error)) source_.fail_at(start, error);
    ++position_;
    add(Type::string, start, std::move(value));
  }

  const Source& source_;
  std::string_view text_;
  size_t position_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

Source::Source(std::string_view text, std::string_view what) : what_(what) {
  if (text.size() > max_source_bytes)
    fail<LoadError>("{}: a template of {} bytes; at most {} are accepted", what_, text.size(), max_source_bytes);
  text_.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      text_.push_back('\n');
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else {
      text_.push_back(text[i]);
    }
  }
  if (text_.ends_with('\n')) text_.pop_back();
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  for (size_t position = 0; position < text_.size();) {
    const size_t start = position;
    next_character(text_, position);
    if (position == start + 1 && static_cast<unsigned char>(text_[start]) >= 0x80)
      fail_at(start, "the template is not valid UTF-8");
  }
}

int Source::line_of(size_t offset) const {
  const auto behind = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<int>(behind - line_starts_.begin());
}

void Source::fail_at(size_t offset, std::string_view message) const {
  const int line = line_of(offset);
  const size_t start = line_starts_[static_cast<size_t>(line) - 1];
  const size_t column = 1 + count_characters(std::string_view(text_).substr(start, offset - start));
  fail<LoadError>("{}, line {}, column {}: {}", what_, line, column, message);
}

std::vector<Token> tokenize(const Source& source) { return Lexer(source).run(); }

}  // namespace sluice::jinja
