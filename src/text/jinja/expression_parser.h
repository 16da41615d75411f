#pragma once
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace sluice::jinja {

/// The expressions of jinja2's grammar, in its order of precedence.
class ExpressionParser {
 public:
  ExpressionParser(TokenStream& stream, TemplateTree& tree) : stream_(stream), tree_(tree) {}

  ExpressionPtr parse_expression(bool with_conditional = true);
  /// One expression, or a tuple without parentheses.
  ExpressionPtr parse_tuple(bool with_conditional = true);
  /// Filters behind a "|", over `operand` (null: over a block's text). Returns `operand` when there is none.
  ExpressionPtr parse_filters(ExpressionPtr operand);
  ExpressionPtr parse_first_filter();  // of a filter block: "name(args) | ..."
  Target parse_target(bool with_namespace);

  /// Names of a macro's implicit variables that were read since the last reset.
  struct ImplicitNames {
    bool caller = false, more_positional = false, more_keyword = false;
  };
  ImplicitNames implicit_names;
  /// Above 0 inside of an "if": unknown filters and tests are an error only when they run.
  int conditional_depth = 0;

 private:
  class Nesting;
  template <class Node>
  ExpressionPtr make(const Token& at, Node node, int children_height = 0);

  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_string();
  ExpressionPtr parse_parentheses();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr operand);
  ExpressionPtr parse_dot(ExpressionPtr object);
  ExpressionPtr parse_brackets(ExpressionPtr object);
  ExpressionPtr parse_call(ExpressionPtr callee);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr operand);
  ExpressionPtr parse_filter(ExpressionPtr operand);
  ExpressionPtr parse_test(ExpressionPtr operand);
  CallArguments parse_arguments(int& height);
  std::string parse_dotted_name(std::string_view described);
  bool at_tuple_end() const;

  TokenStream& stream_;
  TemplateTree& tree_;
  int depth_ = 0;
};

}  // namespace sluice::jinja
