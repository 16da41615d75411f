#include <algorithm>
#include <array>

#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace sluice::jinja {

namespace {

class BoundMethod : public Object {
 public:
  BoundMethod(Value self, const MethodEntry& entry) : self_(std::move(self)), entry_(entry) {}
  std::string type_name() const override { return "builtin_function_or_method"; }
  std::string repr() const override {
    return fmt::format("<built-in method {} of {} object>", entry_.name, self_.type_name());
  }
  bool is_callable() const override { return true; }
  Value call(Budget& budget, const Arguments& arguments) override {
    return entry_.run(budget, self_, Bound(entry_.name, entry_.parameters, arguments));
  }
  int depth() const override { return self_.depth() + 1; }
  uint64_t weight() const override { return self_.weight(); }

 private:
  Value self_;
  const MethodEntry& entry_;
};

Value view(Budget& budget, const Value& self, Sequence::Type type) {
  budget.allocate_items(self.as_dict().entries().size());
  Sequence made;
  made.type = type;
  for (const auto& [key, value] : self.as_dict().entries()) {
    if (type == Sequence::Type::items) {
      made.items.push_back(Value::tuple({key, value}));
    } else {
      made.items.push_back(type == Sequence::Type::keys ? key : value);
    }
  }
  if (type == Sequence::Type::items) budget.allocate(made.items.size() * 160);
  return Value::sequence(std::move(made));
}

Value dict_items(Budget& budget, const Value& self, const Bound& /*arguments*/) {
  return view(budget, self, Sequence::Type::items);
}
Value dict_keys(Budget& budget, const Value& self, const Bound& /*arguments*/) {
  return view(budget, self, Sequence::Type::keys);
}
Value dict_values(Budget& budget, const Value& self, const Bound& /*arguments*/) {
  return view(budget, self, Sequence::Type::values);
}
Value dict_get(Budget& budget, const Value& self, const Bound& arguments) {
  budget.spend(arguments.value(0).weight());
  static_cast<void>(hash_of(arguments.value(0)));
  if (const Value* found = self.as_dict().find(arguments.value(0))) return *found;
  return arguments.get(1) ? *arguments.get(1) : Value::none();
}
Value copy(Budget& /*budget*/, const Value& self, const Bound& /*arguments*/) { return self; }

Value list_count(Budget& budget, const Value& self, const Bound& arguments) {
  int64_t count = 0;
  for (const Value& item : self.as_sequence()->items) count += equal(budget, item, arguments.value(0)) ? 1 : 0;
  return Value::integer(count);
}

Value list_index(Budget& budget, const Value& self, const Bound& arguments) {
  const auto& items = self.as_sequence()->items;
  const auto size = static_cast<int64_t>(items.size());
  const auto from_end = [&](int64_t index) { return std::clamp(index < 0 ? index + size : index, int64_t{0}, size); };
  const int64_t stop = from_end(std::max(arguments.integer(2, size), -size - 1));
  for (int64_t i = from_end(std::max(arguments.integer(1, 0), -size - 1)); i < stop; ++i)
    if (equal(budget, items[static_cast<size_t>(i)], arguments.value(0))) return Value::integer(i);
  render_error("{} is not in list", to_repr(budget, arguments.value(0)));
}

constexpr std::array dict_methods = {
    MethodEntry{"items", dict_items, ""},   MethodEntry{"keys", dict_keys, ""},
    MethodEntry{"values", dict_values, ""}, MethodEntry{"get", dict_get, "key default?"},
    MethodEntry{"copy", copy, ""},
};
constexpr std::array sequence_methods = {
    MethodEntry{"count", list_count, "value"},
    MethodEntry{"index", list_index, "value start? stop?"},
    MethodEntry{"copy", copy, ""},
};
// Names that exist in Python but that the sandbox refuses; they hide a dict's key of the same name.
constexpr std::array<std::string_view, 6> refused_dict_methods = {"clear",   "fromkeys",   "pop",
                                                                  "popitem", "setdefault", "update"};

template <size_t size>
const MethodEntry* find_in(const std::array<MethodEntry, size>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const MethodEntry& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

const MethodEntry* find_container_method(const Value& object, std::string_view name) {
  if (object.is_dict()) return find_in(dict_methods, name);
  if (!object.is_sequence() || object.as_sequence()->is_view()) return nullptr;
  if (name == "copy" && object.as_sequence()->type != Sequence::Type::list) return nullptr;
  return find_in(sequence_methods, name);
}

std::optional<Value> find_method(const Value& object, const std::string& name) {
  const MethodEntry* entry = object.is_string() ? find_string_method(name) : find_container_method(object, name);
  if (entry != nullptr) return Value::object(std::make_shared<BoundMethod>(object, *entry));
  const bool refused = object.is_dict() && std::find(refused_dict_methods.begin(), refused_dict_methods.end(), name) !=
                                               refused_dict_methods.end();
  if (refused) return Value::undefined(fmt::format("access to attribute '{}' of 'dict' object is unsafe.", name));
  return std::nullopt;
}

}  // namespace sluice::jinja
