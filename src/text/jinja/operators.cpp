#include "text/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/characters.h"
#include "text/jinja/format.h"
#include "text/jinja/print.h"

namespace sluice::jinja {

namespace {

constexpr const char* operator_names[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void unsupported(Operator kind, const Value& left, const Value& right) {
  for (const Value* operand : {&left, &right})
    if (operand->is_undefined()) throw RenderError(operand->undefined_message());
  if (kind == Operator::add && left.is_string())
    render_error("can only concatenate str (not \"{}\") to str", right.type_name());
  render_error("unsupported operand type(s) for {}: '{}' and '{}'", operator_names[static_cast<int>(kind)],
               left.type_name(), right.type_name());
}

[[noreturn]] void overflow() { render_error("an integer grows beyond 64 bits"); }

int64_t floor_divide(int64_t left, int64_t right) {
  if (right == 0) render_error("integer division or modulo by zero");
  if (right == -1) {
    int64_t negated = 0;
    if (__builtin_sub_overflow(int64_t{0}, left, &negated)) overflow();
    return negated;
  }
  const int64_t quotient = left / right;
  return left % right != 0 && (left % right < 0) != (right < 0) ? quotient - 1 : quotient;
}

int64_t floor_remainder(int64_t left, int64_t right) {
  if (right == 0) render_error("integer division or modulo by zero");
  if (right == -1) return 0;
  const int64_t remainder = left % right;
  return remainder != 0 && (remainder < 0) != (right < 0) ? remainder + right : remainder;
}

double float_remainder(double left, double right) {
  if (right == 0) render_error("float modulo");
  const double remainder = std::fmod(left, right);
  if (remainder == 0) return std::copysign(0.0, right);
  return (remainder < 0) != (right < 0) ? remainder + right : remainder;
}

double float_floor_divide(double left, double right) {
  if (right == 0) render_error("float floor division by zero");
  const double remainder = std::fmod(left, right);
  double quotient = (left - remainder) / right;
  if (remainder != 0 && (right < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

Value calculate_integers(Operator kind, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflowed = false;
  switch (kind) {
    case Operator::add: overflowed = __builtin_add_overflow(left, right, &result); break;
    case Operator::subtract: overflowed = __builtin_sub_overflow(left, right, &result); break;
    case Operator::multiply: overflowed = __builtin_mul_overflow(left, right, &result); break;
    case Operator::divide:
      if (right == 0) render_error("division by zero");
      return Value::floating(static_cast<double>(left) / static_cast<double>(right));
    case Operator::floor_divide: result = floor_divide(left, right); break;
    case Operator::remainder: result = floor_remainder(left, right); break;
    case Operator::power:
      if (right < 0 && left == 0) render_error("0.0 cannot be raised to a negative power");
      if (right < 0) return Value::floating(std::pow(static_cast<double>(left), static_cast<double>(right)));
      result = integer_power(left, right);
      break;
  }
  if (overflowed) overflow();
  return Value::integer(result);
}

Value calculate_floats(Operator kind, double left, double right) {
  switch (kind) {
    case Operator::add: return Value::floating(left + right);
    case Operator::subtract: return Value::floating(left - right);
    case Operator::multiply: return Value::floating(left * right);
    case Operator::divide:
      if (right == 0) render_error("float division by zero");
      return Value::floating(left / right);
    case Operator::floor_divide: return Value::floating(float_floor_divide(left, right));
    case Operator::remainder: return Value::floating(float_remainder(left, right));
    case Operator::power: break;
  }
  if (left == 0 && right < 0) render_error("0.0 cannot be raised to a negative power");
  const double power = std::pow(left, right);
  if (std::isnan(power) && !std::isnan(left) && !std::isnan(right)) render_error("complex numbers are not supported");
  if (std::isinf(power) && std::isfinite(left) && std::isfinite(right)) render_error("Numerical result out of range");
  return Value::floating(power);
}

bool is_list_or_tuple(const Value& value) {
  return value.is_sequence() && (value.as_sequence()->type == Sequence::Type::list || value.as_sequence()->is_tuple());
}

Value make_like(const Sequence& model, std::vector<Value> items) {
  return model.is_tuple() ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Value join_texts(Budget& budget, const Value& left, const Value& right) {
  if (left.as_text().markup || right.as_text().markup) {
    std::string joined = escape_html(budget, left) + escape_html(budget, right);
    return Value::text(std::move(joined), true);
  }
  budget.allocate_string(left.as_string().size() + right.as_string().size());
  return Value::text(left.as_string() + right.as_string());
}

Value join_lists(Budget& budget, const Sequence& left, const Sequence& right) {
  budget.allocate_items(left.items.size() + right.items.size());
  std::vector<Value> joined = left.items;
  joined.insert(joined.end(), right.items.begin(), right.items.end());
  return make_like(left, std::move(joined));
}

Value repeat(Budget& budget, const Value& value, int64_t times) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(0, times));
  if (value.is_string()) {
    const std::string& text = value.as_string();
    if (text.empty() || count == 0) return Value::text({});
    budget.allocate_string(count > max_string_bytes ? count : text.size() * count);
    std::string repeated;
    repeated.reserve(text.size() * count);
    repeated = text;
    while (repeated.size() <= text.size() * count / 2) repeated += repeated;
    repeated.append(repeated, 0, text.size() * count - repeated.size());
    return Value::text(std::move(repeated));
  }
  const Sequence& list = *value.as_sequence();
  std::vector<Value> items;
  if (!list.items.empty() && count > 0) {
    budget.allocate_items(count > max_items ? count : list.items.size() * count);
    for (uint64_t i = 0; i < count; ++i) items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return make_like(list, std::move(items));
}

bool contains(Budget& budget, const Value& item, const Value& container) {
  if (container.is_string()) {
    if (!item.is_string()) render_error("'in <string>' requires string as left operand, not {}", item.type_name());
    budget.read(container.as_string().size());
    return find_text(container.as_string(), item.as_string(), 0) != std::string::npos;
  }
  if (container.is_dict()) {
    budget.spend(item.weight());
    static_cast<void>(hash_of(item));  // refuses what cannot be a key
    return container.as_dict().find(item) != nullptr;
  }
  const SequencePtr items = iterate(budget, container);
  for (const Value& candidate : items->items)
    if (equal(budget, candidate, item)) return true;
  return false;
}

int order_items(Budget& budget, const std::vector<Value>& left, const std::vector<Value>& right) {
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i)
    if (!equal(budget, left[i], right[i])) return order(budget, left[i], right[i]);
  return left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0;
}

}  // namespace

Value new_text(Budget& budget, std::string text) {
  budget.allocate_string(text.size());
  return Value::text(std::move(text));
}

std::string escape_html(Budget& budget, const Value& value) {
  const std::string text = to_string(budget, value);
  if (value.is_string() && value.as_text().markup) return text;
  std::string escaped;
  for (const char byte : text) {
    switch (byte) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '\'': escaped += "&#39;"; break;
      case '"': escaped += "&#34;"; break;
      default: escaped += byte;
    }
  }
  budget.allocate_string(escaped.size());
  return escaped;
}

Value calculate(Budget& budget, Operator kind, const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) return calculate_integers(kind, left.as_integer(), right.as_integer());
  if (left.is_number() && right.is_number()) return calculate_floats(kind, left.as_double(), right.as_double());
  if (kind == Operator::add) {
    if (left.is_string() && right.is_string()) return join_texts(budget, left, right);
    if (is_list_or_tuple(left) && is_list_or_tuple(right) &&
        left.as_sequence()->is_tuple() == right.as_sequence()->is_tuple())
      return join_lists(budget, *left.as_sequence(), *right.as_sequence());
  } else if (kind == Operator::multiply) {
    const bool left_repeats = left.is_string() || is_list_or_tuple(left);
    const bool right_repeats = right.is_string() || is_list_or_tuple(right);
    if (left_repeats && right.is_integral()) return repeat(budget, left, right.as_integer());
    if (right_repeats && left.is_integral()) return repeat(budget, right, left.as_integer());
  } else if (kind == Operator::remainder && left.is_string()) {
    return new_text(budget, format_percent(budget, left.as_string(), right));
  }
  unsupported(kind, left, right);
}

Value change_sign(const Value& operand, bool negative) {
  if (operand.is_undefined()) throw RenderError(operand.undefined_message());
  if (operand.is_floating()) return Value::floating(negative ? -operand.as_double() : operand.as_double());
  if (!operand.is_integral())
    render_error("bad operand type for unary {}: '{}'", negative ? '-' : '+', operand.type_name());
  if (!negative) return Value::integer(operand.as_integer());
  return calculate_integers(Operator::subtract, 0, operand.as_integer());
}

bool equal(Budget& budget, const Value& left, const Value& right) {
  budget.spend(std::min(left.weight(), right.weight()));
  return equal(left, right);
}

int order(Budget& budget, const Value& left, const Value& right) {
  budget.spend(1);
  if (left.is_integral() && right.is_integral()) {
    const int64_t first = left.as_integer(), second = right.as_integer();
    return first < second ? -1 : first > second ? 1 : 0;
  }
  if (left.is_number() && right.is_number()) {
    const double first = left.as_double(), second = right.as_double();
    return first < second ? -1 : first > second ? 1 : 0;
  }
  if (left.is_string() && right.is_string()) {
    budget.read(std::min(left.as_string().size(), right.as_string().size()));
    return left.as_string().compare(right.as_string());
  }
  if (is_list_or_tuple(left) && is_list_or_tuple(right) &&
      left.as_sequence()->is_tuple() == right.as_sequence()->is_tuple())
    return order_items(budget, left.as_sequence()->items, right.as_sequence()->items);
  for (const Value* operand : {&left, &right})
    if (operand->is_undefined()) throw RenderError(operand->undefined_message());
  render_error("values of type '{}' and '{}' have no order", left.type_name(), right.type_name());
}

bool compare(Budget& budget, Comparison kind, const Value& left, const Value& right) {
  const bool unordered =
      (left.is_floating() && std::isnan(left.as_double())) || (right.is_floating() && std::isnan(right.as_double()));
  switch (kind) {
    case Comparison::equal: return equal(budget, left, right);
    case Comparison::not_equal: return !equal(budget, left, right);
    case Comparison::less: return order(budget, left, right) < 0 && !unordered;
    case Comparison::less_equal: return order(budget, left, right) <= 0 && !unordered;
    case Comparison::greater: return order(budget, left, right) > 0 && !unordered;
    case Comparison::greater_equal: return order(budget, left, right) >= 0 && !unordered;
    case Comparison::in: return contains(budget, left, right);
    case Comparison::not_in: break;
  }
  return !contains(budget, left, right);
}

}  // namespace sluice::jinja
