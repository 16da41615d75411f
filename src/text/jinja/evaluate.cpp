#include <utility>

#include "text/jinja/depth.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/tests.h"

namespace sluice::jinja {

Value Interpreter::evaluate(const Expression& expression, const ScopePtr& scope) {
  line_ = expression.line;
  budget_.spend(1);
  Depth depth(depth_);
  return std::visit([&](const auto& node) { return value_of(node, scope); }, expression.node);
}

Value Interpreter::evaluate_or_undefined(const ExpressionPtr& expression, const ScopePtr& scope) {
  return expression ? evaluate(*expression, scope) : Value();
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExpressionPtr>& expressions, const ScopePtr& scope) {
  budget_.allocate_items(expressions.size());
  std::vector<Value> values;
  values.reserve(expressions.size());
  for (const auto& expression : expressions) values.push_back(evaluate(*expression, scope));
  return values;
}

Value Interpreter::value_of(const Literal& node, const ScopePtr& /*scope*/) { return node.value; }

Value Interpreter::value_of(const Variable& node, const ScopePtr& scope) {
  if (const Value* found = find(node.name, scope)) return *found;
  return Value::undefined(fmt::format("'{}' is undefined", tree_.symbols.name_of(node.name)));
}

Value Interpreter::value_of(const ListDisplay& node, const ScopePtr& scope) {
  return Value::list(evaluate_all(node.items, scope));
}

Value Interpreter::value_of(const TupleDisplay& node, const ScopePtr& scope) {
  return Value::tuple(evaluate_all(node.items, scope));
}

Value Interpreter::value_of(const DictDisplay& node, const ScopePtr& scope) {
  budget_.allocate_items(node.entries.size() * 3);
  Dict made;
  for (const auto& [key_node, value_node] : node.entries) {
    Value key = evaluate(*key_node, scope);
    budget_.spend(key.weight());
    made.set(std::move(key), evaluate(*value_node, scope));
  }
  return Value::dict(std::move(made));
}

Value Interpreter::value_of(const Not& node, const ScopePtr& scope) {
  return Value::boolean(!evaluate(*node.operand, scope).truthy());
}

Value Interpreter::value_of(const Sign& node, const ScopePtr& scope) {
  return change_sign(evaluate(*node.operand, scope), node.negative);
}

Value Interpreter::value_of(const Binary& node, const ScopePtr& scope) {
  const Value left = evaluate(*node.left, scope);
  return calculate(budget_, node.kind, left, evaluate(*node.right, scope));
}

Value Interpreter::value_of(const Logical& node, const ScopePtr& scope) {
  Value left = evaluate(*node.left, scope);
  return left.truthy() == node.is_and ? evaluate(*node.right, scope) : left;
}

Value Interpreter::value_of(const Concatenation& node, const ScopePtr& scope) {
  std::string joined;
  for (const auto& part : node.parts) {
    joined += to_string(budget_, evaluate(*part, scope));
    if (joined.size() > max_string_bytes) break;
  }
  return new_text(budget_, std::move(joined));
}

Value Interpreter::value_of(const Compare& node, const ScopePtr& scope) {
  Value left = evaluate(*node.first, scope);
  for (const auto& [kind, operand] : node.rest) {
    Value right = evaluate(*operand, scope);
    if (!compare(budget_, kind, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::value_of(const Conditional& node, const ScopePtr& scope) {
  if (evaluate(*node.condition, scope).truthy()) return evaluate(*node.then, scope);
  if (node.otherwise) return evaluate(*node.otherwise, scope);
  return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
}

Value Interpreter::value_of(const Attribute& node, const ScopePtr& scope) {
  return get_attribute(budget_, evaluate(*node.object, scope), node.name);
}

Value Interpreter::value_of(const Item& node, const ScopePtr& scope) {
  const Value object = evaluate(*node.object, scope);
  return get_item(budget_, object, evaluate(*node.key, scope));
}

Value Interpreter::value_of(const Slice& node, const ScopePtr& scope) {
  const Value object = evaluate(*node.object, scope);
  const Value start = evaluate_or_undefined(node.start, scope);
  const Value stop = evaluate_or_undefined(node.stop, scope);
  return slice(budget_, object, start, stop, evaluate_or_undefined(node.step, scope));
}

Value Interpreter::value_of(const Call& node, const ScopePtr& scope) { return call(node, scope, nullptr); }

Value Interpreter::value_of(const Filter& node, const ScopePtr& scope) {
  const Value operand = node.operand ? evaluate(*node.operand, scope) : *block_text_;
  if (node.entry == nullptr) render_error("the filter '{}' is unknown or not supported", node.name);
  return call_filter(budget_, *node.entry, operand, evaluate_arguments(node.arguments, scope));
}

Value Interpreter::value_of(const Test& node, const ScopePtr& scope) {
  const Value operand = evaluate(*node.operand, scope);
  if (node.entry == nullptr) render_error("there is no test named '{}'", node.name);
  return Value::boolean(call_test(budget_, *node.entry, operand, evaluate_arguments(node.arguments, scope)));
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments, const ScopePtr& scope) {
  Arguments values;
  values.positional = evaluate_all(arguments.positional, scope);
  for (const auto& [name, expression] : arguments.keyword)
    values.keyword.emplace_back(name, evaluate(*expression, scope));
  if (arguments.more_positional) {
    const SequencePtr more = iterate(budget_, evaluate(*arguments.more_positional, scope));
    budget_.allocate_items(more->items.size());
    values.positional.insert(values.positional.end(), more->items.begin(), more->items.end());
  }
  if (arguments.more_keyword) {
    const Value more = evaluate(*arguments.more_keyword, scope);
    if (!more.is_dict()) render_error("argument after ** must be a mapping, not {}", more.type_name());
    budget_.allocate_items(more.as_dict().entries().size());
    for (const auto& [name, value] : more.as_dict().entries()) {
      if (!name.is_string()) render_error("keywords must be strings");
      values.keyword.emplace_back(name.as_string(), value);
    }
  }
  return values;
}

Value Interpreter::call(const Call& node, const ScopePtr& scope, const Value* caller) {
  const Value callee = evaluate(*node.callee, scope);
  Arguments arguments = evaluate_arguments(node.arguments, scope);
  if (caller != nullptr) arguments.keyword.emplace_back("caller", *caller);
  if (callee.is_undefined()) throw RenderError(callee.undefined_message());
  if (!callee.is_object()) render_error("'{}' object is not callable", callee.type_name());
  budget_.spend(1);
  return callee.as_object()->call(budget_, arguments);
}

}  // namespace sluice::jinja
