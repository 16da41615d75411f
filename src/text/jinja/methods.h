#pragma once
#include <optional>
#include <string>

#include "text/jinja/signature.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

struct MethodEntry {
  std::string_view name;
  Value (*run)(Budget& budget, const Value& self, const Bound& arguments);
  std::string_view parameters;  // as Bound reads them
};

/// The method of a string, list, tuple or dict, bound to it. Those that change a value are undefined, as in
/// jinja2's immutable sandbox.
std::optional<Value> find_method(const Value& object, const std::string& name);

const MethodEntry* find_string_method(std::string_view name);
const MethodEntry* find_container_method(const Value& object, std::string_view name);

}  // namespace sluice::jinja
