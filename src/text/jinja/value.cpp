#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "text/jinja/characters.h"

namespace sluice::jinja {

namespace {

constexpr size_t small_dict = 8;
constexpr uint64_t weight_limit = uint64_t{1} << 40;

struct Extent {
  int depth = 1;
  uint64_t weight = 1;
  void add(const Value& item) {
    if (item.is_object() && !item.as_object()->is_storable())
      render_error("a {} cannot be kept in a list, dict or namespace", item.type_name());
    depth = std::max(depth, item.depth() + 1);
    weight = std::min(weight_limit, weight + item.weight());
    if (depth > max_value_depth) render_error("values are nested deeper than {} levels", max_value_depth);
  }
};

bool equal_items(const std::vector<Value>& left, const std::vector<Value>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), equal);
}

bool equal_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) return left.as_integer() == right.as_integer();
  if (left.is_floating() && right.is_floating()) return left.as_double() == right.as_double();
  const int64_t integer = left.is_floating() ? right.as_integer() : left.as_integer();
  const double floating = left.is_floating() ? left.as_double() : right.as_double();
  // Exact: a float equals an integer only if it is that integer, also above 2^53.
  return floating >= -0x1p63 && floating < 0x1p63 && std::trunc(floating) == floating &&
         static_cast<int64_t>(floating) == integer;
}

bool equal_dicts(const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const Dict::Entry& entry) {
    const Value* other = right.find(entry.first);
    return other != nullptr && equal(entry.second, *other);
  });
}

size_t combine(size_t seed, size_t hash) { return seed ^ (hash + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2)); }

}  // namespace

Value Value::undefined(std::string message) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(message))});
}

Value Value::text(std::string value, bool markup) {
  const size_t length = count_characters(value);
  return Value(TextPtr(std::make_shared<const Text>(Text{std::move(value), length, markup})));
}

Value Value::list(std::vector<Value> items) {
  Sequence made;
  made.items = std::move(items);
  return sequence(std::move(made));
}

Value Value::tuple(std::vector<Value> items) {
  Sequence made;
  made.type = Sequence::Type::tuple;
  made.items = std::move(items);
  return sequence(std::move(made));
}

Value Value::sequence(Sequence made) {
  Extent extent;
  for (const Value& item : made.items) extent.add(item);
  made.depth = extent.depth;
  made.weight = extent.weight;
  return Value(SequencePtr(std::make_shared<const Sequence>(std::move(made))));
}

Value Value::dict(Dict dict) { return Value(DictPtr(std::make_shared<const Dict>(std::move(dict)))); }

Value Value::generator(std::vector<Value> items) {
  return Value(std::make_shared<Generator>(Generator{list(std::move(items)).as_sequence(), 0}));
}

Value Value::from_json(const Json& json, int depth) {
  if (depth >= max_value_depth) render_error("values are nested deeper than {} levels", max_value_depth);
  switch (json.type()) {
    case Json::value_t::null: return none();
    case Json::value_t::boolean: return boolean(json.get<bool>());
    case Json::value_t::number_integer: return integer(json.get<int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return floating(static_cast<double>(number));
      return integer(static_cast<int64_t>(number));
    }
    case Json::value_t::number_float: return floating(json.get<double>());
    case Json::value_t::string: return text(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json(item, depth + 1));
      return list(std::move(items));
    }
    case Json::value_t::object: {
      Dict made;
      for (const auto& [key, item] : json.items()) made.set(text(key), from_json(item, depth + 1));
      return dict(std::move(made));
    }
    default: render_error("binary JSON values have no place in a template");
  }
}

int64_t Value::as_integer() const {
  return is_boolean() ? static_cast<int64_t>(as_boolean()) : std::get<int64_t>(storage_);
}

double Value::as_double() const {
  return is_floating() ? std::get<double>(storage_) : static_cast<double>(as_integer());
}

const std::string& Value::as_string() const { return as_text().bytes; }

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_integral()) return as_integer() != 0;
  if (is_floating()) return as_double() != 0;
  if (is_string()) return !as_string().empty();
  if (is_sequence()) return !as_sequence()->items.empty();
  if (is_dict()) return !as_dict().entries().empty();
  return true;
}

std::string Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_boolean()) return "bool";
  if (is_integer()) return "int";
  if (is_floating()) return "float";
  if (is_string()) return "str";
  if (is_dict()) return "dict";
  if (is_generator()) return "generator";
  if (is_object()) return as_object()->type_name();
  switch (as_sequence()->type) {
    case Sequence::Type::list: return "list";
    case Sequence::Type::tuple:
    case Sequence::Type::group: return "tuple";
    case Sequence::Type::keys: return "dict_keys";
    case Sequence::Type::values: return "dict_values";
    case Sequence::Type::items: return "dict_items";
    case Sequence::Type::range: break;
  }
  return "range";
}

std::string Value::undefined_message() const {
  const auto& message = std::get<Undefined>(storage_).message;
  return message ? *message : "the value is undefined";
}

int Value::depth() const {
  if (is_sequence()) return as_sequence()->depth;
  if (is_dict()) return as_dict().depth();
  if (is_generator()) return as_generator()->items->depth;
  return is_object() ? as_object()->depth() : 0;
}

uint64_t Value::weight() const {
  if (is_string()) return 1 + as_string().size() / 64;
  if (is_sequence()) return as_sequence()->weight;
  if (is_dict()) return as_dict().weight();
  return is_object() ? as_object()->weight() : 1;
}

bool Value::same_as(const Value& other) const {
  if (storage_.index() != other.storage_.index()) return false;
  if (is_none()) return true;
  if (is_integral()) return as_integer() == other.as_integer();
  if (is_string()) return std::get<TextPtr>(storage_) == std::get<TextPtr>(other.storage_);
  if (is_sequence()) return as_sequence() == other.as_sequence();
  if (is_dict()) return std::get<DictPtr>(storage_) == std::get<DictPtr>(other.storage_);
  if (is_generator()) return as_generator() == other.as_generator();
  if (is_object()) return as_object() == other.as_object();
  return false;
}

bool equal(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return equal_numbers(left, right);
  if (left.is_string() && right.is_string()) return left.as_string() == right.as_string();
  if (left.is_undefined() || left.is_none())
    return left.is_undefined() == right.is_undefined() && left.is_none() == right.is_none();
  if (left.is_sequence() && right.is_sequence()) {
    const Sequence &first = *left.as_sequence(), &second = *right.as_sequence();
    if (first.type != second.type && !(first.is_tuple() && second.is_tuple())) return false;
    return equal_items(first.items, second.items);
  }
  if (left.is_dict() && right.is_dict()) return equal_dicts(left.as_dict(), right.as_dict());
  return left.same_as(right);
}

size_t hash_of(const Value& value) {
  if (value.is_string()) return std::hash<std::string>()(value.as_string());
  if (value.is_integral()) return std::hash<int64_t>()(value.as_integer());
  if (value.is_floating()) {
    const double number = value.as_double();
    // A float that is an integer must hash as that integer.
    if (number >= -0x1p63 && number < 0x1p63 && std::trunc(number) == number)
      return std::hash<int64_t>()(static_cast<int64_t>(number));
    return std::hash<double>()(number);
  }
  if (value.is_sequence() && value.as_sequence()->is_hashable()) {
    size_t hash = 17;
    for (const Value& item : value.as_sequence()->items) hash = combine(hash, hash_of(item));
    return hash;
  }
  if (value.is_object()) return std::hash<const Object*>()(value.as_object().get());
  if (value.is_none() || value.is_undefined()) return value.is_none() ? 1 : 2;
  render_error("unhashable type: '{}'", value.type_name());
}

std::optional<size_t> Dict::position(const Value& key) const {
  if (entries_.size() > small_dict) {
    const auto found = index_.find(key);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  for (size_t i = 0; i < entries_.size(); ++i)
    if (equal(entries_[i].first, key)) return i;
  return std::nullopt;
}

const Value* Dict::find(const Value& key) const {
  const auto found = position(key);
  return found ? &entries_[*found].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (entries_.size() > small_dict) return find(Value::text(std::string(key)));
  for (const auto& [name, value] : entries_)
    if (name.is_string() && name.as_string() == key) return &value;
  return nullptr;
}

void Dict::set(Value key, Value value) {
  static_cast<void>(hash_of(key));  // refuses what cannot be a key
  Extent extent{depth_, weight_};
  extent.add(key);
  extent.add(value);
  depth_ = extent.depth;
  weight_ = extent.weight;
  if (const auto known = position(key)) {
    entries_[*known].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() == small_dict + 1) {
    for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
  } else if (entries_.size() > small_dict) {
    index_.emplace(entries_.back().first, entries_.size() - 1);
  }
}

Value Object::call(Budget& /*budget*/, const Arguments& /*arguments*/) {
  render_error("'{}' object is not callable", type_name());
}

std::optional<Value> Namespace::attribute(const std::string& name) {
  const Value* found = attributes_.find(name);
  return found ? std::optional(*found) : std::nullopt;
}

void Namespace::set(const std::string& name, Value value) { attributes_.set(Value::text(name), std::move(value)); }

}  // namespace sluice::jinja
