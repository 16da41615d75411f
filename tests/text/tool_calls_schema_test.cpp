#include "text/tool_calls_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

/// The JSON that a value becomes under a schema; definitions are what "#/$defs" holds.
std::string typed_by_schema(const char* schema, std::string_view value, const char* definitions = "{}") {
  const Json tools = Json::parse(fmt::format(
      R"([{{"type": "function", "function": {{"name": "f", "parameters": {{"$defs": {}, "properties": {{"p": {}}}}}}}}}])",
      definitions, schema));
  return typed_value(value, ToolSchemas(tools).type_of("f", "p"));
}

TEST(ToolSchemas, ReadScalarTypes) {
  EXPECT_EQ(typed_by_schema(R"({"type": "string"})", "1"), R"("1")");
  EXPECT_EQ(typed_by_schema(R"({"type": "integer"})", "1"), "1");
  EXPECT_EQ(typed_by_schema(R"({"type": "number"})", "1.50"), "1.50");
  EXPECT_EQ(typed_by_schema(R"({"type": "boolean"})", "FALSE"), "false");
  EXPECT_EQ(typed_by_schema(R"({"type": "null"})", "None"), "null");
}

TEST(ToolSchemas, ReadNumbersHoweverTheyAreWritten) {
  EXPECT_EQ(typed_by_schema(R"({"type": "integer"})", " +007 "), "7");
  EXPECT_EQ(typed_by_schema(R"({"type": "integer"})", "-0012"), "-12");
  EXPECT_EQ(typed_by_schema(R"({"type": "integer"})", "5.0"), "5");
  EXPECT_EQ(typed_by_schema(R"({"type": "integer"})", "5.5"), "5.5");
  EXPECT_EQ(typed_by_schema(R"({"type": "integer"})", "123456789012345678901234567890"),
            "123456789012345678901234567890");
  EXPECT_EQ(typed_by_schema(R"({"type": "number"})", ".5"), "0.5");
  EXPECT_EQ(typed_by_schema(R"({"type": "number"})", "5."), "5.0");
  EXPECT_EQ(typed_by_schema(R"({"type": "number"})", "-1.5e-3"), "-1.5e-3");
  for (const char* none : {"", "-", ".", "1.2.3", "0x10", "1e", "--1", "1 2", "NaN", "Infinity", "1-2"})
    EXPECT_EQ(typed_by_schema(R"({"type": "number"})", none), Json(none).dump()) << none;
}

TEST(ToolSchemas, ReadContainersAsTheyAre) {
  EXPECT_EQ(typed_by_schema(R"({"type": "array"})", " [1, {\"a\": 2}]\n"), R"([1, {"a": 2}])");
  EXPECT_EQ(typed_by_schema(R"({"type": "object"})", R"({"b": 1, "a": 12345678901234567890123})"),
            R"({"b": 1, "a": 12345678901234567890123})");
  EXPECT_EQ(typed_by_schema(R"({"type": "object"})", "{'a': 1}"), R"("{'a': 1}")");
}

TEST(ToolSchemas, PassContainersWithANulByteOnAsStrings) {
  EXPECT_EQ(typed_by_schema(R"({"type": ["array", "string"]})", std::string_view("[1, 2]\0", 7)), R"("[1, 2]\u0000")");
}

TEST(ToolSchemas, PassDeepContainersOnAsStrings) {
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_EQ(typed_by_schema(R"({"type": "array"})", deep), Json(deep).dump());
}

TEST(ToolSchemas, ReadUnions) {
  for (const char* schema :
       {R"({"type": ["integer", "null"]})", R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})",
        R"({"oneOf": [{"type": "null"}, {"type": "integer"}]})", R"({"type": "integer", "nullable": true})",
        R"({"allOf": [{"type": ["integer", "string", "null"]}, {"type": ["null", "integer"]}]})"}) {
    EXPECT_EQ(typed_by_schema(schema, "null"), "null") << schema;
    EXPECT_EQ(typed_by_schema(schema, "012"), "12") << schema;
  }
  EXPECT_EQ(typed_by_schema(R"({"type": ["string", "integer"]})", "12"), "12");
  EXPECT_EQ(typed_by_schema(R"({"type": ["string", "integer"]})", "012"), R"("012")");
  EXPECT_EQ(typed_by_schema(R"({"anyOf": [{"type": "string"}, {"type": "array"}]})", "[1]"), "[1]");
  EXPECT_EQ(typed_by_schema(R"({"anyOf": [{"type": "string"}, {"type": "array"}]})", "7"), R"("7")");
}

TEST(ToolSchemas, PreferListedValues) {
  EXPECT_EQ(typed_by_schema(R"({"enum": ["1", 2, null, true]})", "1"), R"("1")");
  EXPECT_EQ(typed_by_schema(R"({"enum": ["1", 2, null, true]})", "2"), "2");
  EXPECT_EQ(typed_by_schema(R"({"enum": ["1", 2, null, true]})", "None"), "null");
  EXPECT_EQ(typed_by_schema(R"({"enum": ["1", 2, null, true]})", "True"), "true");
  EXPECT_EQ(typed_by_schema(R"({"const": 5})", "5"), "5");
  EXPECT_EQ(typed_by_schema(R"({"enum": ["true", "false"]})", "true"), R"("true")");
  EXPECT_EQ(typed_by_schema(R"({"anyOf": [{"const": "7"}, {"const": 8}]})", "7"), R"("7")");
}

TEST(ToolSchemas, FollowLocalReferences) {
  const char* definitions =
      R"({"Count": {"type": "integer"}, "Alias": {"$ref": "#/$defs/Count"}, "Loop": {"$ref": "#/$defs/Loop"},
      "Both": {"anyOf": [{"$ref": "#/$defs/Both"}, {"$ref": "#/$defs/Both"}, 
      {"$ref": "#/$defs/Both"}, {"$ref": "#/$defs/Both"}, {"$ref": "#/$defs/Both"}, {"type": "integer"}]}})";
  EXPECT_EQ(typed_by_schema(R"({"$ref": "#/$defs/Alias"})", "012", definitions), "12");
  EXPECT_EQ(typed_by_schema(R"({"$ref": "#/$defs/Loop"})", "x", definitions), R"("x")");
  EXPECT_EQ(typed_by_schema(R"({"$ref": "#/$defs/Both"})", "12", definitions), "12");
  EXPECT_EQ(typed_by_schema(R"({"$ref": "#/$defs/Missing"})", "12", definitions), "12");
  EXPECT_EQ(typed_by_schema(R"({"$ref": "http://example.org/x"})", "x", definitions), R"("x")");
  EXPECT_EQ(typed_by_schema(R"({"$ref": "#bad~pointer"})", "x", definitions), R"("x")");
}

TEST(ToolSchemas, ReadToolsOfEveryApi) {
  const Json tools = Json::parse(R"([
    {"type": "function", "function": {"name": "chat", "parameters": {"properties": {"p": {"type": "string"}}}}},
    {"type": "function", "name": "responses", "parameters": {"properties": {"p": {"type": "string"}}}},
    {"name": "messages", "input_schema": {"properties": {"p": {"type": "string"}}}},
    {"name": 5}, "text", null, {"function": "x"}, {"name": "bare"}, {"name": "odd", "parameters": [1]}])");
  const ToolSchemas schemas(tools);
  for (const char* name : {"chat", "responses", "messages"}) {
    EXPECT_TRUE(schemas.declares(name, "p")) << name;
    EXPECT_TRUE(schemas.type_of(name, "p").is_only_string()) << name;
    EXPECT_FALSE(schemas.declares(name, "q")) << name;
  }
  for (const char* name : {"bare", "odd"}) {
    EXPECT_TRUE(schemas.declares(name)) << name;
    EXPECT_FALSE(schemas.lists_parameters(name)) << name;
  }
  EXPECT_FALSE(schemas.declares("text"));
}

TEST(ToolSchemas, KeepOfAnUnfinishedValueOnlyWhatFits) {
  ParameterType number;
  number.types = ParameterType::integer;
  EXPECT_EQ(typed_unfinished_value("12", number), "12");
  EXPECT_EQ(typed_unfinished_value("abc", number), std::nullopt);
  EXPECT_EQ(typed_unfinished_value("[1, ", ParameterType{}), R"("[1, ")");
}

TEST(JsonEscapes, MakeAnyTextTheInsideOfAString) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  std::string quoted = "\"";
  append_json_escaped(quoted, all + "\u00e9");
  EXPECT_EQ(Json::parse(quoted + "\"").get<std::string>(), all + "\u00e9");
}

}  // namespace
}  // namespace sluice
