#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode_tables.h"

namespace sluice {

/// One character at the front of some bytes.
struct DecodedCharacter {
  char32_t code_point = 0xFFFD;
  std::uint8_t length = 0;  // bytes it takes; of broken ones, those that one U+FFFD stands for
  bool valid = false;
  bool unfinished = false;  // not valid, but more bytes could make it so
};

/// Decodes the first character of bytes (not empty). Broken bytes are grouped as the Unicode standard
/// recommends (3.9, "maximal subpart"): one U+FFFD for each longest beginning of a character.
DecodedCharacter decode_character(std::string_view bytes);

void append_utf8(std::string& out, char32_t code_point);

bool is_valid_utf8(std::string_view text);

/// Appends text to out with every broken part as U+FFFD. With keep_unfinished, stops at the beginning of a
/// character at the very end. Returns the bytes used.
std::size_t append_valid_utf8(std::string& out, std::string_view text, bool keep_unfinished = false);

/// The bits of CodePointClass that a code point has.
std::uint8_t classes_of(char32_t code_point);

/// Normalization form C of valid UTF-8. Linear in the text but for n log n in a run of combining marks.
std::string to_nfc(std::string_view text);

/// True if every character is sure to be left alone by NFC; false means only that to_nfc must be asked.
bool is_surely_nfc(std::string_view text);

}  // namespace sluice
