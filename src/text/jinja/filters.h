#pragma once
#include <span>
#include <string_view>

#include "text/jinja/signature.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

struct FilterEntry {
  std::string_view name;
  Value (*run)(Budget& budget, const Value& operand, const Bound& arguments);
  std::string_view parameters;  // as Bound reads them
};

/// Null for a name that is unknown, or known to jinja2 but not supported here.
const FilterEntry* find_filter(std::string_view name);
Value call_filter(Budget& budget, const FilterEntry& filter, const Value& operand, const Arguments& arguments);

// The tables behind find_filter.
std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> number_filters();
std::span<const FilterEntry> list_filters();
std::span<const FilterEntry> selection_filters();

/// Follows a filter's attribute argument ("a.b.0" or a number) into a value.
Value follow_attribute(Budget& budget, Value value, const Value& attribute);
/// Lower case for strings, else the value itself: the key of comparisons that ignore case.
Value ignore_case(Budget& budget, const Value& value);

}  // namespace sluice::jinja
