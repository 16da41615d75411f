#pragma once
#include <optional>
#include <string>

#include "text/jinja/value.h"

namespace sluice::jinja {

/// Python's str() and repr(). Both pay for the walk and for the text.
std::string to_string(Budget& budget, const Value& value);
std::string to_repr(Budget& budget, const Value& value);

std::string float_repr(double value);
/// A string as Python writes it in a list: in quotes, with escapes.
void append_quoted(std::string& out, std::string_view text);

struct JsonStyle {
  bool ascii_only = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level of it; none: everything on one line
  std::optional<std::string> item_separator, key_separator;
};

/// Python's json.dumps.
std::string to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace sluice::jinja
