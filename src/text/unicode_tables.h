#pragma once
#include <cstdint>
#include <span>

namespace sluice {

/// Classes of code points, as bits. The first three are General_Category L, M and N.
enum CodePointClass : std::uint8_t {
  letter_class = 1,
  mark_class = 2,
  number_class = 4,
  space_class = 8,     // White_Space
  not_nfc_class = 16,  // NFC may change it, or join it to what stands before
};

struct CodePointRange {
  std::uint32_t first, last;  // both included
  std::uint8_t classes;
};

/// Sorted ranges of all code points that have a class.
std::span<const CodePointRange> code_point_ranges();

}  // namespace sluice
