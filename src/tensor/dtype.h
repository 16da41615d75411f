#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

/// Element types that files and tensors hold.
enum class DType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean
};

/// Bytes of one element.
std::size_t size_of(DType dtype);
/// "float32", "bfloat16", ... as people write them.
std::string_view name_of(DType dtype);

inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// Round to nearest, ties to even; NaN stays NaN.
inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_float(std::uint16_t bits);
std::uint16_t float_to_f16(float value);

/// Element `index` of packed values of a floating type (f64, f32, f16 or bf16), as float.
float load_float(DType dtype, const void* values, std::size_t index);
/// Whether load_float knows the type.
bool is_plain_float(DType dtype);
/// Converts `count` packed values of a floating type.
void to_float(DType dtype, const void* values, std::size_t count, float* out);

}  // namespace sluice
