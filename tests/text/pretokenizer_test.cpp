#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <pcre2.h>

#include "text/unicode.h"

namespace sluice {
namespace {

constexpr const char* regexes[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

std::vector<std::string> scanned(std::string_view text, WordPattern pattern) {
  std::vector<std::string> pieces;
  PieceScanner scanner(text, pattern);
  for (std::string_view piece = scanner.next(); !piece.empty(); piece = scanner.next()) pieces.emplace_back(piece);
  return pieces;
}

/// What PCRE2 matches, one match after the other.
class Oracle {
 public:
  explicit Oracle(std::string_view regex) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(), PCRE2_UTF | PCRE2_UCP, &error,
                          &offset, nullptr);
    match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }
  ~Oracle() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }

  std::vector<std::string> pieces(std::string_view text) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const int groups = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, PCRE2_ANCHORED,
                                     match_, nullptr);
      if (groups < 0) return {"no match"};
      const PCRE2_SIZE end = pcre2_get_ovector_pointer(match_)[1];
      pieces.emplace_back(text.substr(at, end - at));
      at = end;
    }
    return pieces;
  }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* match_ = nullptr;
};

/// Code points that PCRE2's version of Unicode assigns; the scanner's may assign more. U+180E is left out: PCRE2 counts
/// it as a space, which it is not.
const std::vector<char32_t>& assigned() {
  static const std::vector<char32_t> found = [] {
    Oracle unassigned(R"([\p{Cn}\p{Co}])");
    std::vector<char32_t> code_points;
    for (char32_t code_point = 0; code_point < 0x110000; ++code_point) {
      if (code_point == 0xD800) code_point = 0xE000;
      std::string text;
      append_utf8(text, code_point);
      if (code_point != 0x180E && unassigned.pieces(text).front() != text) code_points.push_back(code_point);
    }
    return code_points;
  }();
  return found;
}

char32_t random_code_point(std::mt19937& random) {
  constexpr char32_t likely[] = {' ',  ' ',   '\n', '\r',  '\t',   '\'', 's',    'S',     't',    'r',  'e',    'v',
                                 'l',  'L',   'd',  'M',   'a',    '1',  '!',    '.',     0x17F,  0xA0, 0x2003, 0x3000,
                                 0x85, 0x301, 0xE9, 0x94D, 0x4E2D, 0xBD, 0x2167, 0x1F469, 0x200D, 0};
  if (random() % 3 != 0) return likely[random() % std::size(likely)];
  const std::size_t limits[] = {0x250, 0x3000, 0x10000, assigned().size()};
  return assigned()[random() % limits[random() % std::size(limits)]];
}

TEST(PieceScanner, CutsRandomTextAsTheRegularExpressionDoes) {
  for (const char* regex : regexes) {
    Oracle oracle(regex);
    const auto pattern = word_pattern_of(regex);
    ASSERT_TRUE(pattern);
    std::mt19937 random(1);
    for (int round = 0; round < 10000; ++round) {
      std::string text;
      for (auto i = random() % 30; i > 0; --i) append_utf8(text, random_code_point(random));
      ASSERT_EQ(scanned(text, *pattern), oracle.pieces(text)) << text;
    }
  }
}

TEST(PieceScanner, CutsEveryAssignedCharacterAsTheRegularExpressionDoes) {
  for (const char* regex : regexes) {
    Oracle oracle(regex);
    const WordPattern pattern = *word_pattern_of(regex);
    for (char32_t code_point : assigned()) {
      std::string text = "a";
      append_utf8(text, code_point);
      text += "a";
      ASSERT_EQ(scanned(text, pattern), oracle.pieces(text)) << static_cast<std::uint32_t>(code_point);
    }
  }
}

TEST(PieceScanner, KeepsMarksInWordsOnlyWhereThePatternSaysSo) {
  const std::string decomposed = "e\u0301e";
  EXPECT_EQ(scanned(decomposed, WordPattern::marks_in_words), (std::vector<std::string>{decomposed}));
  EXPECT_EQ(scanned(decomposed, WordPattern::marks_as_symbols), (std::vector<std::string>{"e", "\u0301e"}));
}

TEST(PieceScanner, TakesTheLongSForAnS) {
  EXPECT_EQ(scanned("it'\u017Fa", WordPattern::marks_in_words), (std::vector<std::string>{"it", "'\u017F", "a"}));
}

TEST(PieceScanner, KnowsOnlyTheFamilysPatterns) {
  EXPECT_EQ(word_pattern_of(regexes[0]), WordPattern::marks_in_words);
  EXPECT_EQ(word_pattern_of(regexes[1]), WordPattern::marks_as_symbols);
  EXPECT_FALSE(word_pattern_of(R"(\p{N}{1,3}|\s+)"));
}

}  // namespace
}  // namespace sluice
