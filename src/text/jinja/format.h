#pragma once
#include <string>

#include "text/jinja/value.h"

namespace sluice::jinja {

/// Python's `text % values`: values is a tuple, a dict for "%(name)s", or one value.
std::string format_percent(Budget& budget, std::string_view text, const Value& values);
/// Python's text.format(...).
std::string format_braces(Budget& budget, std::string_view text, const Arguments& arguments);

/// How one value is to be written.
struct FormatSpec {
  char32_t fill = ' ';
  char align = '\0';  // '<', '>', '^', '=' or the type's own
  char sign = '-';
  bool alternate = false;
  char grouping = '\0';  // ',' or '_'
  int64_t width = 0;
  int64_t precision = -1;  // none
  char type = '\0';
};

/// Digits of numbers as both kinds of formatting write them, without padding.
std::string format_integer(int64_t value, const FormatSpec& spec);
std::string format_double(double value, const FormatSpec& spec);
/// The text with fill characters up to the width.
std::string pad(Budget& budget, std::string text, const FormatSpec& spec, char default_align);

}  // namespace sluice::jinja
