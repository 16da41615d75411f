#include <array>
#include <functional>

#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/tests.h"

namespace sluice::jinja {

namespace {

/// The arguments behind the first `count` positional ones.
Arguments without_first(const Arguments& all, size_t count) {
  Arguments rest;
  rest.positional.assign(all.positional.begin() + static_cast<std::ptrdiff_t>(count), all.positional.end());
  rest.keyword = all.keyword;
  return rest;
}

/// These filters take anything false, also None and 0, for an empty list.
SequencePtr iterate_unless_false(Budget& budget, const Value& operand) {
  return iterate(budget, operand.truthy() ? operand : Value());
}

const std::string& name_argument(const Value& value, std::string_view filter) {
  if (!value.is_string()) render_error("{}: a name is needed, not '{}'", filter, value.type_name());
  return value.as_string();
}

Value map_attribute(Budget& budget, const std::vector<Value>& items, const Arguments& all) {
  Value attribute, fallback;
  for (const auto& [name, value] : all.keyword) {
    if (name != "attribute" && name != "default") render_error("Unexpected keyword argument '{}'", name);
    (name == "attribute" ? attribute : fallback) = value;
  }
  std::vector<Value> mapped;
  for (const Value& item : items) {
    Value found = follow_attribute(budget, item, attribute);
    const bool use_fallback = found.is_undefined() && !fallback.is_undefined() && !fallback.is_none();
    mapped.push_back(use_fallback ? fallback : std::move(found));
  }
  return Value::generator(std::move(mapped));
}

Value map(Budget& budget, const Value& operand, const Bound& arguments) {
  const Arguments& all = arguments.all();
  const SequencePtr source = iterate_unless_false(budget, operand);
  budget.allocate_items(source->items.size());
  if (all.positional.empty()) {
    if (all.keyword.empty()) render_error("map requires a filter argument");
    return map_attribute(budget, source->items, all);
  }
  const std::string& name = name_argument(all.positional[0], "map");
  const FilterEntry* filter = find_filter(name);
  if (filter == nullptr) render_error("the filter '{}' is unknown or not supported", name);
  const Arguments rest = without_first(all, 1);
  std::vector<Value> mapped;
  for (const Value& item : source->items) mapped.push_back(call_filter(budget, *filter, item, rest));
  return Value::generator(std::move(mapped));
}

template <bool wanted, bool by_attribute>
Value select(Budget& budget, const Value& operand, const Bound& arguments) {
  const Arguments& all = arguments.all();
  if (by_attribute && all.positional.empty()) render_error("Missing parameter for attribute name");
  const size_t names = by_attribute ? 1 : 0;
  const TestEntry* test = nullptr;
  Arguments rest;
  if (all.positional.size() > names) {
    const std::string& name = name_argument(all.positional[names], arguments.function());
    test = find_test(name);
    if (test == nullptr) render_error("there is no test named '{}'", name);
    rest = without_first(all, names + 1);
  }
  const SequencePtr source = iterate_unless_false(budget, operand);
  budget.allocate_items(source->items.size());
  std::vector<Value> kept;
  for (const Value& item : source->items) {
    budget.spend(1);
    const Value subject = by_attribute ? follow_attribute(budget, item, all.positional[0]) : item;
    const bool passes = test ? call_test(budget, *test, subject, rest) : subject.truthy();
    if (passes == wanted) kept.push_back(item);
  }
  return Value::generator(std::move(kept));
}

constexpr std::array table = {
    FilterEntry{"map", map, "*"},
    FilterEntry{"reject", select<false, false>, "*"},
    FilterEntry{"rejectattr", select<false, true>, "*"},
    FilterEntry{"select", select<true, false>, "*"},
    FilterEntry{"selectattr", select<true, true>, "*"},
};

}  // namespace

std::span<const FilterEntry> selection_filters() { return table; }

}  // namespace sluice::jinja
