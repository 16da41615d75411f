#include "tensor/dtype.h"

#include <cmath>
#include <cstring>

#include "base/check.h"

namespace sluice {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 2;
    default: return 1;
  }
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return "float64";
    case DType::f32: return "float32";
    case DType::f16: return "float16";
    case DType::bf16: return "bfloat16";
    case DType::f8_e4m3: return "float8_e4m3";
    case DType::f8_e5m2: return "float8_e5m2";
    case DType::f8_e8m0: return "float8_e8m0";
    case DType::i64: return "int64";
    case DType::i32: return "int32";
    case DType::i16: return "int16";
    case DType::i8: return "int8";
    case DType::u64: return "uint64";
    case DType::u32: return "uint32";
    case DType::u16: return "uint16";
    case DType::u8: return "uint8";
    case DType::boolean: return "bool";
  }
  return "unknown";
}

float f16_to_float(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  float magnitude;
  if (exponent == 31) {
    magnitude = mantissa != 0 ? std::nanf("") : INFINITY;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return std::copysign(magnitude, (bits & 0x8000u) != 0 ? -1.0f : 1.0f);
}

std::uint16_t float_to_f16(float value) {
  const auto sign = static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) >> 16) & 0x8000u);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 6.103515625e-5f) {  // subnormal: a multiple of 2^-24
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  }
  std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
  bits += 0xfffu + ((bits >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((bits >> 13) - (112u << 10)));
}

bool is_plain_float(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

float load_float(DType dtype, const void* values, std::size_t index) {
  const auto* bytes = static_cast<const std::byte*>(values) + index * size_of(dtype);
  auto read = [bytes]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::f64: return static_cast<float>(read(double{}));
    case DType::f32: return read(float{});
    case DType::f16: return f16_to_float(read(std::uint16_t{}));
    case DType::bf16: return bf16_to_float(read(std::uint16_t{}));
    default: break;
  }
  CHECK(is_plain_float(dtype), "dtype {}", name_of(dtype));
  return 0.0f;
}

void to_float(DType dtype, const void* values, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = load_float(dtype, values, i);
}

}  // namespace sluice
