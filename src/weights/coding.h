#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/integers.h"
#include "tensor/dtype.h"

namespace sluice {

struct SourceMatrix;

/// What one code is: an index into a table of 16 numbers, a signed byte, an e4m3 float, or 0 .. 63 for -32 .. 31.
enum class CodeKind : std::uint8_t { table, int8, f8_e4m3, six_bit };
/// Types of factors; e8m0 is 2^(byte - 127).
enum class FactorType : std::uint8_t { none, f32, f16, bf16, f8_e4m3, f8_e8m0, u8, i8 };

/// Bytes of one factor; 0 for none.
std::size_t size_of(FactorType type);
/// The factor at `index` of packed ones; 1 for none.
float load_factor(FactorType type, const void* factors, std::int64_t index);
/// The type of a tensor of float scales. Null for other types.
std::optional<FactorType> factor_type(DType dtype);

float e4m3_to_float(std::uint8_t bits);
inline constexpr float largest_e4m3 = 448.0f;
/// The nearest e4m3 number, ties to even; beyond the largest one, that one. Not for NaN.
std::uint8_t float_to_e4m3(float value);
/// The nearest e2m1 number, ties to even: an index of e2m1_halves. Beyond 6, 6. Not for NaN.
std::uint8_t float_to_e2m1(float value);

/// A quantized matrix taken apart, from which it can be computed without loss. For column c of a row, in group
/// c / group and super group c / super_group:
///   scale = scales[group] * supers[super group]
///   value = number(code) * scale - offset
///   offset = offsets[group] * (zero_points ? scale : super_offsets[super group]); 0 without offsets
struct Coding {
  CodeKind codes = CodeKind::table;
  std::array<std::int8_t, 16> table{};  // numbers of CodeKind::table
  FactorType scales = FactorType::f32, supers = FactorType::none;
  FactorType offsets = FactorType::none, super_offsets = FactorType::none;
  bool zero_points = false;
  std::int64_t group = 0, super_group = 0;  // columns

  std::int64_t groups(std::int64_t in) const { return ceil_divide(in, group); }
  std::int64_t super_groups(std::int64_t in) const { return ceil_divide(in, super_group); }
  bool operator==(const Coding&) const = default;
};

/// Where the parts of one row go; the factors as the coding's types say, packed. Parts that a coding lacks are null.
struct CodedRow {
  std::uint8_t* codes = nullptr;  // one byte each
  std::byte *scales = nullptr, *supers = nullptr, *offsets = nullptr, *super_offsets = nullptr;
};

/// Memory for the parts of one row.
class CodedRowBuffer {
 public:
  CodedRowBuffer(const Coding& coding, std::int64_t in);
  CodedRow row();
  std::vector<std::uint8_t> codes;
  std::vector<std::byte> scales, supers, offsets, super_offsets;
};

/// One row of `in` numbers: the definition of a coding.
void decode_row(const Coding& coding, const CodedRow& row, std::int64_t in, float* out);

/// Whether no codes could make decode_row() overflow. Factors of 16 bits and less are taken to be numbers.
bool decodes_to_finite(const Coding& coding, const CodedRow& row, std::int64_t in);
/// Moves numbers in an order of columns (SourceMatrix::input_order) back to where they belong; none move if it is
/// empty.
void restore_order(std::span<const std::int32_t> order, float* numbers);

/// Tables of 4-bit numbers. e2m1 counts in halves.
inline constexpr std::array<std::int8_t, 16> signed_nibbles{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
inline constexpr std::array<std::int8_t, 16> unsigned_nibbles{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline constexpr std::array<std::int8_t, 16> e2m1_halves{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace sluice
