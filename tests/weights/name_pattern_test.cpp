#include "weights/name_pattern.h"

#include <chrono>
#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace sluice {
namespace {

const std::vector<std::string> names{"",
                                     "lm_head",
                                     "mtp.fc",
                                     "model.layers.0.mlp.gate",
                                     "model.layers.10.mlp.gate_proj",
                                     "model.language_model.layers.3.self_attn.q_proj",
                                     "model.visual.blocks.1.attn.qkv",
                                     "aaaaab",
                                     "ab",
                                     "abab",
                                     "a.b",
                                     "axb"};

/// On short names the standard library's own matcher is the reference.
TEST(NamePattern, MatchesWhatTheStandardMatcherDoes) {
  for (const char* text : {"lm_head",
                           ".*lm_head",
                           "mtp.*",
                           "re",
                           "",
                           "a*b",
                           "a+b",
                           "a?b",
                           "(ab)+$",
                           "(?:a|b)*$",
                           "^ab",
                           "a\\.b$",
                           "a.b$",
                           ".*layers\\.(0|10)\\.mlp\\..*",
                           ".*mlp.gate$",
                           ".*\\.(q|k)_proj",
                           "[a-c]+$",
                           "[^m].*",
                           "model\\.layers\\.\\d+\\.",
                           "\\w+$",
                           "(a|ab)(c|b)?$",
                           "((a*)*)*b",
                           "a*?b",
                           "(|x)ab",
                           "[ab.]*$",
                           "^$",
                           "$"}) {
    const auto pattern = NamePattern::regex(text);
    ASSERT_TRUE(pattern.has_value()) << text;
    const std::regex reference(text);
    for (const std::string& name : names) {
      const bool expected = std::regex_search(name, reference, std::regex_constants::match_continuous);
      EXPECT_EQ(pattern->matches(name), expected) << text << " " << name;
    }
  }
}

TEST(NamePattern, DoesNotGuessAtWhatItDoesNotKnow) {
  for (const std::string& text :
       {std::string("(?!mtp).*"), std::string("a{2}"), std::string("\\bfoo"), std::string("(a)\\1"), std::string("*a"),
        std::string("(a"), std::string("a)"), std::string("[a"), std::string("[]"), std::string("[b-a]"),
        std::string("a**"), std::string("a\\"), std::string("(?P<n>a)"), std::string(257, 'a'),
        std::string(40, '(') + std::string(40, ')')}) {
    EXPECT_FALSE(NamePattern::regex(text).has_value()) << text;
  }
}

TEST(NamePattern, WildcardsStandForTheWholeName) {
  EXPECT_TRUE(NamePattern::wildcard("*lm_head*")->matches("model.lm_head"));
  EXPECT_TRUE(NamePattern::wildcard("mtp*")->matches("mtp.fc"));
  EXPECT_FALSE(NamePattern::wildcard("mtp")->matches("mtp.fc"));
  EXPECT_FALSE(NamePattern::wildcard("a.b")->matches("axb"));
  EXPECT_TRUE(NamePattern::wildcard("a?b")->matches("axb"));
  EXPECT_TRUE(NamePattern::wildcard("*(x)[y]*")->matches("a(x)[y]b"));
}

TEST(NamePattern, TakesLittleTimeForTheWorstOfPatterns) {
  std::string text;
  for (int i = 0; i < 14; ++i) text += "(a*)*(a|aa)+";
  const auto pattern = NamePattern::regex(text + "b$");
  ASSERT_TRUE(pattern.has_value());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(pattern->matches(std::string(2000, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace sluice
