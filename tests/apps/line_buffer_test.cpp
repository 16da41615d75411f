#include "apps/line_buffer.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(LineBuffer, InsertsAtTheCursor) {
  LineBuffer buffer;
  buffer.insert("ac");
  buffer.left();
  buffer.insert("b");
  EXPECT_EQ(buffer.text(), "abc");
  EXPECT_EQ(buffer.cursor(), 2u);
}

TEST(LineBuffer, MovesAndErasesWholeCharacters) {
  LineBuffer buffer;
  buffer.insert("a\u00e9\u4e2d");
  buffer.left();
  EXPECT_EQ(buffer.cursor(), 3u);
  buffer.erase_before();
  EXPECT_EQ(buffer.text(), "a\u4e2d");
  buffer.erase_after();
  EXPECT_EQ(buffer.text(), "a");
}

TEST(LineBuffer, ACombiningMarkGoesWithItsLetter) {
  LineBuffer buffer;
  buffer.insert("xe\u0301");
  buffer.left();
  EXPECT_EQ(buffer.cursor(), 1u);
  buffer.right();
  EXPECT_EQ(buffer.cursor(), 4u);
  buffer.erase_before();
  EXPECT_EQ(buffer.text(), "x");
}

TEST(LineBuffer, KillsWordsAndLines) {
  LineBuffer buffer;
  buffer.insert("one two  three");
  buffer.kill_word_before();
  EXPECT_EQ(buffer.text(), "one two  ");
  buffer.kill_word_before();
  EXPECT_EQ(buffer.text(), "one ");
  buffer.set("first\nsecond line");
  buffer.word_left();
  buffer.kill_to_line_start();
  EXPECT_EQ(buffer.text(), "first\nline");
  buffer.kill_to_line_end();
  EXPECT_EQ(buffer.text(), "first\n");
}

TEST(LineBuffer, LineStartAndEndStayInTheLine) {
  LineBuffer buffer;
  buffer.insert("ab\ncd");
  buffer.line_start();
  EXPECT_EQ(buffer.cursor(), 3u);
  buffer.line_end();
  EXPECT_EQ(buffer.cursor(), 5u);
  buffer.line_start();
  buffer.left();
  EXPECT_EQ(buffer.cursor(), 2u);
  buffer.line_start();
  EXPECT_EQ(buffer.cursor(), 0u);
}

TEST(LineBuffer, BrokenBytesBecomeReplacementCharacters) {
  LineBuffer buffer;
  buffer.insert("a\xff");
  EXPECT_EQ(buffer.text(), "a\ufffd");
}

TEST(LineBuffer, TheEndsHoldTheCursor) {
  LineBuffer buffer;
  buffer.left();
  buffer.erase_before();
  buffer.right();
  buffer.erase_after();
  buffer.word_left();
  buffer.word_right();
  buffer.line_start();
  EXPECT_EQ(buffer.text(), "");
  EXPECT_EQ(buffer.cursor(), 0u);
}

TEST(DisplayWidth, WideCharactersTakeTwoColumnsAndMarksNone) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("\u4e2d\u6587"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);
}

TEST(InputHistory, GoesBackForthAndKeepsTheUnfinishedInput) {
  InputHistory history;
  history.add("one");
  history.add("two");
  history.add("two");
  EXPECT_EQ(history.older("draft"), "two");
  EXPECT_EQ(history.older("two"), "one");
  EXPECT_EQ(history.older("one"), "one");
  EXPECT_EQ(history.newer("one"), "two");
  EXPECT_EQ(history.newer("two"), "draft");
  EXPECT_EQ(history.newer("draft"), "draft");
}

TEST(Input, ABackslashAtTheEndAsksForMoreAndJoinsLines) {
  EXPECT_TRUE(is_complete_input("hello"));
  EXPECT_FALSE(is_complete_input("hello\\"));
  EXPECT_TRUE(is_complete_input("hello\\\nworld"));
  EXPECT_EQ(message_of_input("hello\\\nworld"), "hello\nworld");
}

TEST(Input, TripleQuotesHoldATextOfSeveralLines) {
  EXPECT_FALSE(is_complete_input("\"\"\"one"));
  EXPECT_FALSE(is_complete_input("\"\"\"one\ntwo"));
  EXPECT_TRUE(is_complete_input("\"\"\"one\ntwo\"\"\""));
  EXPECT_EQ(message_of_input("\"\"\"\none\ntwo\n\"\"\""), "one\ntwo");
  EXPECT_EQ(message_of_input("\"\"\"\"\"\""), "");
}

}  // namespace
}  // namespace sluice
