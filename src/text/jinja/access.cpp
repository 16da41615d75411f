#include <algorithm>

#include "text/jinja/characters.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace sluice::jinja {

namespace {

std::string described(const Value& object) { return object.is_none() ? "None" : object.type_name() + " object"; }

Value missing_attribute(const Value& object, const std::string& name) {
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", described(object), name));
}

Value missing_item(Budget& budget, const Value& object, const Value& key) {
  if (key.is_string()) return missing_attribute(object, key.as_string());
  return Value::undefined(fmt::format("{} has no element {}", described(object), to_repr(budget, key)));
}

bool can_hash(const Value& key) {
  if (key.is_sequence() && key.as_sequence()->is_hashable())
    return std::all_of(key.as_sequence()->items.begin(), key.as_sequence()->items.end(), can_hash);
  return !key.is_dict() && !key.is_sequence();
}

std::optional<int64_t> position_of(int64_t index, size_t size) {
  const auto length = static_cast<int64_t>(size);
  const int64_t position = index < 0 ? index + length : index;
  return position < 0 || position >= length ? std::nullopt : std::optional(position);
}

std::optional<Value> character_at(Budget& budget, const Text& text, int64_t index) {
  const auto position = position_of(index, text.length);
  if (!position) return std::nullopt;
  const auto wanted = static_cast<size_t>(*position);
  if (text.is_ascii()) return Value::text(text.bytes.substr(wanted, 1));
  budget.read(text.bytes.size());
  size_t start = offset_of_character(text.bytes, wanted), end = start;
  next_character(text.bytes, end);
  return Value::text(text.bytes.substr(start, end - start));
}

/// What Python's object[key] gives; nothing where it raises TypeError or LookupError.
std::optional<Value> own_item(Budget& budget, const Value& object, const Value& key) {
  if (object.is_dict()) {
    budget.spend(key.weight());
    if (!can_hash(key)) return std::nullopt;
    const Value* found = object.as_dict().find(key);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!key.is_integral()) return std::nullopt;
  if (object.is_string()) return character_at(budget, object.as_text(), key.as_integer());
  if (!object.is_sequence() || object.as_sequence()->is_view()) return std::nullopt;
  const auto& items = object.as_sequence()->items;
  const auto position = position_of(key.as_integer(), items.size());
  return position ? std::optional(items[static_cast<size_t>(*position)]) : std::nullopt;
}

/// Methods of the objects behind values, and the fields of groupby's tuples.
std::optional<Value> own_attribute(const Value& object, const std::string& name) {
  if (name.starts_with("_")) return std::nullopt;
  if (object.is_object()) return object.as_object()->attribute(name);
  if (object.is_sequence() && object.as_sequence()->type == Sequence::Type::group) {
    if (name == "grouper") return object.as_sequence()->items[0];
    if (name == "list") return object.as_sequence()->items[1];
  }
  return find_method(object, name);
}

/// start + count * step, where only the sum needs to fit.
int64_t stepped(int64_t start, int64_t count, int64_t step) {
  return static_cast<int64_t>(static_cast<uint64_t>(start) +
                              static_cast<uint64_t>(count) * static_cast<uint64_t>(step));
}

struct Bounds {
  int64_t start, stop, step;
  size_t count;
};

int64_t bound(const Value& value, int64_t fallback, int64_t size, int64_t lowest, int64_t highest) {
  if (value.is_undefined() || value.is_none()) return fallback;
  if (!value.is_integral()) render_error("slice indices must be integers or None");
  const int64_t index = value.as_integer();
  return std::clamp(index < 0 ? std::max(index, -size - 1) + size : index, lowest, highest);
}

Bounds find_bounds(const Value& start, const Value& stop, const Value& step, size_t length) {
  const auto size = static_cast<int64_t>(length);
  int64_t stride = 1;
  if (step.is_integral()) stride = std::clamp(step.as_integer(), -size - 1, size + 1);
  if (!step.is_integral() && !step.is_undefined() && !step.is_none())
    render_error("slice indices must be integers or None");
  if (stride == 0) render_error("slice step cannot be zero");
  Bounds bounds{0, 0, stride, 0};
  if (stride > 0) {
    bounds.start = bound(start, 0, size, 0, size);
    bounds.stop = bound(stop, size, size, 0, size);
    if (bounds.start < bounds.stop) bounds.count = static_cast<size_t>((bounds.stop - bounds.start - 1) / stride + 1);
  } else {
    bounds.start = bound(start, size - 1, size, -1, size - 1);
    bounds.stop = bound(stop, -1, size, -1, size - 1);
    if (bounds.stop < bounds.start) bounds.count = static_cast<size_t>((bounds.start - bounds.stop - 1) / -stride + 1);
  }
  return bounds;
}

Value slice_text(Budget& budget, const Text& text, const Bounds& bounds) {
  budget.read(text.bytes.size());
  if (bounds.count == 0) return Value::text({});
  if (bounds.step == 1) {
    const size_t start = offset_of_character(text.bytes, static_cast<size_t>(bounds.start));
    const std::string_view rest = std::string_view(text.bytes).substr(start);
    return new_text(budget, std::string(rest.substr(0, offset_of_character(rest, bounds.count))));
  }
  budget.allocate(text.length * sizeof(std::string));
  const auto characters = characters_of(text.bytes);
  std::string picked;
  int64_t index = bounds.start;
  for (size_t i = 0; i < bounds.count; ++i, index += bounds.step) picked += characters[static_cast<size_t>(index)];
  return new_text(budget, std::move(picked));
}

Value slice_list(Budget& budget, const Sequence& list, const Bounds& bounds) {
  budget.allocate_items(bounds.count);
  Sequence picked;
  picked.type = list.is_tuple() ? Sequence::Type::tuple : list.type;
  int64_t index = bounds.start;
  for (size_t i = 0; i < bounds.count; ++i, index += bounds.step)
    picked.items.push_back(list.items[static_cast<size_t>(index)]);
  if (list.type == Sequence::Type::range) {
    picked.start = stepped(list.start, bounds.start, list.step);
    picked.stop = stepped(list.start, bounds.stop, list.step);
    picked.step = stepped(0, bounds.step, list.step);
  }
  return Value::sequence(std::move(picked));
}

}  // namespace

Value get_own_attribute(const Value& object, const std::string& name) {
  if (object.is_undefined()) throw RenderError(object.undefined_message());
  return own_attribute(object, name).value_or(missing_attribute(object, name));
}

Value get_attribute(Budget& budget, const Value& object, const std::string& name) {
  if (object.is_undefined()) throw RenderError(object.undefined_message());
  if (auto found = own_attribute(object, name)) return *found;
  if (object.is_dict()) {
    budget.spend(1);
    if (const Value* found = object.as_dict().find(name)) return *found;
  }
  return missing_attribute(object, name);
}

Value get_item(Budget& budget, const Value& object, const Value& key) {
  if (object.is_undefined()) throw RenderError(object.undefined_message());
  if (auto found = own_item(budget, object, key)) return *found;
  if (key.is_string())
    if (auto found = own_attribute(object, key.as_string())) return *found;
  return missing_item(budget, object, key);
}

Value slice(Budget& budget, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) throw RenderError(object.undefined_message());
  if (object.is_string())
    return slice_text(budget, object.as_text(), find_bounds(start, stop, step, object.as_text().length));
  if (!object.is_sequence() || object.as_sequence()->is_view())
    render_error("'{}' object cannot be sliced", object.type_name());
  const Sequence& list = *object.as_sequence();
  return slice_list(budget, list, find_bounds(start, stop, step, list.items.size()));
}

SequencePtr iterate(Budget& budget, const Value& value) {
  if (value.is_sequence()) return value.as_sequence();
  Sequence made;
  if (value.is_generator()) {
    Generator& generator = *value.as_generator();
    if (generator.next == 0) {
      generator.next = generator.items->items.size();
      return generator.items;
    }
    for (; generator.next < generator.items->items.size(); ++generator.next)
      made.items.push_back(generator.items->items[generator.next]);
  } else if (value.is_dict()) {
    budget.allocate_items(value.as_dict().entries().size());
    for (const auto& [key, item] : value.as_dict().entries()) made.items.push_back(key);
  } else if (value.is_string()) {
    budget.allocate_items(value.as_text().length);
    budget.allocate(value.as_text().length * 96);
    for (std::string& character : characters_of(value.as_string()))
      made.items.push_back(Value::text(std::move(character)));
  } else if (!value.is_undefined()) {
    render_error("'{}' object is not iterable", value.type_name());
  }
  return Value::sequence(std::move(made)).as_sequence();
}

int64_t length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) return static_cast<int64_t>(value.as_text().length);
  if (value.is_sequence()) return static_cast<int64_t>(value.as_sequence()->items.size());
  if (value.is_dict()) return static_cast<int64_t>(value.as_dict().entries().size());
  render_error("object of type '{}' has no len()", value.type_name());
}

Value make_range(Budget& budget, int64_t start, int64_t stop, int64_t step) {
  if (step == 0) render_error("range() arg 3 must not be zero");
  const bool empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t span = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = empty ? 0 : (span - 1) / stride + 1;
  if (count > static_cast<uint64_t>(max_range))
    render_error("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", max_range);
  budget.allocate_items(count);
  Sequence range;
  range.type = Sequence::Type::range;
  range.start = start;
  range.stop = stop;
  range.step = step;
  for (uint64_t i = 0; i < count; ++i)
    range.items.push_back(Value::integer(stepped(start, static_cast<int64_t>(i), step)));
  return Value::sequence(std::move(range));
}

}  // namespace sluice::jinja
