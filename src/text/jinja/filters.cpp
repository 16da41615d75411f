#include "text/jinja/filters.h"

#include <algorithm>

#include "text/jinja/characters.h"
#include "text/jinja/operators.h"
#include "text/jinja/split.h"

namespace sluice::jinja {

const FilterEntry* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), number_filters(), list_filters(), selection_filters()})
    for (const FilterEntry& entry : table)
      if (entry.name == name) return &entry;
  return nullptr;
}

Value call_filter(Budget& budget, const FilterEntry& filter, const Value& operand, const Arguments& arguments) {
  budget.spend(1);
  return filter.run(budget, operand, Bound(filter.name, filter.parameters, arguments));
}

Value follow_attribute(Budget& budget, Value value, const Value& attribute) {
  if (attribute.is_none()) return value;
  if (!attribute.is_string()) return get_item(budget, value, attribute);
  budget.read(attribute.as_string().size() * 4);
  for (const std::string_view part : split_text(attribute.as_string(), ".", -1)) {
    const bool is_number = !part.empty() && part.size() < 18 &&
                           std::all_of(part.begin(), part.end(), [](char byte) { return byte >= '0' && byte <= '9'; });
    const Value key = is_number ? Value::integer(std::stoll(std::string(part))) : Value::text(std::string(part));
    value = get_item(budget, value, key);
  }
  return value;
}

Value ignore_case(Budget& budget, const Value& value) {
  if (!value.is_string()) return value;
  return new_text(budget, to_lower(value.as_string()));
}

}  // namespace sluice::jinja
