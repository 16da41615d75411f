#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jinja {

/// Decodes the character at `position` and moves behind it. A byte that is not UTF-8 is one character, U+FFFD.
char32_t next_character(std::string_view text, size_t& position);
size_t count_characters(std::string_view text);
/// Byte offset of a character, or the size of the text when there are fewer.
size_t offset_of_character(std::string_view text, size_t index);
void append_character(std::string& text, char32_t character);
bool is_valid_utf8(std::string_view text);
std::vector<std::string> characters_of(std::string_view text);

/// As std::string_view::find, but linear for any needle.
size_t find_text(std::string_view text, std::string_view needle, size_t from);

// Python's classes of characters.
bool is_space(char32_t character);
bool is_alphabetic(char32_t character);
bool is_decimal(char32_t character);
bool is_digit(char32_t character);
bool is_numeric(char32_t character);
bool is_alphanumeric(char32_t character);
bool is_printable(char32_t character);
bool is_upper(char32_t character);
bool is_lower(char32_t character);
bool is_title(char32_t character);

// Python's case conversions, in full: one character may become several.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);    // the first letter after every non-letter
std::string capitalize(std::string_view text);  // the first character title case, the rest lower
std::string swap_case(std::string_view text);
std::string fold_case(std::string_view text);

/// Without the characters of `set` (white space if absent) on the chosen sides.
std::string_view strip(std::string_view text, std::optional<std::string_view> set, bool left, bool right);

}  // namespace sluice::jinja
