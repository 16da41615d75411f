#include "text/unicode.h"

#include <random>
#include <string>

#include <gtest/gtest.h>
#include <utf8proc.h>

namespace sluice {
namespace {

std::string repaired(std::string_view bytes) {
  std::string text;
  append_valid_utf8(text, bytes);
  return text;
}

TEST(Utf8, ReplacesEachBrokenPartByOneReplacementCharacter) {
  EXPECT_EQ(repaired("a\xFF\xFE"), "a\uFFFD\uFFFD");
  EXPECT_EQ(repaired("\xE2\x82x"), "\uFFFDx");                          // a beginning of three bytes
  EXPECT_EQ(repaired("\xF0\x9F\x98"), "\uFFFD");                        // a beginning of four
  EXPECT_EQ(repaired("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(repaired("\xC0\x80"), "\uFFFD\uFFFD");                      // too long a form
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // above U+10FFFF
  EXPECT_EQ(repaired("\xE0\x80\xC3\xA9"), "\uFFFD\uFFFD\u00e9");
}

TEST(Utf8, EncodesAndDecodesEveryCodePoint) {
  for (char32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (code_point == 0xD800) code_point = 0xE000;
    std::string text;
    append_utf8(text, code_point);
    ASSERT_TRUE(is_valid_utf8(text));
    const DecodedCharacter character = decode_character(text);
    ASSERT_TRUE(character.valid);
    ASSERT_EQ(character.code_point, code_point);
    ASSERT_EQ(character.length, text.size());
  }
}

TEST(Utf8, StopsBeforeAnUnfinishedCharacterWhenAskedTo) {
  std::string text;
  EXPECT_EQ(append_valid_utf8(text, "a\xE2\x82", true), 1u);
  EXPECT_EQ(text, "a");
  EXPECT_EQ(append_valid_utf8(text, "\xE2\x28\xF0\x9F", true), 2u);
  EXPECT_EQ(text, "a\uFFFD(");
}

TEST(CodePointClasses, AgreeWithTheGeneralCategoryOfEveryAssignedCodePoint) {
  for (utf8proc_int32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;
    const auto category = utf8proc_category(code_point);
    if (category == UTF8PROC_CATEGORY_CN) continue;  // a later Unicode may assign it
    const std::uint8_t expected = category <= UTF8PROC_CATEGORY_LO   ? letter_class
                                  : category <= UTF8PROC_CATEGORY_ME ? mark_class
                                  : category <= UTF8PROC_CATEGORY_NO ? number_class
                                                                     : 0;
    ASSERT_EQ(classes_of(static_cast<char32_t>(code_point)) & (letter_class | mark_class | number_class), expected)
        << code_point;
  }
}

TEST(Nfc, ComposesOrdersAndReplaces) {
  EXPECT_EQ(to_nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(to_nfc("\u212B \u2126"), "\u00C5 \u03A9");          // singletons
  EXPECT_EQ(to_nfc("a\u0308\u0323"), to_nfc("a\u0323\u0308"));  // order of classes
  EXPECT_EQ(to_nfc("\u1112\u1161\u11AB"), "\uD55C");            // Hangul
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093C");                  // excluded from composition
  EXPECT_EQ(to_nfc("\u0344"), "\u0308\u0301");
  EXPECT_EQ(to_nfc(std::string_view("\0e\u0301\0", 5)), std::string("\0\u00e9\0", 4));
}

std::string random_text(std::mt19937& random) {
  constexpr char32_t marks[] = {0x300, 0x301, 0x308,  0x323,  0x327,  0x345,
                                0x93C, 0x9BE, 0x1161, 0x11A8, 0x3099, 0x1D165};
  constexpr char32_t limits[] = {0x80, 0x250, 0x3100, 0x11300, 0x20000, 0x30000};
  std::string text;
  for (auto i = random() % 12; i > 0; --i) {
    auto code_point = static_cast<char32_t>(random() % limits[random() % std::size(limits)]);
    if (random() % 2 == 0) code_point = marks[random() % std::size(marks)];
    if (code_point < 0xD800 || code_point >= 0xE000) append_utf8(text, code_point);
  }
  return text;
}

TEST(Nfc, EqualsTheLibrarysOwnFormOnRandomText) {
  std::mt19937 random(3);
  for (int round = 0; round < 50000; ++round) {
    const std::string text = random_text(random);
    utf8proc_uint8_t* expected = nullptr;
    const auto length =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &expected, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    ASSERT_GE(length, 0);
    const std::string composed(reinterpret_cast<const char*>(expected), static_cast<std::size_t>(length));
    free(expected);
    ASSERT_EQ(to_nfc(text), composed) << text;
  }
}

TEST(Nfc, QuickCheckNeverPassesTextThatWouldChange) {
  std::mt19937 random(4);
  int passed = 0;
  for (int round = 0; round < 50000; ++round) {
    const std::string text = random_text(random);
    if (!is_surely_nfc(text)) continue;
    ++passed;
    ASSERT_EQ(to_nfc(text), text);
  }
  EXPECT_GT(passed, 1000);
}

TEST(Nfc, QuickCheckPassesOrdinaryTextOfManyScripts) {
  for (const char* text : {"plain", "caf\u00e9 \u00fcber", "\u041f\u0440\u0438\u0432\u0435\u0442", "\u4f60\u597d",
                           "\ud55c\uad6d\uc5b4", "\u1EA5", "\u3042\u304C", "\U0001F469"})
    EXPECT_TRUE(is_surely_nfc(text)) << text;
  EXPECT_FALSE(is_surely_nfc("e\u0301"));
}

TEST(Nfc, OrdersARunOfHalfAMillionMarksInNoTime) {
  std::string text = "a", below, above;
  for (int i = 0; i < 250000; ++i) {
    text += "\u0301\u0323";
    above += "\u0301";
    if (i > 0) below += "\u0323";
  }
  EXPECT_TRUE(to_nfc(text) == "\u1EA1" + below + above);
}

}  // namespace
}  // namespace sluice
