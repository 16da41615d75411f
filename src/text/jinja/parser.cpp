#include "text/jinja/parser.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/expression_parser.h"

namespace sluice::jinja {

namespace {

class Parser {
 public:
  Parser(const Source& source, TemplateTree& tree) : stream_(source), tree_(tree), expressions_(stream_, tree) {}

  void run() {
    tree_.body = parse_body({});
    if (!stream_.is(Token::Type::end)) stream_.fail_unexpected("the end of the template");
  }

 private:
  /// Statements up to a tag of one of the names, which is left as the current token.
  Body parse_body(std::initializer_list<std::string_view> ends) {
    if (++depth_ > max_parse_depth / 2)
      stream_.fail(fmt::format("blocks are nested deeper than {} levels", max_parse_depth / 2));
    Body body;
    while (!stream_.is(Token::Type::end)) {
      const Token start = stream_.take();
      Statement statement;
      statement.line = stream_.line_of(start);
      if (start.type == Token::Type::data) {
        statement.node = Data{start.text};
      } else if (start.type == Token::Type::variable_begin) {
        statement.node = Output{expressions_.parse_tuple()};
        stream_.expect(Token::Type::variable_end, "'}}'");
      } else {
        if (stream_.is_any_name(ends)) break;
        parse_statement(statement);
        stream_.expect(Token::Type::block_end, "'%}'");
      }
      body.push_back(std::move(statement));
    }
    if (stream_.is(Token::Type::end) && ends.size() > 0) {
      std::string names;
      for (const std::string_view end : ends) names += fmt::format("{}'{}'", names.empty() ? "" : " or ", end);
      stream_.fail(fmt::format("the template ends inside of a block; expected {}", names));
    }
    --depth_;
    return body;
  }

  /// The body of a tag: behind its "%}", up to one of the ends.
  Body parse_block(std::initializer_list<std::string_view> ends) {
    stream_.skip_symbol(":");
    stream_.expect(Token::Type::block_end, "'%}'");
    return parse_body(ends);
  }

  Body parse_whole_block(std::string_view end) {
    Body body = parse_block({end});
    stream_.take();
    return body;
  }

  void parse_statement(Statement& statement) {
    const Token tag = stream_.expect(Token::Type::name, "the name of a tag");
    const auto* known = std::find_if(tags.begin(), tags.end(), [&](const auto& row) { return row.first == tag.text; });
    if (known != tags.end()) return (this->*known->second)(tag, statement);
    const auto* refused = std::find(refused_tags.begin(), refused_tags.end(), tag.text);
    if (refused != refused_tags.end())
      stream_.fail_at(tag, fmt::format("the tag '{}' is not supported in chat templates", tag.text));
    stream_.fail_at(tag, fmt::format("unknown tag '{}'", tag.text));
  }

  void parse_if(const Token& /*tag*/, Statement& statement) {
    If made;
    ++expressions_.conditional_depth;
    for (;;) {
      ExpressionPtr condition = expressions_.parse_tuple(false);
      Body body = parse_block({"elif", "else", "endif"});
      made.branches.emplace_back(std::move(condition), std::move(body));
      if (stream_.skip_name("elif")) continue;
      if (stream_.take().text == "else") made.otherwise = parse_whole_block("endif");
      break;
    }
    --expressions_.conditional_depth;
    statement.node = std::move(made);
  }

  void parse_for(const Token& tag, Statement& statement) {
    For made;
    made.target = expressions_.parse_target(false);
    refuse_loop(made.target, tag);
    stream_.expect_name("in");
    made.items = expressions_.parse_tuple(false);
    if (stream_.skip_name("if")) made.condition = expressions_.parse_expression();
    if (stream_.is_name("recursive")) stream_.fail("recursive loops are not supported");
    ++loop_depth_;
    made.body = parse_block({"endfor", "else"});
    --loop_depth_;
    if (stream_.take().text == "else") made.otherwise = parse_whole_block("endfor");
    statement.node = std::move(made);
  }

  void refuse_loop(const Target& target, const Token& tag) const {
    if (!target.is_tuple && target.name == tree_.loop)
      stream_.fail_at(tag, "the special variable 'loop' cannot be a loop's own variable");
    for (const Target& part : target.parts) refuse_loop(part, tag);
  }

  void parse_set(const Token& /*tag*/, Statement& statement) {
    Target target = expressions_.parse_target(true);
    if (stream_.skip_symbol("=")) {
      statement.node = Set{std::move(target), expressions_.parse_tuple()};
      return;
    }
    SetBlock made;
    made.target = std::move(target);
    if (stream_.skip_symbol("|")) made.filter = expressions_.parse_first_filter();
    made.body = parse_whole_block("endset");
    statement.node = std::move(made);
  }

  void parse_parameters(MacroDefinition& macro) {
    stream_.expect_symbol("(");
    while (!stream_.is_symbol(")")) {
      if (!macro.parameters.empty()) stream_.expect_symbol(",");
      if (stream_.is_symbol(")")) break;
      const Token name = stream_.expect(Token::Type::name, "the name of a parameter");
      macro.parameters.emplace_back(tree_.symbols.intern(name.text), name.text);
      if (stream_.skip_symbol("=")) {
        macro.defaults.push_back(expressions_.parse_expression());
      } else if (!macro.defaults.empty()) {
        stream_.fail_at(name, "a parameter without default stands behind one with a default");
      }
    }
    stream_.take();
  }

  /// The body of a macro or call block, with the implicit variables that it reads.
  void parse_macro_body(MacroDefinition& macro, std::string_view end) {
    const auto outer = std::exchange(expressions_.implicit_names, {});
    const int outer_loops = std::exchange(loop_depth_, 0);
    macro.body = parse_whole_block(end);
    loop_depth_ = outer_loops;
    const auto read = expressions_.implicit_names;
    const auto declares = [&](std::string_view name) {
      return std::any_of(macro.parameters.begin(), macro.parameters.end(),
                         [&](const auto& parameter) { return parameter.second == name; });
    };
    macro.takes_caller = read.caller && !declares("caller");
    macro.takes_more_positional = read.more_positional && !declares("varargs");
    macro.takes_more_keyword = read.more_keyword && !declares("kwargs");
    expressions_.implicit_names = {read.caller || outer.caller, read.more_positional || outer.more_positional,
                                   read.more_keyword || outer.more_keyword};
  }

  void parse_macro(const Token& /*tag*/, Statement& statement) {
    auto macro = std::make_shared<MacroDefinition>();
    const Token name = stream_.expect(Token::Type::name, "the name of a macro");
    macro->name = tree_.symbols.intern(name.text);
    macro->label = name.text;
    parse_parameters(*macro);
    parse_macro_body(*macro, "endmacro");
    statement.node = Macro{std::move(macro)};
  }

  void parse_call(const Token& tag, Statement& statement) {
    auto caller = std::make_shared<MacroDefinition>();
    caller->name = tree_.caller;
    caller->label = "caller";
    if (stream_.is_symbol("(")) parse_parameters(*caller);
    CallBlock made;
    made.call = expressions_.parse_expression();
    if (!std::holds_alternative<Call>(made.call->node)) stream_.fail_at(tag, "expected a call");
    parse_macro_body(*caller, "endcall");
    made.caller = std::move(caller);
    statement.node = std::move(made);
  }

  void parse_filter(const Token& /*tag*/, Statement& statement) {
    FilterBlock made;
    made.filter = expressions_.parse_first_filter();
    made.body = parse_whole_block("endfilter");
    statement.node = std::move(made);
  }

  void parse_with(const Token& /*tag*/, Statement& statement) {
    With made;
    while (!stream_.is(Token::Type::block_end)) {
      if (!made.values.empty()) stream_.expect_symbol(",");
      Target target = parse_with_target();
      stream_.expect_symbol("=");
      made.values.emplace_back(std::move(target), expressions_.parse_expression());
    }
    made.body = parse_whole_block("endwith");
    statement.node = std::move(made);
  }

  Target parse_with_target() { return expressions_.parse_target(false); }

  void parse_print(const Token& /*tag*/, Statement& statement) {
    Print made;
    do made.values.push_back(expressions_.parse_expression());
    while (stream_.skip_symbol(","));
    statement.node = std::move(made);
  }

  void parse_generation(const Token& /*tag*/, Statement& statement) {
    const int outer_loops = std::exchange(loop_depth_, 0);
    statement.node = Scoped{parse_whole_block("endgeneration")};
    loop_depth_ = outer_loops;
  }

  void parse_break(const Token& tag, Statement& statement) {
    if (loop_depth_ == 0) stream_.fail_at(tag, "'break' outside of a loop");
    statement.node = Break{};
  }

  void parse_continue(const Token& tag, Statement& statement) {
    if (loop_depth_ == 0) stream_.fail_at(tag, "'continue' outside of a loop");
    statement.node = Continue{};
  }

  using Handler = void (Parser::*)(const Token&, Statement&);
  static constexpr std::array<std::pair<std::string_view, Handler>, 11> tags = {
      {{"if", &Parser::parse_if},
       {"for", &Parser::parse_for},
       {"set", &Parser::parse_set},
       {"macro", &Parser::parse_macro},
       {"call", &Parser::parse_call},
       {"filter", &Parser::parse_filter},
       {"with", &Parser::parse_with},
       {"print", &Parser::parse_print},
       {"generation", &Parser::parse_generation},
       {"break", &Parser::parse_break},
       {"continue", &Parser::parse_continue}}};
  static constexpr std::array<std::string_view, 9> refused_tags = {"include",    "import", "from",  "extends", "block",
                                                                   "autoescape", "do",     "trans", "debug"};

  TokenStream stream_;
  TemplateTree& tree_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loop_depth_ = 0;
};

}  // namespace

std::shared_ptr<const TemplateTree> parse_template(std::string_view text, std::string_view what) {
  const Source source(text, what);
  auto tree = std::make_shared<TemplateTree>();
  tree->what = what;
  tree->loop = tree->symbols.intern("loop");
  tree->caller = tree->symbols.intern("caller");
  tree->more_positional = tree->symbols.intern("varargs");
  tree->more_keyword = tree->symbols.intern("kwargs");
  Parser(source, *tree).run();
  return tree;
}

}  // namespace sluice::jinja
