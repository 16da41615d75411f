#pragma once
#include <cstddef>
#include <cstdint>

/// ggml's blocks as files hold them, under ggml's names for types and fields. Scales `d` and `dmin` are float16.
namespace sluice::ggml {

using Half = std::uint16_t;
using Byte = std::uint8_t;

struct Q4_0 {
  static constexpr std::int64_t values = 32;
  Half d;
  Byte qs[16];  // value i in the low half of byte i, value i + 16 in the high half
};

struct Q4_1 {
  static constexpr std::int64_t values = 32;
  Half d, m;
  Byte qs[16];  // as in Q4_0
};

struct Q5_0 {
  static constexpr std::int64_t values = 32;
  Half d;
  Byte qh[4];  // bit i: the fifth of value i
  Byte qs[16];
};

struct Q5_1 {
  static constexpr std::int64_t values = 32;
  Half d, m;
  Byte qh[4];
  Byte qs[16];
};

struct Q8_0 {
  static constexpr std::int64_t values = 32;
  Half d;
  std::int8_t qs[32];
};

struct Q2_K {
  static constexpr std::int64_t values = 256;
  Byte scales[16];  // of 16 values each: scale in the low half, minimum in the high one
  Byte qs[64];      // 2 bits each; byte i of a half holds values i, i + 32, i + 64 and i + 96 of it
  Half d, dmin;
};

struct Q3_K {
  static constexpr std::int64_t values = 256;
  Byte hmask[32];   // bit k of byte i: the third of value 32 * k + i
  Byte qs[64];      // as in Q2_K
  Byte scales[12];  // 16 of 6 bits: low halves in 8 bytes, two high bits each in 4
  Half d;
};

struct Q4_K {
  static constexpr std::int64_t values = 256;
  Half d, dmin;
  Byte scales[12];  // scale and minimum of 32 values each, 6 bits
  Byte qs[128];     // byte i of a quarter holds values i and i + 32 of it
};

struct Q5_K {
  static constexpr std::int64_t values = 256;
  Half d, dmin;
  Byte scales[12];  // as in Q4_K
  Byte qh[32];      // bit k of byte i: the fifth of value 32 * k + i
  Byte qs[128];     // as in Q4_K
};

struct Q6_K {
  static constexpr std::int64_t values = 256;
  Byte ql[128];  // byte i of a half holds the low bits of values i and i + 64 of it
  Byte qh[64];   // and two high bits, as in Q2_K
  std::int8_t scales[16];
  Half d;
};

struct IQ1_S {
  static constexpr std::int64_t values = 256;
  Half d;
  Byte qs[32];
  std::uint16_t qh[8];  // of 32 values: 3 high bits of 4 grid points, 3 bits of scale, sign of the shift
};

struct IQ1_M {
  static constexpr std::int64_t values = 256;
  Byte qs[32];
  Byte qh[16];              // of 8 values, 4 bits: 3 high bits of the grid point, sign of the shift
  std::uint16_t scales[4];  // 4 of 3 bits each; the high 4 bits of all together are d
};

struct IQ2_XXS {
  static constexpr std::int64_t values = 256;
  Half d;
  Byte qs[64];  // of 32 values: 4 grid points, then 32 bits with 4 times 7 signs and 4 bits of scale
};

struct IQ2_XS {
  static constexpr std::int64_t values = 256;
  Half d;
  std::uint16_t qs[32];  // 9 bits of grid point, 7 signs
  Byte scales[8];
};

struct IQ2_S {
  static constexpr std::int64_t values = 256;
  Half d;
  Byte qs[32];
  Byte signs[32];
  Byte qh[8];
  Byte scales[8];
};

struct IQ3_XXS {
  static constexpr std::int64_t values = 256;
  Half d;
  Byte qs[64];
  Byte scales[32];  // of 32 values: 4 times 7 signs and 4 bits of scale
};

struct IQ3_S {
  static constexpr std::int64_t values = 256;
  Half d;
  Byte qs[64];
  Byte qh[8];
  Byte signs[32];
  Byte scales[4];
};

struct IQ4_NL {
  static constexpr std::int64_t values = 32;
  Half d;
  Byte qs[16];  // as in Q4_0
};

struct IQ4_XS {
  static constexpr std::int64_t values = 256;
  Half d;
  std::uint16_t scales_h;
  Byte scales_l[4];
  Byte qs[128];  // blocks of IQ4_NL, without their scales
};

struct TQ1_0 {
  static constexpr std::int64_t values = 256;
  Byte qs[48];  // five digits of base 3, as a fraction of 256
  Byte qh[4];   // four digits
  Half d;
};

struct TQ2_0 {
  static constexpr std::int64_t values = 256;
  Byte qs[64];  // as in Q2_K
  Half d;
};

struct MXFP4 {
  static constexpr std::int64_t values = 32;
  Byte e;       // scale: a power of two
  Byte qs[16];  // as in Q4_0
};

struct NVFP4 {
  static constexpr std::int64_t values = 64;
  Byte d[4];    // float8_e4m3 without a sign, of 16 values each
  Byte qs[32];  // of 16 values: byte i holds values i and i + 8
};

/// Scale of the whole block.
Half super_scale(const IQ1_M& block);

// One block as floats, with the order of operations of the reference.
void dequantize(const Q4_0& block, float* out);
void dequantize(const Q4_1& block, float* out);
void dequantize(const Q5_0& block, float* out);
void dequantize(const Q5_1& block, float* out);
void dequantize(const Q8_0& block, float* out);
void dequantize(const Q2_K& block, float* out);
void dequantize(const Q3_K& block, float* out);
void dequantize(const Q4_K& block, float* out);
void dequantize(const Q5_K& block, float* out);
void dequantize(const Q6_K& block, float* out);
void dequantize(const IQ1_S& block, float* out);
void dequantize(const IQ1_M& block, float* out);
void dequantize(const IQ2_XXS& block, float* out);
void dequantize(const IQ2_XS& block, float* out);
void dequantize(const IQ2_S& block, float* out);
void dequantize(const IQ3_XXS& block, float* out);
void dequantize(const IQ3_S& block, float* out);
void dequantize(const IQ4_NL& block, float* out);
void dequantize(const IQ4_XS& block, float* out);
void dequantize(const TQ1_0& block, float* out);
void dequantize(const TQ2_0& block, float* out);
void dequantize(const MXFP4& block, float* out);
void dequantize(const NVFP4& block, float* out);

}  // namespace sluice::ggml
