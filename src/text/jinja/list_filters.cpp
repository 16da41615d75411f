#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "text/jinja/characters.h"
#include "text/jinja/filters.h"
#include "text/jinja/operators.h"

namespace sluice::jinja {

namespace {

Value count(Budget& /*budget*/, const Value& operand, const Bound& /*arguments*/) {
  return Value::integer(length(operand));
}

Value first(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  if (operand.is_generator()) {  // takes only one item out of it
    Generator& generator = *operand.as_generator();
    if (generator.next < generator.items->items.size()) return generator.items->items[generator.next++];
  } else if (operand.is_string() && !operand.as_string().empty()) {
    return get_item(budget, operand, Value::integer(0));
  } else if (const SequencePtr items = iterate(budget, operand); !items->items.empty()) {
    return items->items.front();
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  if (operand.is_generator() || operand.is_object()) render_error("'{}' object is not reversible", operand.type_name());
  if (operand.is_string() && !operand.as_string().empty()) return get_item(budget, operand, Value::integer(-1));
  const SequencePtr items = iterate(budget, operand);
  return items->items.empty() ? Value::undefined("No last item, sequence was empty.") : items->items.back();
}

Value list(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  const SequencePtr items = iterate(budget, operand);
  budget.allocate_items(items->items.size());
  return Value::list(items->items);
}

Value items(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  std::vector<Value> pairs;
  if (operand.is_dict()) {
    budget.allocate_items(operand.as_dict().entries().size() * 4);
    for (const auto& [key, value] : operand.as_dict().entries()) pairs.push_back(Value::tuple({key, value}));
  } else if (!operand.is_undefined()) {
    render_error("Can only get item pairs from a mapping.");
  }
  return Value::generator(std::move(pairs));
}

Value reverse(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  if (operand.is_string()) return slice(budget, operand, {}, {}, Value::integer(-1));
  const SequencePtr source = iterate(budget, operand);
  budget.allocate_items(source->items.size());
  std::vector<Value> reversed(source->items.rbegin(), source->items.rend());
  return operand.is_generator() ? Value::list(std::move(reversed)) : Value::generator(std::move(reversed));
}

/// Sorts stably by keys; equal keys keep their order in both directions. A merge sort, since it needs nothing of the
/// order: with nan among the keys it is none.
std::vector<Value> sort_by(Budget& budget, const std::vector<Value>& values, const std::vector<Value>& keys,
                           bool descending) {
  const auto before = [&](size_t left, size_t right) {
    const int order_of_keys = order(budget, keys[left], keys[right]);
    return descending ? order_of_keys > 0 : order_of_keys < 0;
  };
  const size_t count = values.size();
  std::vector<size_t> places(count), merged(count);
  std::iota(places.begin(), places.end(), size_t{0});
  for (size_t run = 1; run < count; run *= 2) {
    for (size_t start = 0; start < count; start += 2 * run) {
      const size_t* first = places.data() + start;
      const size_t* middle = places.data() + std::min(start + run, count);
      const size_t* end = places.data() + std::min(start + 2 * run, count);
      std::merge(first, middle, middle, end, merged.data() + start, before);
    }
    places.swap(merged);
  }
  std::vector<Value> sorted;
  sorted.reserve(count);
  for (const size_t place : places) sorted.push_back(values[place]);
  return sorted;
}

/// The key of "sort": one value, or a list of them for "a,b".
Value sort_key(Budget& budget, const Value& item, const Value& attribute, bool ignores_case) {
  const auto key_of = [&](const Value& part) {
    const Value key = follow_attribute(budget, item, part);
    return ignores_case ? ignore_case(budget, key) : key;
  };
  if (!attribute.is_string()) return key_of(attribute);
  const std::string& text = attribute.as_string();
  if (text.find(',') == text.npos) return key_of(attribute);
  std::vector<Value> keys;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    keys.push_back(key_of(Value::text(text.substr(start, end - start))));
    start = end + 1;
  }
  return Value::list(std::move(keys));
}

Value attribute_of(const Bound& arguments, size_t parameter) {
  return arguments.get(parameter) ? arguments.value(parameter) : Value::none();
}

Value sort(Budget& budget, const Value& operand, const Bound& arguments) {
  const SequencePtr source = iterate(budget, operand);
  budget.allocate_items(source->items.size() * 2);
  std::vector<Value> keys;
  for (const Value& item : source->items)
    keys.push_back(sort_key(budget, item, attribute_of(arguments, 2), !arguments.truth(1, false)));
  return Value::list(sort_by(budget, source->items, keys, arguments.truth(0, false)));
}

Value sort_dict(Budget& budget, const Value& operand, const Bound& arguments) {
  const std::string_view by = arguments.text(1, "key");
  if (by != "key" && by != "value") render_error("You can only sort by either \"key\" or \"value\"");
  if (operand.is_undefined()) throw RenderError(operand.undefined_message());
  if (!operand.is_dict()) render_error("dictsort needs a mapping, not '{}'", operand.type_name());
  std::vector<Value> pairs, keys;
  budget.allocate_items(operand.as_dict().entries().size() * 4);
  for (const auto& [key, value] : operand.as_dict().entries()) {
    pairs.push_back(Value::tuple({key, value}));
    const Value& chosen = by == "key" ? key : value;
    keys.push_back(arguments.truth(0, false) ? chosen : ignore_case(budget, chosen));
  }
  return Value::list(sort_by(budget, pairs, keys, arguments.truth(2, false)));
}

Value unique(Budget& budget, const Value& operand, const Bound& arguments) {
  Dict seen;
  std::vector<Value> kept;
  const SequencePtr source = iterate(budget, operand);
  budget.allocate_items(source->items.size() * 3);
  for (const Value& item : source->items) {
    const Value key = sort_key(budget, item, attribute_of(arguments, 1), !arguments.truth(0, false));
    budget.spend(key.weight());
    static_cast<void>(hash_of(key));
    if (seen.find(key) != nullptr) continue;
    seen.set(key, Value::none());
    kept.push_back(item);
  }
  return Value::generator(std::move(kept));
}

template <int direction>
Value extreme(Budget& budget, const Value& operand, const Bound& arguments) {
  const SequencePtr source = iterate(budget, operand);
  if (source->items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto key_of = [&](const Value& item) {
    const Value key = follow_attribute(budget, item, attribute_of(arguments, 1));
    return arguments.truth(0, false) ? key : ignore_case(budget, key);
  };
  const Value* best = &source->items.front();
  Value best_key = key_of(*best);
  for (size_t i = 1; i < source->items.size(); ++i) {
    Value key = key_of(source->items[i]);
    if (order(budget, key, best_key) * direction <= 0) continue;
    best = &source->items[i];
    best_key = std::move(key);
  }
  return *best;
}

Value sum(Budget& budget, const Value& operand, const Bound& arguments) {
  Value total = arguments.get(1) ? arguments.value(1) : Value::integer(0);
  if (total.is_string()) render_error("sum() can't sum strings");
  const SequencePtr source = iterate(budget, operand);
  for (const Value& item : source->items) {
    budget.spend(1);
    total = calculate(budget, Operator::add, total, follow_attribute(budget, item, attribute_of(arguments, 0)));
  }
  return total;
}

Value batch(Budget& budget, const Value& operand, const Bound& arguments) {
  const int64_t size = arguments.integer(0, 1);
  const SequencePtr source = iterate(budget, operand);
  budget.allocate_items(source->items.size() * 3);
  std::vector<Value> batches, current;
  for (const Value& item : source->items) {
    if (static_cast<int64_t>(current.size()) == size) batches.push_back(Value::list(std::exchange(current, {})));
    current.push_back(item);
  }
  if (current.empty()) return Value::generator(std::move(batches));
  if (const Value* fill = arguments.given(1)) {
    if (static_cast<int64_t>(current.size()) < size) {
      budget.allocate_items(static_cast<uint64_t>(size));
      current.resize(static_cast<size_t>(size), *fill);
    }
  }
  batches.push_back(Value::list(std::move(current)));
  return Value::generator(std::move(batches));
}

Value slices(Budget& budget, const Value& operand, const Bound& arguments) {
  const int64_t count = arguments.integer(0, 1);
  if (count == 0) render_error("integer division or modulo by zero");
  const SequencePtr source = iterate(budget, operand);
  budget.allocate_items(source->items.size() + 3 * static_cast<uint64_t>(std::max<int64_t>(count, 0)));
  const auto size = static_cast<int64_t>(source->items.size());
  std::vector<Value> made;
  auto next = source->items.begin();
  for (int64_t i = 0; i < count; ++i) {
    const bool longer = i < size % count;
    const auto end = next + size / count + (longer ? 1 : 0);
    std::vector<Value> part(next, end);
    next = end;
    if (!longer && arguments.given(1)) part.push_back(arguments.value(1));
    made.push_back(Value::list(std::move(part)));
  }
  return Value::generator(std::move(made));
}

Value group_by(Budget& budget, const Value& operand, const Bound& arguments) {
  const bool case_sensitive = arguments.truth(2, false);
  const SequencePtr source = iterate(budget, operand);
  budget.allocate_items(source->items.size() * 6);
  const auto name_of = [&](const Value& item) {
    Value name = follow_attribute(budget, item, arguments.value(0));
    return name.is_undefined() && arguments.given(1) ? arguments.value(1) : name;
  };
  const auto key_of = [&](const Value& item) {
    return case_sensitive ? name_of(item) : ignore_case(budget, name_of(item));
  };
  std::vector<Value> keys;
  for (const Value& item : source->items) keys.push_back(key_of(item));
  const auto sorted = sort_by(budget, source->items, keys, false);
  std::vector<Value> groups;
  for (size_t start = 0; start < sorted.size();) {
    size_t end = start + 1;
    while (end < sorted.size() && equal(budget, key_of(sorted[start]), key_of(sorted[end]))) ++end;
    Sequence group;
    group.type = Sequence::Type::group;
    group.items.push_back(name_of(sorted[start]));
    group.items.push_back(Value::list(std::vector<Value>(&sorted[start], &sorted[start] + (end - start))));
    groups.push_back(Value::sequence(std::move(group)));
    start = end;
  }
  return Value::list(std::move(groups));
}

Value fallback(Budget& /*budget*/, const Value& operand, const Bound& arguments) {
  if (!operand.is_undefined() && !(arguments.truth(1, false) && !operand.truthy())) return operand;
  return arguments.get(0) ? arguments.value(0) : Value::text({});
}

Value attribute(Budget& /*budget*/, const Value& operand, const Bound& arguments) {
  return get_own_attribute(operand, std::string(arguments.text(0, {})));
}

constexpr std::array table = {
    FilterEntry{"attr", attribute, "name"},
    FilterEntry{"batch", batch, "linecount fill_with?"},
    FilterEntry{"count", count, ""},
    FilterEntry{"d", fallback, "default_value? boolean?"},
    FilterEntry{"default", fallback, "default_value? boolean?"},
    FilterEntry{"dictsort", sort_dict, "case_sensitive? by? reverse?"},
    FilterEntry{"first", first, ""},
    FilterEntry{"groupby", group_by, "attribute default? case_sensitive?"},
    FilterEntry{"items", items, ""},
    FilterEntry{"last", last, ""},
    FilterEntry{"length", count, ""},
    FilterEntry{"list", list, ""},
    FilterEntry{"max", extreme<1>, "case_sensitive? attribute?"},
    FilterEntry{"min", extreme<-1>, "case_sensitive? attribute?"},
    FilterEntry{"reverse", reverse, ""},
    FilterEntry{"slice", slices, "slices fill_with?"},
    FilterEntry{"sort", sort, "reverse? case_sensitive? attribute?"},
    FilterEntry{"sum", sum, "attribute? start?"},
    FilterEntry{"unique", unique, "case_sensitive? attribute?"},
};

}  // namespace

std::span<const FilterEntry> list_filters() { return table; }

}  // namespace sluice::jinja
