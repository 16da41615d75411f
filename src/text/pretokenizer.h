#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace sluice {

/// The two regular expressions of the family, by how they treat combining marks.
enum class WordPattern {
  marks_in_words,    // this family: a word is a run of [\p{L}\p{M}]
  marks_as_symbols,  // its predecessors: a word is a run of \p{L}
};

/// The pattern that a Split pre-tokenizer's regular expression stands for; none if it is not one of the
/// family's.
std::optional<WordPattern> word_pattern_of(std::string_view regex);
/// The regular expression that stands for the pattern in tokenizer.json.
std::string_view regex_of(WordPattern pattern);

/// Cuts text into the pieces inside which byte pairs are merged, as the pattern's regular expression matches.
class PieceScanner {
 public:
  /// text: valid UTF-8, must outlive the scanner.
  PieceScanner(std::string_view text, WordPattern pattern);
  /// The next piece, never empty but at the end. The pieces joined are the text.
  std::string_view next();

 private:
  enum class Kind : unsigned char;
  struct Character {
    Kind kind;
    std::size_t end;  // offset of the character after it
  };
  Character character_at(std::size_t offset) const;
  bool is_word(Kind kind) const;
  bool is_symbol(Kind kind) const;
  std::size_t contraction_end(std::size_t begin) const;
  std::size_t word_end(std::size_t begin) const;
  std::size_t symbols_end(std::size_t begin) const;
  std::size_t space_end(std::size_t begin) const;
  std::size_t piece_end(std::size_t begin) const;

  std::string_view text_;
  WordPattern pattern_;
  std::size_t at_ = 0;
};

}  // namespace sluice
