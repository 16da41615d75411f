#include "text/stop_strings.h"

#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/tiny_files.h"

namespace sluice {
namespace {

/// The number of tokens after which the check stops, or -1.
int stops_after(const std::vector<TokenId>& ids, const std::vector<std::string>& strings) {
  const auto check = make_stop_strings(tiny_tokenizer(), strings);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (check->stops_at(ids[i])) return static_cast<int>(i) + 1;
  return -1;
}

TEST(StopStrings, StopAtTheTokenThatCompletesAString) {
  const auto ids = tiny_tokenizer()->encode("Once upon a time there was a frog.");
  std::string text;
  int expected = 0;
  for (TokenId id : ids) {
    ++expected;
    if ((text += tiny_tokenizer()->bytes_of(id)).find("me the") != std::string::npos) break;
  }
  EXPECT_EQ(stops_after(ids, {"me the"}), expected);
  EXPECT_EQ(stops_after(ids, {"no such text"}), -1);
}

TEST(StopStrings, StopInsideOneToken) { EXPECT_EQ(stops_after(tiny_tokenizer()->encode(" the frog"), {"h"}), 1); }

TEST(StopStrings, SeeCharactersOfSeveralTokensOnceTheyAreComplete) {
  const auto ids = tiny_tokenizer()->encode("a\u4e2db");
  ASSERT_EQ(ids.size(), 5u);
  EXPECT_EQ(stops_after(ids, {"\u4e2d"}), 4);
}

TEST(StopStrings, SeeTextBothWithAndWithoutSpecialTokens) {
  const auto ids = tiny_tokenizer()->encode("a<|im_end|>b");
  EXPECT_EQ(stops_after(ids, {"<|im_end|>"}), 2);
  EXPECT_EQ(stops_after(ids, {"ab"}), 3);
}

TEST(StopMatcher, FindsOccurrencesThatOverlap) {
  StopMatcher matcher({"aba"});
  std::vector<std::size_t> found;
  for (char byte : std::string_view("ababa")) found.push_back(matcher.add(byte));
  EXPECT_EQ(found, (std::vector<std::size_t>{0, 0, 3, 0, 3}));
}

TEST(StopStrings, RefuseAnEmptyString) {
  EXPECT_THROW(make_stop_strings(tiny_tokenizer(), {"a", ""}), RequestError);
  EXPECT_THROW(StopCutter({""}), RequestError);
}

std::string cut(const std::vector<std::string_view>& pieces, const std::vector<std::string>& strings,
                bool* stopped = nullptr) {
  StopCutter cutter(strings);
  std::string text;
  for (std::string_view piece : pieces) text += cutter.add(piece);
  text += cutter.finish();
  if (stopped) *stopped = cutter.stopped();
  return text;
}

TEST(StopCutter, ShowsTextUpToTheStringThatEndsFirst) {
  bool stopped = false;
  EXPECT_EQ(cut({"one sto", "p two"}, {"stop", "two"}, &stopped), "one ");
  EXPECT_TRUE(stopped);
  EXPECT_EQ(cut({"abc"}, {"abcd", "b"}), "a");
  EXPECT_EQ(cut({"xabc"}, {"c", "abc"}), "x");
}

TEST(StopCutter, GivesBackWhatTurnedOutToBeNoStop) {
  bool stopped = true;
  EXPECT_EQ(cut({"one st", "ep sto"}, {"stop"}, &stopped), "one step sto");
  EXPECT_FALSE(stopped);
}

TEST(StopCutter, HoldsBackOnlyWhatMayBeginAStop) {
  StopCutter cutter({"\n\nUser"});
  EXPECT_EQ(cutter.add("text\n"), "text");
  EXPECT_EQ(cutter.add("\n"), "");
  EXPECT_EQ(cutter.add("\nx"), "\n\n\nx");
}

TEST(StopCutter, ShowsNothingAfterAStop) {
  StopCutter cutter({"b"});
  EXPECT_EQ(cutter.add("ab"), "a");
  EXPECT_EQ(cutter.add("c"), "");
  EXPECT_EQ(cutter.finish(), "");
}

TEST(StopCutter, TellsWhichStringStoppedIt) {
  StopCutter cutter({"xyz", "c", "abc", "b!"});
  cutter.add("xy ab");
  EXPECT_EQ(cutter.stop(), "");
  cutter.add("c b!");
  EXPECT_EQ(cutter.stop(), "abc");
}

TEST(StopCutter, KeepsTheStopInTheTextIfItShould) {
  StopCutter cutter({"stop"}, true);
  EXPECT_EQ(cutter.add("one st"), "one ");
  EXPECT_EQ(cutter.add("op two"), "stop");
  EXPECT_EQ(cutter.stop(), "stop");
  EXPECT_EQ(cutter.add("three"), "");
  EXPECT_EQ(cutter.finish(), "");
}

/// The definition: the first end of a string, and the longest string there.
std::string cut_by_definition(const std::string& text, const std::vector<std::string>& strings) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& string : strings)
      if (std::string_view(text).substr(0, end).ends_with(string)) longest = std::max(longest, string.size());
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopCutter, AgreesWithItsDefinitionOnRandomTextHoweverCut) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    const auto random_string = [&](std::size_t length) {
      std::string text;
      while (text.size() < length) text += static_cast<char>('a' + random() % 2);
      return text;
    };
    std::vector<std::string> strings;
    for (auto i = random() % 3; i < 3; ++i) strings.push_back(random_string(1 + random() % 6));
    const std::string text = random_string(random() % 20);
    std::vector<std::string_view> pieces;
    for (std::size_t at = 0; at < text.size(); at += pieces.back().size())
      pieces.push_back(std::string_view(text).substr(at, 1 + random() % 4));
    ASSERT_EQ(cut(pieces, strings), cut_by_definition(text, strings)) << text;
  }
}

}  // namespace
}  // namespace sluice
