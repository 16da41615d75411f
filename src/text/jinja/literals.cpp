#include "text/jinja/literals.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "text/jinja/characters.h"

namespace sluice::jinja {

namespace {

int digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const int lower = std::tolower(static_cast<unsigned char>(digit));
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

/// Length of a run of digits with single "_" between them, from `start`.
size_t digits_at(std::string_view text, size_t start, int base) {
  size_t end = start;
  while (end < text.size()) {
    const bool joined = text[end] == '_' && end > start && end + 1 < text.size();
    if (digit_value(text[joined ? end + 1 : end]) >= base) break;
    end += joined ? 2 : 1;
  }
  return end - start;
}

std::string without_underscores(std::string_view text) {
  std::string plain;
  for (const char byte : text)
    if (byte != '_') plain.push_back(byte);
  return plain;
}

std::optional<int64_t> to_integer(std::string_view digits, int base, bool negative) {
  const std::string plain = (negative ? "-" : "") + without_underscores(digits);
  int64_t value = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value, base);
  if (result.ec != std::errc() || result.ptr != plain.data() + plain.size()) return std::nullopt;
  return value;
}

double to_double(const std::string& plain) {
  double value = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (result.ec == std::errc::result_out_of_range) value = std::strtod(plain.c_str(), nullptr);
  return value;
}

/// Bytes of a float's fraction and exponent from `start`; 0 when there is neither.
size_t float_tail(std::string_view text, size_t start) {
  size_t end = start;
  if (end < text.size() && text[end] == '.') {
    const size_t fraction = digits_at(text, end + 1, 10);
    if (fraction == 0) return 0;
    end += 1 + fraction;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const size_t exponent = digits_at(text, digits, 10);
    if (exponent > 0) end = digits + exponent;
  }
  return end - start;
}

int prefix_base(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 0;
  const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(text[1])));
  return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
}

constexpr std::array<std::pair<char, char>, 10> simple_escapes = {{{'\\', '\\'},
                                                                   {'\'', '\''},
                                                                   {'"', '"'},
                                                                   {'a', '\a'},
                                                                   {'b', '\b'},
                                                                   {'f', '\f'},
                                                                   {'n', '\n'},
                                                                   {'r', '\r'},
                                                                   {'t', '\t'},
                                                                   {'v', '\v'}}};

/// The value of `count` hexadecimal digits.
std::optional<uint32_t> hexadecimal(std::string_view digits, size_t count) {
  if (digits.size() < count) return std::nullopt;
  uint32_t value = 0;
  for (const char digit : digits.substr(0, count)) {
    if (digit_value(digit) >= 16) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(digit_value(digit));
  }
  return value;
}

bool unescape_number(std::string_view text, size_t& position, std::string& value, std::string& error) {
  const char kind = text[position];
  const size_t count = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  const auto code = hexadecimal(text.substr(position + 1), count);
  if (!code || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) {
    error = std::string("the escape '\\") + kind + "' does not name a character";
    return false;
  }
  append_character(value, *code);
  position += 1 + count;
  return true;
}

void unescape_octal(std::string_view text, size_t& position, std::string& value) {
  char32_t code = 0;
  for (int i = 0; i < 3 && position < text.size() && digit_value(text[position]) < 8; ++i)
    code = code * 8 + static_cast<char32_t>(digit_value(text[position++]));
  append_character(value, code);
}

}  // namespace

NumberLiteral read_number_literal(std::string_view text, bool float_allowed) {
  NumberLiteral literal;
  const size_t whole = digits_at(text, 0, 10);
  const size_t tail = float_allowed ? float_tail(text, whole) : 0;
  if (tail > 0) {
    literal.is_float = true;
    literal.size = whole + tail;
    literal.floating = to_double(without_underscores(text.substr(0, literal.size)));
    return literal;
  }
  int base = prefix_base(text);
  size_t start = base == 0 ? 0 : 2;
  if (base != 0 && start < text.size() && text[start] == '_') ++start;
  size_t digits = base == 0 ? 0 : digits_at(text, start, base);
  if (digits == 0) {
    base = 10;
    start = 0;
    digits = whole;
    if (text[0] == '0') {  // zeros end a number that begins with one
      digits = 1;
      while (digits < whole && (text[digits] == '0' || text[digits] == '_')) ++digits;
    }
  }
  literal.size = start + digits;
  const auto value = to_integer(text.substr(start, digits), base, false);
  literal.valid = value.has_value();
  literal.integer = value.value_or(0);
  return literal;
}

bool unescape(std::string_view text, std::string& value, std::string& error) {
  for (size_t position = 0; position < text.size();) {
    if (text[position] != '\\' || position + 1 == text.size()) {
      value.push_back(text[position++]);
      continue;
    }
    const char kind = text[++position];
    if (kind == 'x' || kind == 'u' || kind == 'U') {
      if (!unescape_number(text, position, value, error)) return false;
    } else if (kind >= '0' && kind <= '7') {
      unescape_octal(text, position, value);
    } else if (kind == 'N') {
      error = "the escape '\\N{...}' is not supported";
      return false;
    } else if (kind == '\n') {
      ++position;
    } else {
      const auto* found = std::find_if(simple_escapes.begin(), simple_escapes.end(),
                                       [&](const auto& escape) { return escape.first == kind; });
      if (found == simple_escapes.end()) value.push_back('\\');
      value.push_back(found == simple_escapes.end() ? kind : found->second);
      ++position;
    }
  }
  return true;
}

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  text = strip(text, std::nullopt, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const int prefix = prefix_base(text);
  if (prefix != 0 && (base == 0 || base == prefix)) {
    base = prefix;
    text.remove_prefix(text.size() > 2 && text[2] == '_' ? 3 : 2);
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36 || text.empty() || digits_at(text, 0, base) != text.size()) return std::nullopt;
  return to_integer(text, base, negative);
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text, std::nullopt, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const double sign = negative ? -1 : 1;
  const std::string lower = text.size() <= 8 ? to_lower(text) : std::string();
  if (lower == "inf" || lower == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
  const size_t whole = digits_at(text, 0, 10);
  size_t end = whole;
  if (end < text.size() && text[end] == '.') {
    const size_t fraction = digits_at(text, end + 1, 10);
    if (whole + fraction == 0) return std::nullopt;
    end += 1 + fraction;
  } else if (whole == 0) {
    return std::nullopt;
  }
  if (end < text.size()) {
    if (text[end] == '.') return std::nullopt;
    end += float_tail(text, end);
  }
  if (end != text.size()) return std::nullopt;
  return sign * to_double(without_underscores(text));
}

}  // namespace sluice::jinja
