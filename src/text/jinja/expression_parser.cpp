#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "text/jinja/filters.h"
#include "text/jinja/tests.h"

namespace sluice::jinja {

namespace {

int height_of(const ExpressionPtr& expression) { return expression ? expression->height : 0; }

int tallest(const std::vector<ExpressionPtr>& expressions) {
  int height = 0;
  for (const auto& expression : expressions) height = std::max(height, expression->height);
  return height;
}

int taller(const ExpressionPtr& left, const ExpressionPtr& right) {
  return std::max(height_of(left), height_of(right));
}

}  // namespace

/// One level of recursion of the parser.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > max_parse_depth)
      parser_.stream_.fail(fmt::format("expressions are nested deeper than {} levels", max_parse_depth));
  }
  ~Nesting() { --parser_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  ExpressionParser& parser_;
};

template <class Node>
ExpressionPtr ExpressionParser::make(const Token& at, Node node, int children_height) {
  Expression expression;
  expression.line = stream_.line_of(at);
  expression.height = children_height + 1;
  if (expression.height > max_parse_depth)
    stream_.fail_at(at, fmt::format("an expression is nested deeper than {} levels", max_parse_depth));
  expression.node = std::move(node);
  return std::make_unique<const Expression>(std::move(expression));
}

ExpressionPtr ExpressionParser::parse_expression(bool with_conditional) {
  return with_conditional ? parse_conditional() : parse_or();
}

ExpressionPtr ExpressionParser::parse_conditional() {
  const Token start = stream_.current();
  ExpressionPtr value = parse_or();
  while (stream_.skip_name("if")) {
    ExpressionPtr condition = parse_or(), otherwise;
    if (stream_.skip_name("else")) {
      Nesting nesting(*this);
      otherwise = parse_conditional();
    }
    const int height = std::max(taller(value, condition), height_of(otherwise));
    value = make(start, Conditional{std::move(condition), std::move(value), std::move(otherwise)}, height);
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  const Token start = stream_.current();
  ExpressionPtr left = parse_and();
  while (stream_.skip_name("or")) {
    ExpressionPtr right = parse_and();
    const int height = taller(left, right);
    left = make(start, Logical{false, std::move(left), std::move(right)}, height);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  const Token start = stream_.current();
  ExpressionPtr left = parse_not();
  while (stream_.skip_name("and")) {
    ExpressionPtr right = parse_not();
    const int height = taller(left, right);
    left = make(start, Logical{true, std::move(left), std::move(right)}, height);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!stream_.is_name("not")) return parse_compare();
  const Token start = stream_.take();
  Nesting nesting(*this);
  ExpressionPtr operand = parse_not();
  const int height = operand->height;
  return make(start, Not{std::move(operand)}, height);
}

ExpressionPtr ExpressionParser::parse_compare() {
  static constexpr std::array<std::pair<std::string_view, Comparison>, 6> comparisons = {
      {{"==", Comparison::equal},
       {"!=", Comparison::not_equal},
       {"<", Comparison::less},
       {"<=", Comparison::less_equal},
       {">", Comparison::greater},
       {">=", Comparison::greater_equal}}};
  const Token start = stream_.current();
  ExpressionPtr first = parse_sum();
  Compare compare;
  int height = first->height;
  for (;;) {
    const auto* symbol = std::find_if(comparisons.begin(), comparisons.end(),
                                      [&](const auto& row) { return stream_.is_symbol(row.first); });
    Comparison kind = Comparison::in;
    if (symbol != comparisons.end()) {
      kind = symbol->second;
    } else if (stream_.is_name("not") && TokenStream::matches(stream_.following(), Token::Type::name, "in")) {
      stream_.take();
      kind = Comparison::not_in;
    } else if (!stream_.is_name("in")) {
      break;
    }
    stream_.take();
    compare.rest.emplace_back(kind, parse_sum());
    height = std::max(height, compare.rest.back().second->height);
  }
  if (compare.rest.empty()) return first;
  compare.first = std::move(first);
  return make(start, std::move(compare), height);
}

ExpressionPtr ExpressionParser::parse_sum() {
  const Token start = stream_.current();
  ExpressionPtr left = parse_concatenation();
  while (stream_.is_symbol("+") || stream_.is_symbol("-")) {
    const auto kind = stream_.take().text == "+" ? Operator::add : Operator::subtract;
    ExpressionPtr right = parse_concatenation();
    const int height = taller(left, right);
    left = make(start, Binary{kind, std::move(left), std::move(right)}, height);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const Token start = stream_.current();
  ExpressionPtr first = parse_product();
  if (!stream_.is_symbol("~")) return first;
  Concatenation concatenation;
  concatenation.parts.push_back(std::move(first));
  while (stream_.skip_symbol("~")) concatenation.parts.push_back(parse_product());
  const int height = tallest(concatenation.parts);
  return make(start, std::move(concatenation), height);
}

ExpressionPtr ExpressionParser::parse_product() {
  static constexpr std::array<std::pair<std::string_view, Operator>, 4> operators = {
      {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::remainder}}};
  const Token start = stream_.current();
  ExpressionPtr left = parse_power();
  for (;;) {
    const auto* found =
        std::find_if(operators.begin(), operators.end(), [&](const auto& row) { return stream_.is_symbol(row.first); });
    if (found == operators.end()) return left;
    stream_.take();
    ExpressionPtr right = parse_power();
    const int height = taller(left, right);
    left = make(start, Binary{found->second, std::move(left), std::move(right)}, height);
  }
}

ExpressionPtr ExpressionParser::parse_power() {
  const Token start = stream_.current();
  ExpressionPtr left = parse_unary(true);
  while (stream_.skip_symbol("**")) {
    ExpressionPtr right = parse_unary(true);
    const int height = taller(left, right);
    left = make(start, Binary{Operator::power, std::move(left), std::move(right)}, height);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  Nesting nesting(*this);
  ExpressionPtr value;
  if (stream_.is_symbol("-") || stream_.is_symbol("+")) {
    const Token sign = stream_.take();
    ExpressionPtr operand = parse_unary(false);
    const int height = operand->height;
    value = make(sign, Sign{std::move(operand), sign.text == "-"}, height);
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token start = stream_.current();
  switch (start.type) {
    case Token::Type::name: return parse_name();
    case Token::Type::string: return parse_string();
    case Token::Type::integer: stream_.take(); return make(start, Literal{Value::integer(start.integer)});
    case Token::Type::floating: stream_.take(); return make(start, Literal{Value::floating(start.floating)});
    default: break;
  }
  if (stream_.is_symbol("(")) return parse_parentheses();
  if (stream_.is_symbol("[")) return parse_list();
  if (stream_.is_symbol("{")) return parse_dict();
  stream_.fail_unexpected("an expression");
}

ExpressionPtr ExpressionParser::parse_name() {
  const Token name = stream_.take();
  if (name.text == "true" || name.text == "True") return make(name, Literal{Value::boolean(true)});
  if (name.text == "false" || name.text == "False") return make(name, Literal{Value::boolean(false)});
  if (name.text == "none" || name.text == "None") return make(name, Literal{Value::none()});
  implicit_names.caller |= name.text == "caller";
  implicit_names.more_positional |= name.text == "varargs";
  implicit_names.more_keyword |= name.text == "kwargs";
  return make(name, Variable{tree_.symbols.intern(name.text)});
}

ExpressionPtr ExpressionParser::parse_string() {
  const Token start = stream_.take();
  std::string joined = start.text;
  while (stream_.is(Token::Type::string)) joined += stream_.take().text;
  return make(start, Literal{Value::text(std::move(joined))});
}

bool ExpressionParser::at_tuple_end() const {
  return stream_.is(Token::Type::variable_end) || stream_.is(Token::Type::block_end) || stream_.is_symbol(")") ||
         stream_.is_name("recursive");
}

ExpressionPtr ExpressionParser::parse_tuple(bool with_conditional) {
  const Token start = stream_.current();
  if (at_tuple_end()) stream_.fail_unexpected("an expression");
  ExpressionPtr first = parse_expression(with_conditional);
  if (!stream_.is_symbol(",")) return first;
  TupleDisplay tuple;
  tuple.items.push_back(std::move(first));
  while (stream_.skip_symbol(",") && !at_tuple_end()) tuple.items.push_back(parse_expression(with_conditional));
  const int height = tallest(tuple.items);
  return make(start, std::move(tuple), height);
}

ExpressionPtr ExpressionParser::parse_parentheses() {
  const Token start = stream_.take();
  if (stream_.skip_symbol(")")) return make(start, TupleDisplay{});
  ExpressionPtr value = parse_tuple();
  stream_.expect_symbol(")");
  return value;
}

ExpressionPtr ExpressionParser::parse_list() {
  const Token start = stream_.take();
  ListDisplay list;
  while (!stream_.is_symbol("]")) {
    if (!list.items.empty()) stream_.expect_symbol(",");
    if (stream_.is_symbol("]")) break;
    list.items.push_back(parse_expression());
  }
  stream_.expect_symbol("]");
  const int height = tallest(list.items);
  return make(start, std::move(list), height);
}

ExpressionPtr ExpressionParser::parse_dict() {
  const Token start = stream_.take();
  DictDisplay dict;
  int height = 0;
  while (!stream_.is_symbol("}")) {
    if (!dict.entries.empty()) stream_.expect_symbol(",");
    if (stream_.is_symbol("}")) break;
    ExpressionPtr key = parse_expression();
    stream_.expect_symbol(":");
    ExpressionPtr value = parse_expression();
    height = std::max(height, taller(key, value));
    dict.entries.emplace_back(std::move(key), std::move(value));
  }
  stream_.expect_symbol("}");
  return make(start, std::move(dict), height);
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr operand) {
  for (;;) {
    if (stream_.is_symbol(".")) {
      operand = parse_dot(std::move(operand));
    } else if (stream_.is_symbol("[")) {
      operand = parse_brackets(std::move(operand));
    } else if (stream_.is_symbol("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::parse_dot(ExpressionPtr object) {
  const Token dot = stream_.take();
  const int height = object->height;
  if (stream_.is(Token::Type::integer)) {
    ExpressionPtr key = make(dot, Literal{Value::integer(stream_.take().integer)});
    return make(dot, Item{std::move(object), std::move(key)}, height);
  }
  const Token name = stream_.expect(Token::Type::name, "a name or number behind '.'");
  return make(dot, Attribute{std::move(object), name.text}, height);
}

ExpressionPtr ExpressionParser::parse_brackets(ExpressionPtr object) {
  const Token start = stream_.take();
  std::array<ExpressionPtr, 3> bounds;
  size_t colons = 0;
  while (!stream_.is_symbol("]")) {
    if (stream_.is_symbol(":")) {
      if (++colons > 2) stream_.fail("a slice has at most three parts");
      stream_.take();
    } else if (bounds.at(colons)) {
      stream_.fail_unexpected("']'");
    } else {
      bounds.at(colons) = parse_expression();
    }
  }
  if (colons == 0 && !bounds[0]) stream_.fail_unexpected("an expression");
  stream_.take();
  const int height = std::max({object->height, taller(bounds[0], bounds[1]), height_of(bounds[2])});
  if (colons == 0) return make(start, Item{std::move(object), std::move(bounds[0])}, height);
  return make(start, Slice{std::move(object), std::move(bounds[0]), std::move(bounds[1]), std::move(bounds[2])},
              height);
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  const Token start = stream_.current();
  int height = callee->height;
  CallArguments arguments = parse_arguments(height);
  return make(start, Call{std::move(callee), std::move(arguments)}, height);
}

CallArguments ExpressionParser::parse_arguments(int& height) {
  const auto parse_value = [&] {
    ExpressionPtr value = parse_expression();
    height = std::max(height, value->height);
    return value;
  };
  CallArguments arguments;
  stream_.expect_symbol("(");
  bool first = true;
  while (!stream_.is_symbol(")")) {
    if (!first) {
      stream_.expect_symbol(",");
      if (stream_.is_symbol(")")) break;
    }
    first = false;
    const bool is_keyword =
        stream_.is(Token::Type::name) && TokenStream::matches(stream_.following(), Token::Type::symbol, "=");
    const bool no_stars = !arguments.more_positional && !arguments.more_keyword;
    if (stream_.is_symbol("*") && no_stars) {
      stream_.take();
      arguments.more_positional = parse_value();
    } else if (stream_.is_symbol("**") && !arguments.more_keyword) {
      stream_.take();
      arguments.more_keyword = parse_value();
    } else if (is_keyword && !arguments.more_keyword) {
      std::string name = stream_.take().text;
      stream_.take();
      arguments.keyword.emplace_back(std::move(name), parse_value());
    } else if (!is_keyword && no_stars && arguments.keyword.empty()) {
      arguments.positional.push_back(parse_value());
    } else {
      stream_.fail("this argument cannot stand behind those before it");
    }
  }
  stream_.take();
  return arguments;
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr operand) {
  for (;;) {
    if (stream_.is_symbol("|")) {
      stream_.take();
      operand = parse_filter(std::move(operand));
    } else if (stream_.is_name("is")) {
      operand = parse_test(std::move(operand));
    } else if (stream_.is_symbol("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr operand) {
  while (stream_.skip_symbol("|")) operand = parse_filter(std::move(operand));
  return operand;
}

ExpressionPtr ExpressionParser::parse_first_filter() { return parse_filters(parse_filter(nullptr)); }

std::string ExpressionParser::parse_dotted_name(std::string_view described) {
  std::string name = stream_.expect(Token::Type::name, described).text;
  while (stream_.skip_symbol(".")) name += "." + stream_.expect(Token::Type::name, described).text;
  return name;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr operand) {
  const Token start = stream_.current();
  Filter filter;
  filter.name = parse_dotted_name("the name of a filter");
  filter.entry = find_filter(filter.name);
  if (filter.entry == nullptr && conditional_depth == 0)
    stream_.fail_at(start, fmt::format("there is no filter named '{}'", filter.name));
  int height = height_of(operand);
  filter.operand = std::move(operand);
  if (stream_.is_symbol("(")) filter.arguments = parse_arguments(height);
  return make(start, std::move(filter), height);
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr operand) {
  const Token start = stream_.take();
  const bool negated = stream_.skip_name("not");
  const Token name = stream_.current();
  Test test;
  test.name = parse_dotted_name("the name of a test");
  test.entry = find_test(test.name);
  if (test.entry == nullptr && conditional_depth == 0)
    stream_.fail_at(name, fmt::format("there is no test named '{}'", test.name));
  int height = operand->height;
  test.operand = std::move(operand);
  const bool is_value = stream_.is(Token::Type::name) || stream_.is(Token::Type::string) ||
                        stream_.is(Token::Type::integer) || stream_.is(Token::Type::floating) ||
                        stream_.is_symbol("[") || stream_.is_symbol("{");
  if (stream_.is_symbol("(")) {
    test.arguments = parse_arguments(height);
  } else if (stream_.is_name("is")) {
    stream_.fail("tests cannot be chained with 'is'");
  } else if (is_value && !stream_.is_any_name({"else", "or", "and"})) {
    ExpressionPtr argument = parse_postfix(parse_primary());
    height = std::max(height, argument->height);
    test.arguments.positional.push_back(std::move(argument));
  }
  ExpressionPtr made = make(start, std::move(test), height);
  if (!negated) return made;
  const int negated_height = made->height;
  return make(start, Not{std::move(made)}, negated_height);
}

Target ExpressionParser::parse_target(bool with_namespace) {
  const auto parse_one = [&]() -> Target {
    if (stream_.skip_symbol("(")) {
      Nesting nesting(*this);
      Target inner = parse_target(with_namespace);
      stream_.expect_symbol(")");
      return inner;
    }
    const Token name = stream_.expect(Token::Type::name, "a name to assign to");
    if (name.text == "true" || name.text == "True" || name.text == "false" || name.text == "False" ||
        name.text == "none" || name.text == "None")
      stream_.fail_at(name, "cannot assign to a constant");
    Target target;
    target.name = tree_.symbols.intern(name.text);
    if (with_namespace && stream_.skip_symbol("."))
      target.attribute = stream_.expect(Token::Type::name, "the name of an attribute").text;
    return target;
  };
  Target first = parse_one();
  if (!stream_.is_symbol(",")) return first;
  Target tuple;
  tuple.is_tuple = true;
  tuple.parts.push_back(std::move(first));
  while (stream_.skip_symbol(",")) {
    if (at_tuple_end() || stream_.is_name("in") || stream_.is_symbol("=")) break;
    tuple.parts.push_back(parse_one());
  }
  return tuple;
}

}  // namespace sluice::jinja
