#include "text/pretokenizer.h"

#include "text/unicode.h"

namespace sluice {

namespace {

constexpr std::string_view regex_with_marks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view regex_without_marks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

char lower_ascii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

}  // namespace

enum class PieceScanner::Kind : unsigned char { end, letter, mark, number, line_break, space, symbol };

std::optional<WordPattern> word_pattern_of(std::string_view regex) {
  if (regex == regex_with_marks) return WordPattern::marks_in_words;
  if (regex == regex_without_marks) return WordPattern::marks_as_symbols;
  return std::nullopt;
}

std::string_view regex_of(WordPattern pattern) {
  return pattern == WordPattern::marks_in_words ? regex_with_marks : regex_without_marks;
}

PieceScanner::PieceScanner(std::string_view text, WordPattern pattern) : text_(text), pattern_(pattern) {}

std::string_view PieceScanner::next() {
  if (at_ == text_.size()) return {};
  const std::size_t begin = at_;
  at_ = piece_end(begin);
  return text_.substr(begin, at_ - begin);
}

PieceScanner::Character PieceScanner::character_at(std::size_t offset) const {
  if (offset >= text_.size()) return {Kind::end, offset};
  const DecodedCharacter character = decode_character(text_.substr(offset));
  const std::size_t end = offset + character.length;
  if (character.code_point == '\r' || character.code_point == '\n') return {Kind::line_break, end};
  const std::uint8_t classes = classes_of(character.code_point);
  if (classes & letter_class) return {Kind::letter, end};
  if (classes & mark_class) return {Kind::mark, end};
  if (classes & number_class) return {Kind::number, end};
  if (classes & space_class) return {Kind::space, end};
  return {Kind::symbol, end};
}

bool PieceScanner::is_word(Kind kind) const {
  return kind == Kind::letter || (kind == Kind::mark && pattern_ == WordPattern::marks_in_words);
}

bool PieceScanner::is_symbol(Kind kind) const {
  return kind == Kind::symbol || (kind == Kind::mark && pattern_ == WordPattern::marks_as_symbols);
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d); begin itself where there is none. Case folding makes U+017F (long s) an s.
std::size_t PieceScanner::contraction_end(std::size_t begin) const {
  const std::string_view rest = text_.substr(begin, 3);
  if (rest.size() < 2 || rest[0] != '\'') return begin;
  const char first = lower_ascii(rest[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return begin + 2;
  if (rest.size() < 3) return begin;
  const char second = lower_ascii(rest[2]);
  const bool two = (second == 'e' && (first == 'r' || first == 'v')) || (second == 'l' && first == 'l');
  return two || rest.substr(1) == "\u017F" ? begin + 3 : begin;
}

/// The rest of a word whose characters begin here.
std::size_t PieceScanner::word_end(std::size_t begin) const {
  for (Character character = character_at(begin); is_word(character.kind); character = character_at(begin))
    begin = character.end;
  return begin;
}

/// [^\s\p{L}\p{N}...]+[\r\n]*
std::size_t PieceScanner::symbols_end(std::size_t begin) const {
  for (Character character = character_at(begin); is_symbol(character.kind); character = character_at(begin))
    begin = character.end;
  while (begin < text_.size() && (text_[begin] == '\r' || text_[begin] == '\n')) ++begin;
  return begin;
}

/// \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last line break; else without the last space before something else.
std::size_t PieceScanner::space_end(std::size_t begin) const {
  std::size_t end = begin, last_begin = begin, after_line_break = begin;
  Character character = character_at(begin);
  while (character.kind == Kind::space || character.kind == Kind::line_break) {
    last_begin = end;
    end = character.end;
    if (character.kind == Kind::line_break) after_line_break = end;
    character = character_at(end);
  }
  if (after_line_break > begin) return after_line_break;
  return character.kind == Kind::end || last_begin == begin ? end : last_begin;
}

std::size_t PieceScanner::piece_end(std::size_t begin) const {
  if (const std::size_t end = contraction_end(begin); end > begin) return end;
  const Character first = character_at(begin);
  if (is_word(first.kind)) return word_end(first.end);
  if (first.kind == Kind::number) return first.end;
  if (first.kind == Kind::line_break) return space_end(begin);
  const Kind second = character_at(first.end).kind;
  if (is_word(second)) return word_end(first.end);
  if (is_symbol(first.kind)) return symbols_end(first.end);
  return text_[begin] == ' ' && is_symbol(second) ? symbols_end(first.end) : space_end(begin);
}

}  // namespace sluice
