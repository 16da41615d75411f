// Random walks through grammars: whatever can be sampled is what was asked for.
#include "text/grammar.h"

#include <regex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "grammar_walk.h"
#include "text/reply_parser.h"
#include "text/unicode.h"

namespace sluice {
namespace {

using Kind = GrammarSource::Kind;

const Json person_schema = parse_json(R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "colour": {"enum": ["red", "green", null]},
    "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
    "next": {"$ref": "#/$defs/point"}
  },
  "required": ["name", "age", "colour"],
  "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}
})",
                                      "person");

bool is_person(const Json& value) {
  if (!value.is_object() || !value.contains("name") || !value.contains("age") || !value.contains("colour"))
    return false;
  for (const auto& [key, item] : value.items()) {
    const bool right = key == "name"     ? item.is_string()
                       : key == "age"    ? item.is_number_integer() && item >= 0 && item <= 150
                       : key == "colour" ? item == "red" || item == "green" || item.is_null()
                       : key == "tags"   ? item.is_array() && item.size() <= 3
                       : key == "next"   ? item.is_object() && item["x"].is_number()
                                         : false;
    if (!right) return false;
  }
  return true;
}

GrammarSource schema_source(const Json& schema) {
  GrammarSource source;
  source.kind = Kind::json_schema;
  source.schema = schema;
  return source;
}

GrammarSource text_source(Kind kind, std::string text) {
  GrammarSource source;
  source.kind = kind;
  source.text = std::move(text);
  return source;
}

class Grammars : public testing::Test {
 protected:
  void SetUp() override {
    if (!grammars_supported()) GTEST_SKIP() << "this build has no xgrammar";
  }
  /// Replies that ended by themselves.
  std::vector<std::string> walks(const GrammarSource& source, int count, int longest = 400) {
    const auto grammar = tiny_compiler().compile(source);
    std::vector<std::string> ended;
    for (int seed = 0; seed < count; ++seed) {
      const auto state = grammar->start();
      const Walk walk = random_walk(*state, static_cast<unsigned>(seed), longest);
      EXPECT_FALSE(walk.stuck) << "nothing may follow: " << walk.text;
      if (!walk.ended) continue;
      append_valid_utf8(ended.emplace_back(), walk.text);
    }
    EXPECT_GT(ended.size(), static_cast<std::size_t>(count) / 2) << "too few walks end to tell";
    return ended;
  }
  std::string refusal(const GrammarSource& source) {
    try {
      tiny_compiler().compile(source);
    } catch (const RequestError& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(Grammars, AJsonObjectIsAnyObjectAndNothingElse) {
  for (const std::string& text : walks({}, 60)) {
    try {
      ASSERT_TRUE(Json::parse(text).is_object()) << text;
    } catch (const Json::out_of_range&) {
      // 44E310 is JSON, though no double.
    } catch (const Json::parse_error& error) {
      FAIL() << error.what() << ": " << text;
    }
  }
  const auto grammar = tiny_compiler().compile({});
  EXPECT_TRUE(accepts(*grammar, R"({"a": [1, {"b": null}], "c": "d"})"));
  EXPECT_TRUE(accepts(*grammar, "{}"));
  EXPECT_FALSE(accepts(*grammar, "[1]"));
  EXPECT_FALSE(accepts(*grammar, R"({"a": 1)")) << "not complete";
  EXPECT_FALSE(accepts(*grammar, "{" + std::string(200, ' ') + "}")) << "white space without end";
}

TEST_F(Grammars, AJsonSchemaIsKept) {
  for (const std::string& text : walks(schema_source(person_schema), 60)) {
    const Json value = Json::parse(text, nullptr, false);
    ASSERT_TRUE(is_person(value)) << text;
  }
  const auto grammar = tiny_compiler().compile(schema_source(person_schema));
  EXPECT_TRUE(accepts(*grammar, R"({"name": "Ada", "age": 36, "colour": null, "next": {"x": 1.5}})"));
  EXPECT_TRUE(accepts(*grammar, "{\n  \"name\": \"Ada\",\n  \"age\": 36,\n  \"colour\": \"red\"\n}"));
  EXPECT_FALSE(accepts(*grammar, R"({"name": "Ada", "age": 36})"));
  EXPECT_FALSE(accepts(*grammar, "{\"name\": \"A\tda\", \"age\": 36, \"colour\": null}")) << "a control character";
  EXPECT_FALSE(accepts(*grammar, R"({"name": "Ada, Countess", "age": 36, "colour": null})")) << "13 letters";
  EXPECT_FALSE(accepts(*grammar, R"({"name": "Ada", "age": "36", "colour": null})"));
}

TEST_F(Grammars, ARegularExpressionIsKept) {
  const std::regex expected("[A-Z]{2}-[0-9]{1,4}(\\.(txt|md))?");
  for (const std::string& text : walks(text_source(Kind::regex, "[A-Z]{2}-[0-9]{1,4}(\\.(txt|md))?"), 100)) {
    ASSERT_TRUE(std::regex_match(text, expected)) << text;
  }
}

TEST_F(Grammars, AChoiceIsOneOfItsEntriesToTheLetter) {
  GrammarSource source;
  source.kind = Kind::choice;
  source.choices = {"yes", "no", "a.b*[c]\"\\\n", "\xc3\xa4\xe4\xb8\xad", "yes, please"};
  std::set<std::string> seen;
  for (const std::string& text : walks(source, 200)) {
    ASSERT_NE(std::find(source.choices.begin(), source.choices.end(), text), source.choices.end()) << text;
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), source.choices.size());
}

TEST_F(Grammars, AnEbnfGrammarIsKept) {
  const std::regex expected("[0-9](\\+[0-9])*");
  const auto source = text_source(Kind::ebnf, "root ::= digit (\"+\" digit)*\ndigit ::= [0-9]");
  for (const std::string& text : walks(source, 60)) ASSERT_TRUE(std::regex_match(text, expected)) << text;
}

TEST_F(Grammars, SpecialTokensAreNeverPartOfText) {
  for (const GrammarSource& source : {GrammarSource{}, text_source(Kind::regex, "[\\s\\S]*"),
                                      text_source(Kind::ebnf, "root ::= \"<|im_end|><think>\" [^x]*")}) {
    const auto state = tiny_compiler().compile(source)->start();
    for (int step = 0; step < 12; ++step) {
      const std::vector<TokenId> allowed = allowed_after(*state);
      TokenId next = -1;
      for (const TokenId token : allowed) {
        if (is_stop(token)) continue;
        ASSERT_FALSE(tiny_tokenizer()->is_added(token)) << tiny_tokenizer()->bytes_of(token);
        next = token;
      }
      ASSERT_GE(next, 0);
      state->accept(next);
    }
  }
}

TEST_F(Grammars, AReplyMayEndExactlyWhereItIsComplete) {
  const auto state = tiny_compiler().compile(text_source(Kind::regex, "a(bb)?"))->start();
  const auto may_end = [&] {
    const std::vector<TokenId> allowed = allowed_after(*state);
    return std::count_if(allowed.begin(), allowed.end(), is_stop);
  };
  EXPECT_EQ(may_end(), 0);
  state->accept(tiny_tokenizer()->encode("a")[0]);
  EXPECT_EQ(may_end(), 2) << "both stop tokens";
  state->accept(tiny_tokenizer()->encode("b")[0]);
  EXPECT_EQ(may_end(), 0);
  EXPECT_THROW(state->accept(tiny_tokenizer()->encode("a")[0]), RequestError);
  state->accept(tiny_tokenizer()->encode("b")[0]);
  state->accept(tiny_stops()[0]);
  for (const TokenId token : allowed_after(*state)) EXPECT_TRUE(is_stop(token)) << "after the end";
}

const Json weather_tools = parse_json(R"([
  {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["c", "f"]},
    "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}},
    "required": ["city", "days"]}}},
  {"type": "function", "function": {"name": "now"}}])",
                                      "tools");

GrammarSource tools_source(bool parallel) {
  GrammarSource source;
  source.kind = Kind::tool_calls;
  source.tools = weather_tools;
  source.parallel_tool_calls = parallel;
  return source;
}

/// What the reply parser makes of a reply: calls only, each of a tool with arguments of the schema.
std::size_t count_right_calls(const std::string& text) {
  ReplyParser parser({false, weather_tools});
  parser.add(text);
  parser.finish();
  EXPECT_EQ(parser.reply().content, "") << text;
  for (const ToolCall& call : parser.reply().tool_calls) {
    const Json arguments = Json::parse(call.arguments, nullptr, false);
    EXPECT_TRUE(arguments.is_object()) << call.arguments;
    if (call.name == "now") {
      EXPECT_TRUE(arguments.empty()) << text;
      continue;
    }
    EXPECT_EQ(call.name, "get_weather");
    EXPECT_TRUE(arguments.contains("city") && arguments["city"].is_string()) << text;
    EXPECT_TRUE(arguments.contains("days") && arguments["days"].is_number_integer()) << text;
    EXPECT_TRUE(!arguments.contains("unit") || arguments["unit"] == "c" || arguments["unit"] == "f") << text;
    EXPECT_TRUE(!arguments.contains("place") || arguments["place"]["lat"].is_number()) << text;
  }
  return parser.reply().tool_calls.size();
}

TEST_F(Grammars, ToolCallsAreCallsOfTheToolsWithArgumentsOfTheirSchemas) {
  std::size_t most = 0;
  for (const std::string& text : walks(tools_source(true), 60, 1500)) most = std::max(most, count_right_calls(text));
  EXPECT_GT(most, 1u) << "several calls";
  for (const std::string& text : walks(tools_source(false), 30, 1500)) EXPECT_EQ(count_right_calls(text), 1u) << text;
}

TEST_F(Grammars, TheCallsOfTheChatTemplateAreAccepted) {
  const auto grammar = tiny_compiler().compile(tools_source(true));
  const std::string call =
      "<tool_call>\n<function=get_weather>\n<parameter=city>\nS\xc3\xa3o Paulo\n</parameter>\n<parameter=days>\n3\n"
      "</parameter>\n<parameter=place>\n{\"lat\": 1.5}\n</parameter>\n</function>\n</tool_call>";
  const std::string other = "<tool_call>\n<function=now>\n</function>\n</tool_call>";
  EXPECT_TRUE(accepts(*grammar, call));
  EXPECT_TRUE(accepts(*grammar, other + "\n" + call));
  EXPECT_FALSE(accepts(*grammar, "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"));
  EXPECT_FALSE(accepts(*grammar, "<tool_call>\n<function=other>\n</function>\n</tool_call>"));
  EXPECT_FALSE(accepts(*tiny_compiler().compile(tools_source(false)), other + "\n" + other));
}

TEST_F(Grammars, WhatCannotBeCompiledIsRefusedWithTheReason) {
  EXPECT_EQ(refusal(text_source(Kind::regex, "[a-")),
            "the regular expression cannot be compiled: Regex parsing error at position 4: Unclosed '['");
  EXPECT_NE(refusal(text_source(Kind::ebnf, "root ::= missing")).find("\"missing\" is not defined"), std::string::npos);
  EXPECT_NE(refusal(schema_source({{"enum", Json::array()}})).find("enum array must not be empty"), std::string::npos);
  EXPECT_EQ(refusal(text_source(Kind::ebnf, "root ::= ExcludeToken (3)")),
            "the grammar names tokens by id (ExcludeToken): only text can be described");
  EXPECT_EQ(refusal(text_source(Kind::ebnf, "root ::= \"Token(3)\" # Token(3)")), "accepted");
  GrammarSource empty;
  empty.kind = Kind::choice;
  EXPECT_EQ(refusal(empty), "choice has no entries; at least one is needed");
}

TEST_F(Grammars, SourcesThatWouldTakeTooLongAreRefusedAtOnce) {
  Json deep = {{"type", "string"}};
  for (int i = 0; i < 40; ++i) deep = {{"type", "object"}, {"properties", {{"a", deep}}}};
  EXPECT_NE(refusal(schema_source(deep)).find("levels deep; allowed are at most 64"), std::string::npos);
  Json wide = {{"type", "object"}, {"properties", Json::object()}};
  for (int i = 0; i < 300; ++i) wide["properties"]["p" + std::to_string(i)] = {{"type", "string"}};
  EXPECT_NE(refusal(schema_source(wide)).find("has 300 properties"), std::string::npos);
  std::string optional;
  for (int i = 0; i < 129; ++i) optional += "a?";
  EXPECT_NE(refusal(text_source(Kind::regex, optional)).find("allowed are at most 128"), std::string::npos);
  EXPECT_NE(refusal(text_source(Kind::regex, std::string(9000, 'a'))).find("9000 bytes"), std::string::npos);
  EXPECT_NE(
      refusal(text_source(Kind::regex, std::string(3000, '(') + std::string(3000, ')'))).find("cannot be compiled"),
      std::string::npos);
}

TEST_F(Grammars, TheSameSourceIsCompiledOnce) {
  const auto first = tiny_compiler().compile(schema_source(person_schema));
  EXPECT_EQ(tiny_compiler().compile(schema_source(person_schema)), first);
  EXPECT_NE(tiny_compiler().compile({}), first);
}

TEST_F(Grammars, ManyThreadsMayCompileAtOnce) {
  const auto compiler = make_grammar_compiler(tiny_tokenizer(), tiny_tokenizer()->size(), tiny_stops());
  std::vector<std::shared_ptr<const CompiledGrammar>> compiled(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    threads.emplace_back(
        [&, i] { compiled[i] = compiler->compile(i % 2 == 0 ? schema_source(person_schema) : GrammarSource{}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    EXPECT_EQ(compiled[i], compiler->compile(i % 2 == 0 ? schema_source(person_schema) : GrammarSource{}));
  }
}

}  // namespace
}  // namespace sluice
