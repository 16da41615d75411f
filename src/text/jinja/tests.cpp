#include "text/jinja/tests.h"

#include <algorithm>
#include <array>

#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/text_functions.h"

namespace sluice::jinja {

namespace {

using Operand = const Value&;

template <bool (Value::*question)() const>
bool asks(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  return (operand.*question)();
}

bool is_defined(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) { return !operand.is_undefined(); }
bool is_true(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  return operand.is_boolean() && operand.as_boolean();
}
bool is_false(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  return operand.is_boolean() && !operand.as_boolean();
}
bool is_escaped(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  return operand.is_string() && operand.as_text().markup;
}
bool is_callable(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  // Undefined has a __call__, one that fails.
  return operand.is_undefined() || (operand.is_object() && operand.as_object()->is_callable());
}
bool is_iterable(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  if (operand.is_object()) return operand.type_name() == "LoopContext";
  return !operand.is_none() && !operand.is_number();
}
bool is_indexable(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  return operand.is_undefined() || operand.is_string() || operand.is_dict() ||
         (operand.is_sequence() && !operand.as_sequence()->is_view());
}

Value remainder(Budget& budget, Operand operand, const Value& divisor) {
  return calculate(budget, Operator::remainder, operand, divisor);
}
bool is_odd(Budget& budget, Operand operand, const Bound& /*arguments*/) {
  return equal(remainder(budget, operand, Value::integer(2)), Value::integer(1));
}
bool is_even(Budget& budget, Operand operand, const Bound& /*arguments*/) {
  return equal(remainder(budget, operand, Value::integer(2)), Value::integer(0));
}
bool is_divisible(Budget& budget, Operand operand, const Bound& arguments) {
  return equal(remainder(budget, operand, arguments.value(0)), Value::integer(0));
}

template <bool upper>
bool has_case(Budget& budget, Operand operand, const Bound& /*arguments*/) {
  return is_all_case(to_string(budget, operand), upper);
}

template <Comparison kind>
bool compares(Budget& budget, Operand operand, const Bound& arguments) {
  return compare(budget, kind, operand, arguments.value(0));
}

bool is_same(Budget& /*budget*/, Operand operand, const Bound& arguments) {
  return operand.same_as(arguments.value(0));
}
bool names_filter(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  return operand.is_string() && find_filter(operand.as_string()) != nullptr;
}
bool names_test(Budget& /*budget*/, Operand operand, const Bound& /*arguments*/) {
  return operand.is_string() && find_test(operand.as_string()) != nullptr;
}

constexpr std::array table = {
    TestEntry{"!=", compares<Comparison::not_equal>, "other"},
    TestEntry{"<", compares<Comparison::less>, "other"},
    TestEntry{"<=", compares<Comparison::less_equal>, "other"},
    TestEntry{"==", compares<Comparison::equal>, "other"},
    TestEntry{">", compares<Comparison::greater>, "other"},
    TestEntry{">=", compares<Comparison::greater_equal>, "other"},
    TestEntry{"boolean", asks<&Value::is_boolean>, ""},
    TestEntry{"callable", is_callable, ""},
    TestEntry{"defined", is_defined, ""},
    TestEntry{"divisibleby", is_divisible, "num"},
    TestEntry{"eq", compares<Comparison::equal>, "other"},
    TestEntry{"equalto", compares<Comparison::equal>, "other"},
    TestEntry{"escaped", is_escaped, ""},
    TestEntry{"even", is_even, ""},
    TestEntry{"false", is_false, ""},
    TestEntry{"filter", names_filter, ""},
    TestEntry{"float", asks<&Value::is_floating>, ""},
    TestEntry{"ge", compares<Comparison::greater_equal>, "other"},
    TestEntry{"greaterthan", compares<Comparison::greater>, "other"},
    TestEntry{"gt", compares<Comparison::greater>, "other"},
    TestEntry{"in", compares<Comparison::in>, "seq"},
    TestEntry{"integer", asks<&Value::is_integer>, ""},
    TestEntry{"iterable", is_iterable, ""},
    TestEntry{"le", compares<Comparison::less_equal>, "other"},
    TestEntry{"lessthan", compares<Comparison::less>, "other"},
    TestEntry{"lower", has_case<false>, ""},
    TestEntry{"lt", compares<Comparison::less>, "other"},
    TestEntry{"mapping", asks<&Value::is_dict>, ""},
    TestEntry{"ne", compares<Comparison::not_equal>, "other"},
    TestEntry{"none", asks<&Value::is_none>, ""},
    TestEntry{"number", asks<&Value::is_number>, ""},
    TestEntry{"odd", is_odd, ""},
    TestEntry{"sameas", is_same, "other"},
    TestEntry{"sequence", is_indexable, ""},
    TestEntry{"string", asks<&Value::is_string>, ""},
    TestEntry{"test", names_test, ""},
    TestEntry{"true", is_true, ""},
    TestEntry{"undefined", asks<&Value::is_undefined>, ""},
    TestEntry{"upper", has_case<true>, ""},
};

}  // namespace

const TestEntry* find_test(std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const TestEntry& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

bool call_test(Budget& budget, const TestEntry& test, const Value& operand, const Arguments& arguments) {
  budget.spend(1);
  return test.run(budget, operand, Bound(test.name, test.parameters, arguments));
}

}  // namespace sluice::jinja
