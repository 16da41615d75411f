#pragma once
#include <string_view>

#include "text/jinja/signature.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

struct TestEntry {
  std::string_view name;
  bool (*run)(Budget& budget, const Value& operand, const Bound& arguments);
  std::string_view parameters;  // as Bound reads them
};

/// Null for an unknown name.
const TestEntry* find_test(std::string_view name);
bool call_test(Budget& budget, const TestEntry& test, const Value& operand, const Arguments& arguments);

}  // namespace sluice::jinja
