#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

struct FilterEntry;
struct TestEntry;
struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<const Expression>;
using Body = std::vector<Statement>;
using Symbol = uint32_t;  // a variable's name, as a number of the template's table

/// The names of a template's variables.
class SymbolTable {
 public:
  Symbol intern(const std::string& name) {
    const auto [found, added] = numbers_.emplace(name, static_cast<Symbol>(names_.size()));
    if (added) names_.push_back(name);
    return found->second;
  }
  std::optional<Symbol> find(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string& name_of(Symbol symbol) const { return names_[symbol]; }

 private:
  std::unordered_map<std::string, Symbol> numbers_;
  std::vector<std::string> names_;
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keyword;
  ExpressionPtr more_positional, more_keyword;  // *list and **dict, or null
};

struct Literal {
  Value value;
};
struct Variable {
  Symbol name;
};
struct ListDisplay {
  std::vector<ExpressionPtr> items;
};
struct TupleDisplay {
  std::vector<ExpressionPtr> items;
};
struct DictDisplay {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Not {
  ExpressionPtr operand;
};
struct Sign {
  ExpressionPtr operand;
  bool negative;
};
enum class Operator { add, subtract, multiply, divide, floor_divide, remainder, power };
struct Binary {
  Operator kind;
  ExpressionPtr left, right;
};
struct Logical {
  bool is_and;
  ExpressionPtr left, right;
};
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
struct Compare {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
struct Conditional {
  ExpressionPtr condition, then, otherwise;  // otherwise may be null
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Item {
  ExpressionPtr object, key;
};
struct Slice {
  ExpressionPtr object, start, stop, step;  // bounds may be null
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct Filter {
  ExpressionPtr operand;  // null: the text of the block that the filter stands over
  std::string name;
  const FilterEntry* entry;  // null: unknown, an error when it runs
  CallArguments arguments;
};
struct Test {
  ExpressionPtr operand;
  std::string name;
  const TestEntry* entry;
  CallArguments arguments;
};

struct Expression {
  int line = 0;
  int height = 1;  // of the tree
  std::variant<Literal, Variable, ListDisplay, TupleDisplay, DictDisplay, Not, Sign, Binary, Logical, Concatenation,
               Compare, Conditional, Attribute, Item, Slice, Call, Filter, Test>
      node;
};

/// What can stand left of "=": a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  Symbol name = 0;
  std::string attribute;  // empty: the name itself
  bool is_tuple = false;
  std::vector<Target> parts;
};

struct Data {
  std::string text;
};
struct Output {
  ExpressionPtr value;
};
struct Print {
  std::vector<ExpressionPtr> values;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr items, condition;  // condition may be null
  Body body, otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;  // over the body's text, or null
  Body body;
};
struct MacroDefinition {
  Symbol name = 0;
  std::string label;
  std::vector<std::pair<Symbol, std::string>> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  Body body;
  bool takes_more_positional = false, takes_more_keyword = false, takes_caller = false;
};
struct Macro {
  std::shared_ptr<const MacroDefinition> definition;
};
struct CallBlock {
  ExpressionPtr call;
  std::shared_ptr<const MacroDefinition> caller;
};
struct FilterBlock {
  ExpressionPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Body body;
};
struct Scoped {  // {% generation %}
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  int line = 0;
  std::variant<Data, Output, Print, If, For, Set, SetBlock, Macro, CallBlock, FilterBlock, With, Scoped, Break,
               Continue>
      node;
};

/// A parsed template. Immutable.
struct TemplateTree {
  std::string what;
  SymbolTable symbols;
  Symbol loop = 0, caller = 0, more_positional = 0, more_keyword = 0;
  Body body;
};

}  // namespace sluice::jinja
