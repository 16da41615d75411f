#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/loop.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

/// The variables of one block. Blocks inside see them; assignments go to the innermost.
struct Scope {
  explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)) {}
  std::vector<std::pair<Symbol, Value>> variables;
  std::shared_ptr<Scope> parent;
  bool captured = false;  // a macro refers to it

  void set(Symbol name, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

/// Runs one template once.
class Interpreter {
 public:
  explicit Interpreter(const TemplateTree& tree);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void define(const std::string& name, Value value);
  /// The rendered text. Throws RequestError: raise_exception's own words, or what failed with its line.
  std::string run();

  Value call_macro(const MacroDefinition& macro, const ScopePtr& scope, const Arguments& arguments);

 private:
  enum class Flow { normal, breaks, continues };

  Flow execute(const Body& body, const ScopePtr& scope);
  Flow execute(const Statement& statement, const ScopePtr& scope);
  Flow run(const Data& node, const ScopePtr& scope);
  Flow run(const Output& node, const ScopePtr& scope);
  Flow run(const Print& node, const ScopePtr& scope);
  Flow run(const If& node, const ScopePtr& scope);
  Flow run(const For& node, const ScopePtr& scope);
  Flow run(const Set& node, const ScopePtr& scope);
  Flow run(const SetBlock& node, const ScopePtr& scope);
  Flow run(const Macro& node, const ScopePtr& scope);
  Flow run(const CallBlock& node, const ScopePtr& scope);
  Flow run(const FilterBlock& node, const ScopePtr& scope);
  Flow run(const With& node, const ScopePtr& scope);
  Flow run(const Scoped& node, const ScopePtr& scope);
  Flow run(const Break& node, const ScopePtr& scope);
  Flow run(const Continue& node, const ScopePtr& scope);

  const Value* find(Symbol name, const ScopePtr& scope);
  Value evaluate(const Expression& expression, const ScopePtr& scope);
  Value evaluate_or_undefined(const ExpressionPtr& expression, const ScopePtr& scope);
  Value value_of(const Literal& node, const ScopePtr& scope);
  Value value_of(const Variable& node, const ScopePtr& scope);
  Value value_of(const ListDisplay& node, const ScopePtr& scope);
  Value value_of(const TupleDisplay& node, const ScopePtr& scope);
  Value value_of(const DictDisplay& node, const ScopePtr& scope);
  Value value_of(const Not& node, const ScopePtr& scope);
  Value value_of(const Sign& node, const ScopePtr& scope);
  Value value_of(const Binary& node, const ScopePtr& scope);
  Value value_of(const Logical& node, const ScopePtr& scope);
  Value value_of(const Concatenation& node, const ScopePtr& scope);
  Value value_of(const Compare& node, const ScopePtr& scope);
  Value value_of(const Conditional& node, const ScopePtr& scope);
  Value value_of(const Attribute& node, const ScopePtr& scope);
  Value value_of(const Item& node, const ScopePtr& scope);
  Value value_of(const Slice& node, const ScopePtr& scope);
  Value value_of(const Call& node, const ScopePtr& scope);
  Value value_of(const Filter& node, const ScopePtr& scope);
  Value value_of(const Test& node, const ScopePtr& scope);

  std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& expressions, const ScopePtr& scope);
  Arguments evaluate_arguments(const CallArguments& arguments, const ScopePtr& scope);
  Value call(const Call& node, const ScopePtr& scope, const Value* caller);
  Value make_macro(std::shared_ptr<const MacroDefinition> macro, const ScopePtr& scope);
  void bind_parameters(const MacroDefinition& macro, const ScopePtr& scope, const Arguments& arguments);
  void assign(const Target& target, const Value& value, const ScopePtr& scope);
  /// What the body prints, in a scope of its own unless one is given.
  std::string capture(const Body& body, const ScopePtr& scope);
  Value filtered(const ExpressionPtr& filter, std::string text, const ScopePtr& scope);
  void print(std::string_view text);
  void print(const Value& value);
  std::shared_ptr<Loop> make_loop(const For& node, const ScopePtr& scope);

  const TemplateTree& tree_;
  Budget budget_;
  std::string output_;
  const Value* block_text_ = nullptr;  // what a filter without operand stands over
  int line_ = 0;
  int depth_ = 0;
  ScopePtr root_;
  // Kept and emptied at the end: a macro and its scope, or two namespaces, may refer to each other.
  std::vector<ScopePtr> captured_scopes_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

}  // namespace sluice::jinja
