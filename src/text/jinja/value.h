#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/jinja/budget.h"

namespace sluice::jinja {

class Value;
class Dict;
class Object;
struct Text;
struct Sequence;
struct Generator;

using TextPtr = std::shared_ptr<const Text>;
using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using GeneratorPtr = std::shared_ptr<Generator>;
using ObjectPtr = std::shared_ptr<Object>;

/// jinja2's default Undefined: false, empty when printed or iterated, an error with this message otherwise.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
struct None {};

/// A Python value as templates see it. Strings, lists and dicts are immutable and shared.
/// Lists and dicts know their depth and weight, so that walking one can be refused or paid for before it starts.
class Value {
 public:
  Value() = default;  // undefined
  static Value undefined(std::string message);
  static Value none() { return Value(None{}); }
  static Value boolean(bool value) { return Value(value); }
  static Value integer(int64_t value) { return Value(value); }
  static Value floating(double value) { return Value(value); }
  /// UTF-8; invalid bytes count as one character each. markup: already escaped, as jinja2's Markup.
  static Value text(std::string value, bool markup = false);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value sequence(Sequence sequence);
  static Value dict(Dict dict);
  /// What a Python generator is to a template: true, without length, and used up by one iteration.
  static Value generator(std::vector<Value> items);
  static Value object(ObjectPtr object) { return Value(std::move(object)); }
  /// Integers beyond 64 signed bits become floats. Throws RenderError when nested too deeply.
  static Value from_json(const Json& json, int depth = 0);

  bool is_undefined() const { return holds<Undefined>(); }
  bool is_none() const { return holds<None>(); }
  bool is_boolean() const { return holds<bool>(); }
  bool is_integer() const { return holds<int64_t>(); }  // bool not included
  bool is_floating() const { return holds<double>(); }
  bool is_integral() const { return is_integer() || is_boolean(); }
  bool is_number() const { return is_integral() || is_floating(); }
  bool is_string() const { return holds<TextPtr>(); }
  bool is_sequence() const { return holds<SequencePtr>(); }
  bool is_dict() const { return holds<DictPtr>(); }
  bool is_generator() const { return holds<GeneratorPtr>(); }
  bool is_object() const { return holds<ObjectPtr>(); }

  bool as_boolean() const { return std::get<bool>(storage_); }
  int64_t as_integer() const;  // of an integral value
  double as_double() const;    // of a number
  const Text& as_text() const { return *std::get<TextPtr>(storage_); }
  const std::string& as_string() const;
  const SequencePtr& as_sequence() const { return std::get<SequencePtr>(storage_); }
  const Dict& as_dict() const { return *std::get<DictPtr>(storage_); }
  const GeneratorPtr& as_generator() const { return std::get<GeneratorPtr>(storage_); }
  const ObjectPtr& as_object() const { return std::get<ObjectPtr>(storage_); }

  bool truthy() const;
  std::string type_name() const;  // Python's: "str", "NoneType", ...
  std::string undefined_message() const;
  int depth() const;
  /// Steps that walking the whole value takes; shared parts count as often as they are met.
  uint64_t weight() const;
  /// Python's `is`.
  bool same_as(const Value& other) const;

 private:
  using Storage =
      std::variant<Undefined, None, bool, int64_t, double, TextPtr, SequencePtr, DictPtr, GeneratorPtr, ObjectPtr>;
  template <class T>
  explicit Value(T value) : storage_(std::move(value)) {}
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(storage_);
  }
  Storage storage_;
};

struct Text {
  std::string bytes;
  size_t length = 0;  // in characters
  bool markup = false;
  bool is_ascii() const { return length == bytes.size(); }
};

struct Sequence {
  enum class Type { list, tuple, group, keys, values, items, range };  // group: a tuple of groupby
  Type type = Type::list;
  std::vector<Value> items;
  int64_t start = 0, stop = 0, step = 1;  // of a range
  int depth = 0;
  uint64_t weight = 0;
  bool is_tuple() const { return type == Type::tuple || type == Type::group; }
  bool is_hashable() const { return is_tuple() || type == Type::range; }
  bool is_view() const { return type == Type::keys || type == Type::values || type == Type::items; }
};

struct Generator {
  SequencePtr items;
  size_t next = 0;
};

/// Python's ==; never throws. Costs at most min(left.weight(), right.weight()).
bool equal(const Value& left, const Value& right);
/// Python's hash; throws RenderError for what cannot be hashed.
size_t hash_of(const Value& value);

/// Keeps the order of insertion; a repeated key keeps its place and takes the later value.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  void set(Value key, Value value);
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  int depth() const { return depth_; }
  uint64_t weight() const { return weight_; }

 private:
  struct Hash {
    size_t operator()(const Value& key) const { return hash_of(key); }
  };
  struct Equal {
    bool operator()(const Value& left, const Value& right) const { return equal(left, right); }
  };
  std::optional<size_t> position(const Value& key) const;
  std::vector<Entry> entries_;
  std::unordered_map<Value, size_t, Hash, Equal> index_;  // only of larger dicts
  int depth_ = 1;
  uint64_t weight_ = 1;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

/// Functions, methods, macros, namespaces and loops.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual std::string repr() const = 0;
  virtual std::optional<Value> attribute(const std::string& /*name*/) { return std::nullopt; }
  virtual bool is_callable() const { return false; }
  virtual Value call(Budget& budget, const Arguments& arguments);
  virtual int depth() const { return 1; }
  virtual uint64_t weight() const { return 1; }
  /// Whether lists, dicts and namespaces may hold it.
  virtual bool is_storable() const { return true; }
};

/// The only mutable value. The interpreter keeps every namespace alive and empties it at the end.
class Namespace : public Object {
 public:
  explicit Namespace(Dict attributes) : attributes_(std::move(attributes)) {}
  std::string type_name() const override { return "Namespace"; }
  std::string repr() const override { return "<Namespace>"; }
  std::optional<Value> attribute(const std::string& name) override;
  void set(const std::string& name, Value value);
  void clear() { attributes_ = Dict(); }

 private:
  Dict attributes_;
};

}  // namespace sluice::jinja
