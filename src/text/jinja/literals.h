#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::jinja {

struct NumberLiteral {
  size_t size = 0;  // bytes read
  bool is_float = false;
  bool valid = true;  // false: an integer outside of 64 bits
  int64_t integer = 0;
  double floating = 0;
};

/// Reads the number at the beginning of the text, which begins with a digit, as jinja2's lexer does.
NumberLiteral read_number_literal(std::string_view text, bool float_allowed);

/// Resolves the escapes of a Python string literal. False, with a message, for broken ones.
bool unescape(std::string_view text, std::string& value, std::string& error);

/// Python's int(text, base) and float(text): white space around, signs, "_" between digits, "inf" and "nan".
std::optional<int64_t> parse_integer(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

}  // namespace sluice::jinja
