#include "text/jinja/interpreter.h"

#include <algorithm>

#include "base/error.h"
#include "text/jinja/depth.h"
#include "text/jinja/functions.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace sluice::jinja {

namespace {

class MacroObject : public Object {
 public:
  MacroObject(Interpreter& interpreter, std::shared_ptr<const MacroDefinition> macro, ScopePtr scope)
      : interpreter_(interpreter), macro_(std::move(macro)), scope_(std::move(scope)) {}
  std::string type_name() const override { return "Macro"; }
  std::string repr() const override { return fmt::format("<Macro '{}'>", macro_->label); }
  bool is_callable() const override { return true; }
  std::optional<Value> attribute(const std::string& name) override {
    return name == "name" ? std::optional(Value::text(macro_->label)) : std::nullopt;
  }
  Value call(Budget& /*budget*/, const Arguments& arguments) override {
    return interpreter_.call_macro(*macro_, scope_, arguments);
  }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<const MacroDefinition> macro_;
  ScopePtr scope_;
};

/// Takes the value of a keyword argument out of the list.
std::optional<Value> take_keyword(std::vector<std::pair<std::string, Value>>& keyword, std::string_view name) {
  const auto found = std::find_if(keyword.begin(), keyword.end(), [&](const auto& row) { return row.first == name; });
  if (found == keyword.end()) return std::nullopt;
  std::optional<Value> value(std::move(found->second));
  keyword.erase(found);
  return value;
}

}  // namespace

void Scope::set(Symbol name, Value value) {
  for (auto& [known, old] : variables) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(const TemplateTree& tree) : tree_(tree), root_(std::make_shared<Scope>(nullptr)) {
  for (auto& [name, function] : global_functions(namespaces_)) define(name, std::move(function));
}

const Value* Interpreter::find(Symbol name, const ScopePtr& innermost) {
  for (const Scope* scope = innermost.get(); scope != nullptr; scope = scope->parent.get()) {
    budget_.spend(scope->variables.size() / 32);
    for (const auto& [known, value] : scope->variables)
      if (known == name) return &value;
  }
  return nullptr;
}

Interpreter::~Interpreter() {
  root_->variables.clear();
  for (const ScopePtr& scope : captured_scopes_) scope->variables.clear();
  for (const auto& made : namespaces_) made->clear();
}

void Interpreter::define(const std::string& name, Value value) {
  if (const auto symbol = tree_.symbols.find(name)) root_->set(*symbol, std::move(value));
}

std::string Interpreter::run() {
  try {
    execute(tree_.body, root_);
  } catch (const RenderError& error) {
    fail<RequestError>("{}, line {}: {}", tree_.what, line_, error.what());
  }
  return std::move(output_);
}

void Interpreter::print(std::string_view text) {
  if (output_.size() + text.size() > max_string_bytes)
    render_error("the output grows beyond {} MiB", max_string_bytes >> 20);
  budget_.allocate(text.size());
  output_ += text;
}

void Interpreter::print(const Value& value) {
  if (value.is_string()) {
    print(std::string_view(value.as_string()));
  } else {
    print(std::string_view(to_string(budget_, value)));
  }
}

Interpreter::Flow Interpreter::execute(const Body& body, const ScopePtr& scope) {
  for (const Statement& statement : body)
    if (const Flow flow = execute(statement, scope); flow != Flow::normal) return flow;
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const Statement& statement, const ScopePtr& scope) {
  line_ = statement.line;
  budget_.spend(1);
  Depth depth(depth_);
  return std::visit([&](const auto& node) { return run(node, scope); }, statement.node);
}

Interpreter::Flow Interpreter::run(const Data& node, const ScopePtr& /*scope*/) {
  print(std::string_view(node.text));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Output& node, const ScopePtr& scope) {
  print(evaluate(*node.value, scope));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Print& node, const ScopePtr& scope) {
  for (const auto& value : node.values) print(evaluate(*value, scope));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const If& node, const ScopePtr& scope) {
  for (const auto& [condition, body] : node.branches)
    if (evaluate(*condition, scope).truthy()) return execute(body, scope);
  return execute(node.otherwise, scope);
}

std::shared_ptr<Loop> Interpreter::make_loop(const For& node, const ScopePtr& scope) {
  SequencePtr items = iterate(budget_, evaluate(*node.items, scope));
  Loop::Condition condition;
  if (node.condition) {
    condition = [this, &node, scope](const Value& item) {
      const auto inner = std::make_shared<Scope>(scope);
      assign(node.target, item, inner);
      return evaluate(*node.condition, inner).truthy();
    };
  }
  return std::make_shared<Loop>(std::move(items), std::move(condition));
}

Interpreter::Flow Interpreter::run(const For& node, const ScopePtr& scope) {
  const std::shared_ptr<Loop> loop = make_loop(node, scope);
  const Value loop_value = Value::object(loop);
  // What jinja2 compiles runs "else" unless one round came to its end without break or continue.
  bool completed = false;
  ScopePtr inner;
  while (loop->advance()) {
    budget_.spend(1);
    if (!inner || inner.use_count() > 1) inner = std::make_shared<Scope>(scope);
    inner->variables.clear();
    inner->set(tree_.loop, loop_value);
    assign(node.target, loop->current(), inner);
    const Flow flow = execute(node.body, inner);
    if (flow == Flow::breaks) break;
    completed |= flow == Flow::normal;
  }
  loop->finish();
  if (!completed && !node.otherwise.empty()) return execute(node.otherwise, std::make_shared<Scope>(scope));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Set& node, const ScopePtr& scope) {
  assign(node.target, evaluate(*node.value, scope), scope);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const SetBlock& node, const ScopePtr& scope) {
  std::string text = capture(node.body, std::make_shared<Scope>(scope));
  assign(node.target, filtered(node.filter, std::move(text), scope), scope);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Macro& node, const ScopePtr& scope) {
  scope->set(node.definition->name, make_macro(node.definition, scope));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const CallBlock& node, const ScopePtr& scope) {
  const Value caller = make_macro(node.caller, scope);
  print(call(std::get<Call>(node.call->node), scope, &caller));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const FilterBlock& node, const ScopePtr& scope) {
  std::string text = capture(node.body, std::make_shared<Scope>(scope));
  print(filtered(node.filter, std::move(text), scope));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const With& node, const ScopePtr& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  for (const auto& [target, value] : node.values) assign(target, evaluate(*value, scope), inner);
  return execute(node.body, inner);
}

Interpreter::Flow Interpreter::run(const Scoped& node, const ScopePtr& scope) {
  return execute(node.body, std::make_shared<Scope>(scope));
}

Interpreter::Flow Interpreter::run(const Break& /*node*/, const ScopePtr& /*scope*/) { return Flow::breaks; }

Interpreter::Flow Interpreter::run(const Continue& /*node*/, const ScopePtr& /*scope*/) { return Flow::continues; }

std::string Interpreter::capture(const Body& body, const ScopePtr& scope) {
  std::string outer = std::exchange(output_, {});
  execute(body, scope);
  return std::exchange(output_, std::move(outer));
}

Value Interpreter::filtered(const ExpressionPtr& filter, std::string text, const ScopePtr& scope) {
  const Value value = Value::text(std::move(text));
  if (!filter) return value;
  const Value* outer = std::exchange(block_text_, &value);
  Value result = evaluate(*filter, scope);
  block_text_ = outer;
  return result;
}

void Interpreter::assign(const Target& target, const Value& value, const ScopePtr& scope) {
  if (target.is_tuple) {
    const SequencePtr items = iterate(budget_, value);
    if (items->items.size() != target.parts.size())
      render_error("{} values to unpack, but {} names", items->items.size(), target.parts.size());
    for (size_t i = 0; i < target.parts.size(); ++i) assign(target.parts[i], items->items[i], scope);
  } else if (target.attribute.empty()) {
    budget_.spend(scope->variables.size() / 32);
    scope->set(target.name, value);
  } else {
    const Value* found = find(target.name, scope);
    auto* space = found && found->is_object() ? dynamic_cast<Namespace*>(found->as_object().get()) : nullptr;
    if (space == nullptr) render_error("cannot assign attribute on non-namespace object");
    budget_.allocate(64);
    space->set(target.attribute, value);
  }
}

Value Interpreter::make_macro(std::shared_ptr<const MacroDefinition> macro, const ScopePtr& scope) {
  budget_.allocate(512);
  for (ScopePtr captured = scope; captured && !captured->captured; captured = captured->parent) {
    captured->captured = true;
    captured_scopes_.push_back(captured);
  }
  return Value::object(std::make_shared<MacroObject>(*this, std::move(macro), scope));
}

void Interpreter::bind_parameters(const MacroDefinition& macro, const ScopePtr& scope, const Arguments& arguments) {
  const size_t count = macro.parameters.size();
  const size_t first_default = count - macro.defaults.size();
  auto keyword = arguments.keyword;
  // A default sees every parameter of its own macro, those behind it as undefined.
  for (const auto& [symbol, name] : macro.parameters)
    scope->set(symbol, Value::undefined(fmt::format("parameter '{}' was not provided", name)));
  budget_.spend((keyword.size() + count) * count / 32);
  for (size_t i = 0; i < count; ++i) {
    const auto& [symbol, name] = macro.parameters[i];
    std::optional<Value> given;
    if (i < arguments.positional.size()) {
      given = arguments.positional[i];
    } else {
      given = take_keyword(keyword, name);
    }
    if (!given && i >= first_default) given = evaluate(*macro.defaults[i - first_default], scope);
    if (given) scope->set(symbol, std::move(*given));
  }
  if (macro.takes_caller) {
    const auto caller = take_keyword(keyword, "caller");
    scope->set(tree_.caller, caller.value_or(Value::undefined("No caller defined")));
  }
  if (macro.takes_more_keyword) {
    Dict more;
    for (const auto& [name, value] : keyword) more.set(Value::text(name), value);
    scope->set(tree_.more_keyword, Value::dict(std::move(more)));
  } else if (!keyword.empty()) {
    render_error("macro '{}' takes no keyword argument '{}'", macro.label, keyword.front().first);
  }
  const size_t extra = arguments.positional.size() - std::min(arguments.positional.size(), count);
  if (macro.takes_more_positional) {
    const auto end = arguments.positional.end();
    scope->set(tree_.more_positional, Value::tuple(std::vector<Value>(end - static_cast<std::ptrdiff_t>(extra), end)));
  } else if (extra > 0) {
    render_error("macro '{}' takes not more than {} argument(s)", macro.label, count);
  }
}

Value Interpreter::call_macro(const MacroDefinition& macro, const ScopePtr& scope, const Arguments& arguments) {
  Depth depth(depth_);
  const auto inner = std::make_shared<Scope>(scope);
  bind_parameters(macro, inner, arguments);
  return Value::text(capture(macro.body, inner));
}

}  // namespace sluice::jinja
