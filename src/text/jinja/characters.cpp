#include "text/jinja/characters.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <utf8proc.h>

#include "text/jinja/case_table.h"

namespace sluice::jinja {

namespace {

constexpr char32_t replacement = 0xFFFD;
constexpr char32_t capital_sigma = 0x3A3, final_sigma = 0x3C2, capital_i_with_dot = 0x130;
constexpr size_t max_sigma_context = 256;  // keeps lower() linear

struct Decoded {
  char32_t character;
  size_t size;
  bool valid;
};

Decoded decode(std::string_view text, size_t position) {
  const auto first = static_cast<unsigned char>(text[position]);
  if (first < 0x80) return {first, 1, true};
  utf8proc_int32_t character = 0;
  const size_t rest = std::min<size_t>(4, text.size() - position);
  const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position,
                                     static_cast<utf8proc_ssize_t>(rest), &character);
  if (size <= 0) return {replacement, 1, false};
  return {static_cast<char32_t>(character), static_cast<size_t>(size), true};
}

/// Length of the ASCII at the beginning, most of it eight bytes at a time.
size_t ascii_prefix(std::string_view text) {
  size_t length = 0;
  for (; length + 8 <= text.size(); length += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + length, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (length < text.size() && static_cast<unsigned char>(text[length]) < 0x80) ++length;
  return length;
}

utf8proc_category_t category(char32_t character) { return utf8proc_category(static_cast<utf8proc_int32_t>(character)); }

const SpecialCase* special_case(char32_t character) {
  const auto* found = std::lower_bound(std::begin(special_cases), std::end(special_cases), character,
                                       [](const SpecialCase& row, char32_t wanted) { return row.character < wanted; });
  return found != std::end(special_cases) && found->character == character ? found : nullptr;
}

bool is_cased(char32_t character) { return is_upper(character) || is_lower(character) || is_title(character); }

void append_upper(std::string& text, char32_t character) {
  if (const SpecialCase* row = special_case(character)) {
    for (const char32_t part : row->upper) append_character(text, part);
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(character))));
  }
}

void append_title(std::string& text, char32_t character) {
  if (const SpecialCase* row = special_case(character)) {
    for (const char32_t part : row->title) append_character(text, part);
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(character))));
  }
}

bool is_skipped_around_sigma(char32_t character) {
  const auto kind = category(character);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK || character == '\'' || character == '.' ||
         character == ':' || character == 0xB7 || character == 0x2019;
}

/// Unicode's Final_Sigma: a letter before it, none behind it.
bool ends_word(const std::vector<char32_t>& text, size_t index) {
  size_t before = index;
  const size_t first = index > max_sigma_context ? index - max_sigma_context : 0;
  const size_t last = std::min(text.size(), index + max_sigma_context);
  while (before > first && is_skipped_around_sigma(text[before - 1])) --before;
  if (before == first || !is_cased(text[before - 1])) return false;
  size_t behind = index + 1;
  while (behind < last && is_skipped_around_sigma(text[behind])) ++behind;
  return behind == last || !is_cased(text[behind]);
}

std::vector<char32_t> decode_all(std::string_view text) {
  std::vector<char32_t> decoded;
  decoded.reserve(text.size());
  for (size_t position = 0; position < text.size();) decoded.push_back(next_character(text, position));
  return decoded;
}

void append_lower(std::string& text, const std::vector<char32_t>& all, size_t index) {
  const char32_t character = all[index];
  if (character == capital_i_with_dot) {
    append_character(text, 'i');
    append_character(text, 0x307);
  } else if (character == capital_sigma && ends_word(all, index)) {
    append_character(text, final_sigma);
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character))));
  }
}

}  // namespace

char32_t next_character(std::string_view text, size_t& position) {
  const Decoded decoded = decode(text, position);
  position += decoded.size;
  return decoded.character;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t plain = ascii_prefix(text.substr(position));
    count += plain;
    position += plain;
    if (position == text.size()) break;
    position += decode(text, position).size;
    ++count;
  }
  return count;
}

size_t offset_of_character(std::string_view text, size_t index) {
  size_t position = 0;
  for (; index > 0 && position < text.size(); --index) position += decode(text, position).size;
  return position;
}

void append_character(std::string& text, char32_t character) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool is_valid_utf8(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    const Decoded decoded = decode(text, position);
    if (!decoded.valid) return false;
    position += decoded.size;
  }
  return true;
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  for (size_t position = 0; position < text.size();) {
    const size_t size = decode(text, position).size;
    characters.emplace_back(text.substr(position, size));
    position += size;
  }
  return characters;
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

bool is_space(char32_t character) {
  return (character >= 9 && character <= 13) || (character >= 28 && character <= 32) || character == 0x85 ||
         character == 0xA0 || character == 0x1680 || (character >= 0x2000 && character <= 0x200A) ||
         character == 0x2028 || character == 0x2029 || character == 0x202F || character == 0x205F ||
         character == 0x3000;
}

bool is_alphabetic(char32_t character) {
  const auto kind = category(character);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t character) { return category(character) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t character) {
  return is_decimal(character) || character == 0xB2 || character == 0xB3 || character == 0xB9 || character == 0x2070 ||
         (character >= 0x2074 && character <= 0x2079) || (character >= 0x2080 && character <= 0x2089) ||
         (character >= 0x2460 && character <= 0x2468);
}

bool is_numeric(char32_t character) {
  const auto kind = category(character);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_alphanumeric(char32_t character) { return is_alphabetic(character) || is_numeric(character); }

bool is_printable(char32_t character) {
  if (character == ' ') return true;
  const auto kind = category(character);
  return kind != UTF8PROC_CATEGORY_CN && !(kind >= UTF8PROC_CATEGORY_ZS && kind <= UTF8PROC_CATEGORY_CO);
}

bool is_upper(char32_t character) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(character)) != 0; }
bool is_lower(char32_t character) { return utf8proc_islower(static_cast<utf8proc_int32_t>(character)) != 0; }
bool is_title(char32_t character) { return category(character) == UTF8PROC_CATEGORY_LT; }

std::string to_upper(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  for (size_t position = 0; position < text.size();) append_upper(made, next_character(text, position));
  return made;
}

std::string to_lower(std::string_view text) {
  const auto all = decode_all(text);
  std::string made;
  made.reserve(text.size());
  for (size_t i = 0; i < all.size(); ++i) append_lower(made, all, i);
  return made;
}

std::string to_title(std::string_view text) {
  const auto all = decode_all(text);
  std::string made;
  bool inside_word = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (inside_word) {
      append_lower(made, all, i);
    } else {
      append_title(made, all[i]);
    }
    inside_word = is_cased(all[i]);
  }
  return made;
}

std::string capitalize(std::string_view text) {
  const auto all = decode_all(text);
  std::string made;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == 0) {
      append_title(made, all[i]);
    } else {
      append_lower(made, all, i);
    }
  }
  return made;
}

std::string swap_case(std::string_view text) {
  const auto all = decode_all(text);
  std::string made;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_upper(all[i])) {
      append_lower(made, all, i);
    } else if (is_lower(all[i])) {
      append_upper(made, all[i]);
    } else {
      append_character(made, all[i]);
    }
  }
  return made;
}

std::string fold_case(std::string_view text) {
  utf8proc_uint8_t* folded = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &folded, UTF8PROC_CASEFOLD);
  if (size < 0) return to_lower(text);
  std::string made(reinterpret_cast<const char*>(folded), static_cast<size_t>(size));
  std::free(folded);
  return made;
}

std::string_view strip(std::string_view text, std::optional<std::string_view> set, bool left, bool right) {
  const auto stripped = [&](std::string_view character) {
    if (!set) {
      size_t position = 0;
      return is_space(next_character(character, position));
    }
    return set->find(character) != std::string_view::npos;
  };
  while (left && !text.empty()) {
    const size_t size = decode(text, 0).size;
    if (!stripped(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && text.size() - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (start + decode(text, start).size != text.size()) start = text.size() - 1;
    if (!stripped(text.substr(start))) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

}  // namespace sluice::jinja
