#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jinja {

struct Token {
  enum class Type {
    data,
    block_begin,
    block_end,
    variable_begin,
    variable_end,
    name,
    string,
    integer,
    floating,
    symbol,
    end
  };
  Type type = Type::end;
  size_t offset = 0;  // into Source::text
  std::string text;   // data, a name, a string's value, or a symbol such as "**"
  int64_t integer = 0;
  double floating = 0;
};

/// A template's text with "\n" line ends and without its last one, as jinja2 reads it.
class Source {
 public:
  /// `what` names the template in errors. Throws LoadError when too large or not UTF-8.
  Source(std::string_view text, std::string_view what);
  const std::string& text() const { return text_; }
  const std::string& what() const { return what_; }
  int line_of(size_t offset) const;  // from 1
  /// Throws LoadError with the line and column of the offset.
  [[noreturn]] void fail_at(size_t offset, std::string_view message) const;

 private:
  std::string text_, what_;
  std::vector<size_t> line_starts_;
};

/// Tokens with trim_blocks and lstrip_blocks on; comments are gone, raw blocks are data. Ends with Type::end.
std::vector<Token> tokenize(const Source& source);

}  // namespace sluice::jinja
