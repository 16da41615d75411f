#include "text/unicode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <simdjson.h>
#include <utf8proc.h>

#include "base/check.h"

namespace sluice {

namespace {

constexpr std::size_t block_bits = 8;
constexpr std::size_t block_size = std::size_t{1} << block_bits;
constexpr std::size_t code_points = 0x110000;

/// Two-stage table: blocks of 256 code points, equal blocks stored once.
class ClassTable {
 public:
  ClassTable() {
    std::vector<std::uint8_t> all(code_points, 0);
    for (const CodePointRange& range : code_point_ranges())
      std::fill(all.begin() + range.first, all.begin() + range.last + 1, range.classes);
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      const std::uint8_t* begin = all.data() + block * block_size;
      blocks_[block] = static_cast<std::uint16_t>(stored_block(begin));
    }
  }

  std::uint8_t operator[](char32_t code_point) const {
    return classes_[blocks_[code_point >> block_bits] * block_size + (code_point & (block_size - 1))];
  }

 private:
  std::size_t stored_block(const std::uint8_t* begin) {
    for (std::size_t at = 0; at < classes_.size(); at += block_size)
      if (std::memcmp(classes_.data() + at, begin, block_size) == 0) return at / block_size;
    classes_.insert(classes_.end(), begin, begin + block_size);
    return classes_.size() / block_size - 1;
  }

  std::array<std::uint16_t, code_points / block_size> blocks_{};
  std::vector<std::uint8_t> classes_;
};

const ClassTable& class_table() {
  static const ClassTable table;
  return table;
}

struct LeadByte {
  std::uint8_t length = 0;                             // 0: cannot begin a character
  std::uint8_t second_low = 0x80, second_high = 0xBF;  // range of the byte after it
};

LeadByte lead_byte(std::uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

DecodedCharacter decode_character(std::string_view bytes) {
  const auto first = static_cast<std::uint8_t>(bytes[0]);
  if (first < 0x80) return {first, 1, true, false};
  const LeadByte lead = lead_byte(first);
  if (lead.length == 0) return {0xFFFD, 1, false, false};
  char32_t code_point = first & (0x7Fu >> lead.length);
  for (std::uint8_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {0xFFFD, i, false, true};
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    const bool second = i == 1;
    if (byte < (second ? lead.second_low : 0x80) || byte > (second ? lead.second_high : 0xBF))
      return {0xFFFD, i, false, false};
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return {code_point, lead.length, true, false};
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::size_t append_valid_utf8(std::string& out, std::string_view text, bool keep_unfinished) {
  std::size_t at = 0;
  while (at < text.size()) {
    const DecodedCharacter character = decode_character(text.substr(at));
    if (character.unfinished && keep_unfinished) break;
    if (character.valid)
      out.append(text, at, character.length);
    else
      append_utf8(out, 0xFFFD);
    at += character.length;
  }
  return at;
}

std::uint8_t classes_of(char32_t code_point) {
  CHECK(code_point < code_points, "code point {:#x}", static_cast<std::uint32_t>(code_point));
  return class_table()[code_point];
}

bool is_surely_nfc(std::string_view text) {
  const ClassTable& table = class_table();
  for (std::size_t at = 0; at < text.size();) {
    // Lead bytes below 0xCC begin characters below U+0300, all of which NFC leaves alone.
    if (static_cast<std::uint8_t>(text[at]) < 0xCC) {
      ++at;
      continue;
    }
    const DecodedCharacter character = decode_character(text.substr(at));
    if (table[character.code_point] & not_nfc_class) return false;
    at += character.length;
  }
  return true;
}

/// Orders each run of combining marks by class, keeping the order within a class.
static void order_marks(std::vector<utf8proc_int32_t>& code_points_of_text) {
  const auto combining_class = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  const auto is_starter = [&](utf8proc_int32_t c) { return combining_class(c) == 0; };
  constexpr std::uint64_t code_point_mask = 0x1FFFFF;
  std::vector<std::uint64_t> keys;  // class, place, code point
  for (auto run = code_points_of_text.begin(); run != code_points_of_text.end();) {
    run = std::find_if_not(run, code_points_of_text.end(), is_starter);
    const auto end = std::find_if(run, code_points_of_text.end(), is_starter);
    keys.clear();
    for (auto mark = run; mark != end; ++mark)
      keys.push_back(static_cast<std::uint64_t>(combining_class(*mark)) << 56 | keys.size() << 21 |
                     static_cast<std::uint32_t>(*mark));
    std::sort(keys.begin(), keys.end());
    for (std::uint64_t key : keys) *run++ = static_cast<utf8proc_int32_t>(key & code_point_mask);
  }
}

std::string to_nfc(std::string_view text) {
  std::vector<utf8proc_int32_t> decomposed;
  decomposed.reserve(text.size() + 32);
  for (std::size_t at = 0; at < text.size();) {
    const DecodedCharacter character = decode_character(text.substr(at));
    at += character.length;
    std::array<utf8proc_int32_t, 32> parts;
    int boundary_class = UTF8PROC_BOUNDCLASS_START;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character.code_point), parts.data(), parts.size(),
                                static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundary_class);
    CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()), "utf8proc error {}", count);
    decomposed.insert(decomposed.end(), parts.begin(), parts.begin() + count);
  }
  order_marks(decomposed);
  const utf8proc_ssize_t length =
      utf8proc_normalize_utf32(decomposed.data(), static_cast<utf8proc_ssize_t>(decomposed.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  CHECK(length >= 0, "utf8proc error {}", length);
  std::string composed;
  composed.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) append_utf8(composed, static_cast<char32_t>(decomposed[i]));
  return composed;
}

}  // namespace sluice
