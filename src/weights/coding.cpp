#include "weights/coding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/check.h"

namespace sluice {

std::size_t size_of(FactorType type) {
  switch (type) {
    case FactorType::none: return 0;
    case FactorType::f32: return 4;
    case FactorType::f16:
    case FactorType::bf16: return 2;
    case FactorType::f8_e4m3:
    case FactorType::f8_e8m0:
    case FactorType::u8:
    case FactorType::i8: return 1;
  }
  check_failed(__FILE__, __LINE__, "a type of factors", "");
}

std::optional<FactorType> factor_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return FactorType::f32;
    case DType::f16: return FactorType::f16;
    case DType::bf16: return FactorType::bf16;
    case DType::f8_e4m3: return FactorType::f8_e4m3;
    case DType::f8_e8m0: return FactorType::f8_e8m0;
    default: return std::nullopt;
  }
}

float e4m3_to_float(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  if ((bits & 0x7f) == 0x7f) return sign * std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

std::uint8_t float_to_e4m3(float value) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
  const float magnitude = std::min(std::fabs(value), largest_e4m3);
  if (magnitude < std::ldexp(1.0f, -6)) {
    const float steps = magnitude * 512.0f + 8388608.0f;  // 2^23: the sum has no room for a fraction
    return sign | static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(steps) & 15u);
  }
  auto bits = std::bit_cast<std::uint32_t>(magnitude);
  bits += 0x7ffffu + (bits >> 20 & 1u);                                 // 20 bits of the mantissa go
  return sign | static_cast<std::uint8_t>((bits >> 20) - (120u << 3));  // exponents count from -127 and from -7
}

std::uint8_t float_to_e2m1(float value) {
  const float x = std::fabs(value);
  const int code = int{x > 0.25f} + int{x >= 0.75f} + int{x > 1.25f} + int{x >= 1.75f} + int{x > 2.5f} +
                   int{x >= 3.5f} + int{x > 5.0f};
  return static_cast<std::uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

float load_factor(FactorType type, const void* factors, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  const auto* bytes = static_cast<const std::uint8_t*>(factors);
  switch (type) {
    case FactorType::none: return 1.0f;
    case FactorType::f32: return load_float(DType::f32, factors, i);
    case FactorType::f16: return load_float(DType::f16, factors, i);
    case FactorType::bf16: return load_float(DType::bf16, factors, i);
    case FactorType::f8_e4m3: return e4m3_to_float(bytes[i]);
    case FactorType::f8_e8m0:
      return bytes[i] == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bytes[i] - 127);
    case FactorType::u8: return static_cast<float>(bytes[i]);
    case FactorType::i8: return static_cast<float>(static_cast<std::int8_t>(bytes[i]));
  }
  check_failed(__FILE__, __LINE__, "a type of factors", "");
}

CodedRowBuffer::CodedRowBuffer(const Coding& coding, std::int64_t in) : codes(static_cast<std::size_t>(in)) {
  const auto groups = static_cast<std::size_t>(coding.groups(in));
  const auto super_groups = static_cast<std::size_t>(coding.super_group > 0 ? coding.super_groups(in) : 0);
  scales.resize(groups * size_of(coding.scales));
  offsets.resize(groups * size_of(coding.offsets));
  supers.resize(super_groups * size_of(coding.supers));
  super_offsets.resize(super_groups * size_of(coding.super_offsets));
}

CodedRow CodedRowBuffer::row() {
  return {codes.data(), scales.data(), supers.data(), offsets.data(), super_offsets.data()};
}

namespace {

float number_of(const Coding& coding, std::uint8_t code) {
  switch (coding.codes) {
    case CodeKind::table: return static_cast<float>(coding.table[code & 15]);
    case CodeKind::int8: return static_cast<float>(static_cast<std::int8_t>(code));
    case CodeKind::f8_e4m3: return e4m3_to_float(code);
    case CodeKind::six_bit: return static_cast<float>(static_cast<int>(code & 63) - 32);
  }
  check_failed(__FILE__, __LINE__, "a kind of codes", "");
}

/// The largest magnitude of a code's number.
float largest_number(const Coding& coding) {
  switch (coding.codes) {
    case CodeKind::table: {
      int largest = 0;
      for (const int number : coding.table) largest = std::max(largest, std::abs(number));
      return static_cast<float>(largest);
    }
    case CodeKind::int8: return 128.0f;
    case CodeKind::f8_e4m3: return largest_e4m3;
    case CodeKind::six_bit: return 32.0f;
  }
  check_failed(__FILE__, __LINE__, "a kind of codes", "");
}

/// No factor is larger in magnitude; infinity if one is not a number.
float bound_of(FactorType type, const std::byte* factors, std::int64_t count) {
  switch (type) {
    case FactorType::none: return 1.0f;
    case FactorType::f16: return 65504.0f;
    case FactorType::f8_e4m3: return largest_e4m3;
    case FactorType::u8: return 255.0f;
    case FactorType::i8: return 128.0f;
    default: break;
  }
  float largest = 0.0f;
  for (std::int64_t i = 0; i < count; ++i) {
    const float factor = std::fabs(load_factor(type, factors, i));
    if (!std::isfinite(factor)) return std::numeric_limits<float>::infinity();
    largest = std::max(largest, factor);
  }
  return largest;
}

}  // namespace

bool decodes_to_finite(const Coding& coding, const CodedRow& row, std::int64_t in) {
  const std::int64_t groups = coding.groups(in), supers = coding.super_group > 0 ? coding.super_groups(in) : 0;
  const float scale = bound_of(coding.scales, row.scales, groups) * bound_of(coding.supers, row.supers, supers);
  float offset = 0.0f;
  if (coding.offsets != FactorType::none) {
    const float unit = coding.zero_points ? scale : bound_of(coding.super_offsets, row.super_offsets, supers);
    offset = bound_of(coding.offsets, row.offsets, groups) * unit;
  }
  return std::isfinite(largest_number(coding) * scale + offset);
}

void decode_row(const Coding& coding, const CodedRow& row, std::int64_t in, float* out) {
  for (std::int64_t group = 0; group < coding.groups(in); ++group) {
    const std::int64_t first = group * coding.group, end = std::min(in, first + coding.group);
    const std::int64_t super = coding.super_group > 0 ? first / coding.super_group : 0;
    const float scale = load_factor(coding.scales, row.scales, group) * load_factor(coding.supers, row.supers, super);
    float offset = 0.0f;
    if (coding.offsets != FactorType::none) {
      const float unit = coding.zero_points ? scale : load_factor(coding.super_offsets, row.super_offsets, super);
      offset = load_factor(coding.offsets, row.offsets, group) * unit;
    }
    for (std::int64_t column = first; column < end; ++column) {
      out[column] = number_of(coding, row.codes[column]) * scale - offset;
    }
  }
}

void restore_order(std::span<const std::int32_t> order, float* numbers) {
  if (order.empty()) return;
  const std::vector<float> ordered(numbers, numbers + order.size());
  for (std::size_t column = 0; column < order.size(); ++column) {
    numbers[static_cast<std::size_t>(order[column])] = ordered[column];
  }
}

}  // namespace sluice
