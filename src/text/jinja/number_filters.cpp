#include <array>
#include <cmath>
#include <cstdlib>

#include "text/jinja/filters.h"
#include "text/jinja/literals.h"
#include "text/jinja/operators.h"

namespace sluice::jinja {

namespace {

void refuse_undefined(const Value& operand) {
  if (operand.is_undefined()) throw RenderError(operand.undefined_message());
}

/// Python's int(number); nothing for nan and infinities.
std::optional<int64_t> cut_to_integer(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (!(number >= -0x1p63 && number < 0x1p63)) render_error("an integer grows beyond 64 bits");
  return static_cast<int64_t>(number);
}

Value to_integer(Budget& /*budget*/, const Value& operand, const Bound& arguments) {
  refuse_undefined(operand);
  const Value fallback = arguments.get(0) ? arguments.value(0) : Value::integer(0);
  if (operand.is_integral()) return Value::integer(operand.as_integer());
  std::optional<int64_t> made;
  if (operand.is_floating()) {
    if (std::isinf(operand.as_double())) render_error("cannot convert float infinity to integer");
    made = cut_to_integer(operand.as_double());
  } else if (operand.is_string()) {
    made = parse_integer(operand.as_string(), static_cast<int>(std::min<int64_t>(arguments.integer(1, 10), 99)));
    if (!made)
      if (const auto number = parse_float(operand.as_string())) made = cut_to_integer(*number);
  }
  return made ? Value::integer(*made) : fallback;
}

Value to_float(Budget& /*budget*/, const Value& operand, const Bound& arguments) {
  refuse_undefined(operand);
  if (operand.is_number()) return Value::floating(operand.as_double());
  if (operand.is_string())
    if (const auto number = parse_float(operand.as_string())) return Value::floating(*number);
  return arguments.get(0) ? arguments.value(0) : Value::floating(0);
}

Value absolute(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  refuse_undefined(operand);
  if (operand.is_floating()) return Value::floating(std::fabs(operand.as_double()));
  if (!operand.is_integral()) render_error("bad operand type for abs(): '{}'", operand.type_name());
  if (operand.as_integer() >= 0) return Value::integer(operand.as_integer());
  return calculate(budget, Operator::subtract, Value::integer(0), operand);
}

/// Python's round(): the decimal nearest to the exact value, halves to even.
double round_decimal(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 400) return value;
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
  if (digits < -308) return std::copysign(0.0, value);
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Value round_integer(int64_t value, int64_t digits) {
  if (digits >= 0) return Value::integer(value);
  if (digits < -18) return Value::integer(0);
  int64_t scale = 1;
  for (int64_t i = digits; i < 0; ++i) scale *= 10;
  const int64_t remainder = (value % scale + scale) % scale;
  int64_t rounded = 0;
  if (__builtin_sub_overflow(value, remainder, &rounded)) render_error("an integer grows beyond 64 bits");
  const bool up = remainder > scale - remainder || (remainder == scale - remainder && (rounded / scale) % 2 != 0);
  if (up && __builtin_add_overflow(rounded, scale, &rounded)) render_error("an integer grows beyond 64 bits");
  return Value::integer(rounded);
}

Value round(Budget& /*budget*/, const Value& operand, const Bound& arguments) {
  refuse_undefined(operand);
  const int64_t digits = arguments.integer(0, 0);
  const std::string_view method = arguments.text(1, "common");
  if (!operand.is_number()) render_error("type {} doesn't define __round__ method", operand.type_name());
  if (method == "common") {
    if (operand.is_integral()) return round_integer(operand.as_integer(), digits);
    return Value::floating(round_decimal(operand.as_double(), digits));
  }
  if (method != "ceil" && method != "floor") render_error("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = operand.as_double() * scale;
  return Value::floating((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

constexpr std::array table = {
    FilterEntry{"abs", absolute, ""},
    FilterEntry{"float", to_float, "default?"},
    FilterEntry{"int", to_integer, "default? base?"},
    FilterEntry{"round", round, "precision? method?"},
};

}  // namespace

std::span<const FilterEntry> number_filters() { return table; }

}  // namespace sluice::jinja
