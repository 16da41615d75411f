#include "base/json.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "test.json");
  } catch (const LoadError& error) {
    return error.what();
  }
  return "(no error)";
}

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(ParseJson, KeepsTheOrderOfKeysAndEveryKindOfValue) {
  const std::string text =
      R"({"b":1,"a":[true,false,null,-2,1.5,"é\n"],"c":{"z":{},"y":[]},"big":18446744073709551615})";
  EXPECT_EQ(parse_json(text, "test").dump(), text);
  EXPECT_EQ(parse_json(" 5 ", "test"), 5);
}

TEST(ParseJson, GivesARepeatedKeyItsFirstPlaceAndItsLastValue) {
  EXPECT_EQ(parse_json(R"({"a":1,"b":2,"a":{"x":3}})", "test").dump(), R"({"a":{"x":3},"b":2})");
  std::string large = R"({"k0":0)";
  for (int i = 1; i < 40; ++i) large += ",\"k" + std::to_string(i) + "\":" + std::to_string(i);
  const Json parsed = parse_json(large + R"(,"k30":"last","k2":"two"})", "test");
  EXPECT_EQ(parsed.size(), 40u);
  EXPECT_EQ(parsed["k30"], "last");
  EXPECT_EQ(parsed["k2"], "two");
  EXPECT_EQ(std::next(parsed.begin(), 39).key(), "k39");
}

TEST(ParseJson, ReadsAnObjectOfManyKeysInLinearTime) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 300'000; ++i) text += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(parse_json(text + "}", "test").size(), 300'001u);  // quadratic: minutes, and the test's time is limited
}

TEST(ParseJson, RefusesNestingDeeperThan128Levels) {
  EXPECT_EQ(error_of(nested(128)), "(no error)");
  EXPECT_EQ(error_of(nested(129)), "test.json: JSON nested deeper than 128 levels");
  EXPECT_EQ(error_of(std::string(1'000'000, '[')), "test.json: JSON nested deeper than 128 levels");
}

TEST(ParseJson, RefusesANulByte) {
  EXPECT_THROW(parse_json(std::string_view("[1]\0", 4), "x"), LoadError);
  EXPECT_THROW(parse_json(std::string_view("[1,\0 2]", 7), "x"), LoadError);
}

TEST(ParseJson, NamesLineAndColumnOfBadSyntax) {
  for (const std::string text :
       {"{\n \"a\": }", "{\n \"a\" }", "[1,\n2", "", "[1] 2", "{\"a\":1,}", "nul", "[\"\xff\"]", "'a'"}) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find("test.json: not valid JSON"), std::string::npos) << text << ": " << error;
    EXPECT_NE(error.find("at line "), std::string::npos) << text << ": " << error;
  }
}

}  // namespace
}  // namespace sluice
