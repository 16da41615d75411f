#pragma once
#include <string>

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

// Python's operators, with its errors as RenderError.
Value calculate(Budget& budget, Operator kind, const Value& left, const Value& right);
Value change_sign(const Value& operand, bool negative);
bool compare(Budget& budget, Comparison kind, const Value& left, const Value& right);
/// Negative, zero or positive; throws for types without an order.
int order(Budget& budget, const Value& left, const Value& right);
bool equal(Budget& budget, const Value& left, const Value& right);

/// `object.name`: an attribute or method first, then an item. `object[key]`: the other way around.
/// What is not there is undefined; anything of an undefined value is an error.
Value get_attribute(Budget& budget, const Value& object, const std::string& name);
Value get_item(Budget& budget, const Value& object, const Value& key);
/// An attribute or method only, as the filter "attr" looks it up.
Value get_own_attribute(const Value& object, const std::string& name);
/// object[start:stop:step] of a string, list, tuple or range; undefined or none stands for an absent bound.
Value slice(Budget& budget, const Value& object, const Value& start, const Value& stop, const Value& step);

/// The items that a loop meets: of lists, the keys of dicts, the characters of strings; uses up a generator.
SequencePtr iterate(Budget& budget, const Value& value);
/// len(), or an error.
int64_t length(const Value& value);
/// The range of Python's range(), no longer than max_range.
Value make_range(Budget& budget, int64_t start, int64_t stop, int64_t step);
Value new_text(Budget& budget, std::string text);
std::string escape_html(Budget& budget, const Value& value);

}  // namespace sluice::jinja
