// Encoders of matrices against the readers of the same formats.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "weights/encode/encoder.h"

namespace sluice {
namespace {

std::vector<float> random_values(std::int64_t count, unsigned seed, float scale = 0.02f) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

float extreme_of(const std::vector<float>& values) {
  float extreme = 0.0f;
  for (const float value : values) extreme = std::max(extreme, std::fabs(value));
  return extreme;
}

/// A matrix encoded tile by tile, with the bytes of each part.
struct Encoded {
  Encoded(const Encoder& encoder, const std::vector<float>& values, std::int64_t out, std::int64_t in)
      : parts(encoder.parts(out, in)) {
    for (const EncodedPart& part : parts) bytes.emplace_back(part.tensor.byte_size());
    for (std::int64_t first = 0; first < out; first += encoder.tile_rows) {
      const RowTile tile{values.data() + first * in, std::min(encoder.tile_rows, out - first), out, in,
                         extreme_of(values)};
      std::vector<std::byte*> places;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        places.push_back(bytes[p].data() + (parts[p].rows == 0 ? 0 : part_bytes(parts[p], first)));
      }
      encoder.encode(tile, places);
    }
    matrix = {encoder.format, {}, 0, out, in};
    for (std::size_t p = 0; p < parts.size(); ++p) {
      parts[p].tensor.name = "m." + parts[p].tensor.name;
      matrix.parts.push_back({&parts[p].tensor, bytes[p].data()});
    }
  }

  std::vector<float> decoded() const {
    std::vector<float> values(static_cast<std::size_t>(matrix.out * matrix.in));
    matrix.format->check(matrix);
    matrix.dequantize(0, matrix.out, values.data());
    return values;
  }

  std::vector<EncodedPart> parts;
  std::vector<std::vector<std::byte>> bytes;
  SourceMatrix matrix;
};

double squared_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  return sum;
}

double relative_error(const Encoder& encoder, const std::vector<float>& values, std::int64_t out, std::int64_t in) {
  const std::vector<float> zeros(values.size(), 0.0f);
  return std::sqrt(squared_distance(Encoded(encoder, values, out, in).decoded(), values) /
                   squared_distance(zeros, values));
}

/// The distance to the nearest of all numbers that codes stand for.
template <class Decode>
float nearest_distance(float value, int codes, Decode decode) {
  float distance = std::numeric_limits<float>::infinity();
  for (int code = 0; code < codes; ++code) {
    const float number = decode(static_cast<std::uint8_t>(code));
    if (!std::isnan(number)) distance = std::min(distance, std::fabs(number - value));
  }
  return distance;
}

float e2m1(std::uint8_t code) { return 0.5f * static_cast<float>(e2m1_halves[code]); }

TEST(Rounding, ToE4m3IsToTheNearest) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> exponent(-12.0f, 9.5f);
  for (int i = 0; i < 20000; ++i) {
    const float value = std::exp2(exponent(engine)) * (i % 2 == 0 ? 1.0f : -1.0f);
    const float found = e4m3_to_float(float_to_e4m3(value));
    EXPECT_EQ(std::fabs(found - value), nearest_distance(value, 256, e4m3_to_float)) << value;
  }
}

TEST(Rounding, ToE4m3KeepsWhatIsE4m3AndTiesGoToEven) {
  for (int code = 0; code < 256; ++code) {
    const float number = e4m3_to_float(static_cast<std::uint8_t>(code));
    if (std::isnan(number)) continue;
    EXPECT_EQ(float_to_e4m3(number), code);
    const float next = e4m3_to_float(static_cast<std::uint8_t>(code + 1));
    if ((code & 0x7f) == 0x7e) continue;
    EXPECT_EQ(float_to_e4m3(0.5f * (number + next)) & 1, 0) << number;
  }
  EXPECT_EQ(e4m3_to_float(float_to_e4m3(1e30f)), 448.0f);
  EXPECT_EQ(e4m3_to_float(float_to_e4m3(-460.0f)), -448.0f);
}

TEST(Rounding, ToE2m1IsToTheNearestAndTiesGoToEven) {
  for (float value = -8.0f; value <= 8.0f; value += 1.0f / 128.0f) {
    const float found = e2m1(float_to_e2m1(value));
    EXPECT_EQ(std::fabs(found - value), nearest_distance(value, 16, e2m1)) << value;
  }
  for (int code = 0; code < 7; ++code) {
    const float middle = 0.5f * (e2m1(static_cast<std::uint8_t>(code)) + e2m1(static_cast<std::uint8_t>(code + 1)));
    EXPECT_EQ(float_to_e2m1(middle) & 1, 0) << middle;
    EXPECT_EQ(float_to_e2m1(-middle) & 9, 8) << middle;
  }
}

struct Bound {
  const char* name;
  double error;  // relative, of normal numbers
};
const Bound bounds[] = {{"f32", 0.0},    {"f16", 3e-4},  {"bf16", 2.5e-3}, {"fp8", 0.03},   {"nvfp4", 0.1},
                        {"int4", 0.115}, {"q8_0", 7e-3}, {"q6_k", 0.025},  {"q4_k", 0.085}, {"q4_0", 0.11}};

TEST(Encoders, AreAllTried) {
  for (const Encoder* encoder : encoders()) {
    EXPECT_TRUE(std::ranges::any_of(bounds, [&](const Bound& bound) { return bound.name == encoder->name; }))
        << encoder->name;
  }
}

TEST(Encoders, ComeBackWithinTheirErrors) {
  for (const Bound& bound : bounds) {
    const Encoder* encoder = find_encoder(bound.name);
    ASSERT_NE(encoder, nullptr) << bound.name;
    const double error = relative_error(*encoder, random_values(150 * 512, 3), 150, 512);
    EXPECT_LE(error, bound.error) << bound.name;
    EXPECT_GE(error, 0.5 * bound.error) << bound.name << ": the bound says little";
  }
}

TEST(Encoders, TakeRowsThatAreNoWholeBlocks) {
  EXPECT_LE(relative_error(*find_encoder("fp8"), random_values(130 * 200, 4), 130, 200), 0.03);
  EXPECT_LE(relative_error(*find_encoder("nvfp4"), random_values(33 * 48, 5), 33, 48), 0.1);
  EXPECT_LE(relative_error(*find_encoder("int4"), random_values(33 * 160, 6), 33, 160), 0.115);
  EXPECT_FALSE(find_encoder("nvfp4")->fits(40));
  EXPECT_FALSE(find_encoder("int4")->fits(48));
  EXPECT_FALSE(find_encoder("q4_k")->fits(128));
  EXPECT_TRUE(find_encoder("q8_0")->fits(160));
}

TEST(Encoders, KeepZeroAndHugeAndTinyNumbersFinite) {
  for (const Encoder* encoder : encoders()) {
    for (const float magnitude : {0.0f, 1e-38f, 1e-20f, 60000.0f}) {
      std::vector<float> values(64 * 256, 0.0f);
      for (std::size_t i = 0; i < values.size(); i += 3) values[i] = i % 2 == 0 ? magnitude : -magnitude;
      for (const float value : Encoded(*encoder, values, 64, 256).decoded()) {
        ASSERT_TRUE(std::isfinite(value)) << encoder->name << " " << magnitude;
        ASSERT_TRUE(magnitude > 0.0f || value == 0.0f) << encoder->name;
        ASSERT_LE(std::fabs(value), 1.1f * magnitude + 1e-6f) << encoder->name;
      }
    }
  }
}

TEST(Encoders, OfFp8ScaleEachBlockOf128ByItself) {
  std::vector<float> values = random_values(256 * 256, 7);
  for (std::size_t row = 0; row < 128; ++row) {
    for (std::size_t i = 128; i < 256; ++i) values[row * 256 + i] *= 1e4f;
  }
  const Encoded encoded(*find_encoder("fp8"), values, 256, 256);
  float scales[4];
  std::memcpy(scales, encoded.bytes[1].data(), sizeof scales);
  for (const std::size_t block : {0u, 1u, 2u, 3u}) {
    float extreme = 0.0f;
    for (std::size_t row = 0; row < 128; ++row) {
      for (std::size_t i = 0; i < 128; ++i) {
        extreme = std::max(extreme, std::fabs(values[(block / 2 * 128 + row) * 256 + block % 2 * 128 + i]));
      }
    }
    EXPECT_FLOAT_EQ(scales[block], extreme / 448.0f);
  }
}

/// The error when the largest number of each group becomes the largest that the form has.
double plain_error(const std::vector<float>& values, std::size_t group, float largest, bool is_int) {
  double sum = 0.0;
  const float matrix = extreme_of(values) / (6.0f * 448.0f);
  for (std::size_t at = 0; at < values.size(); at += group) {
    const std::vector<float> part(values.begin() + static_cast<std::ptrdiff_t>(at),
                                  values.begin() + static_cast<std::ptrdiff_t>(at + group));
    float scale = extreme_of(part) / largest;
    scale = is_int ? bf16_to_float(float_to_bf16(scale)) : e4m3_to_float(float_to_e4m3(scale / matrix)) * matrix;
    for (const float value : part) {
      const float number =
          is_int ? std::clamp(std::nearbyint(value / scale), -8.0f, 7.0f) : e2m1(float_to_e2m1(value / scale));
      sum += std::pow(static_cast<double>(number * scale - value), 2);
    }
  }
  return sum;
}

TEST(Encoders, OfFourBitsSearchBetterScalesThanThatOfTheLargestNumber) {
  const std::vector<float> values = random_values(64 * 512, 8);
  const double int4 = squared_distance(Encoded(*find_encoder("int4"), values, 64, 512).decoded(), values);
  const double nvfp4 = squared_distance(Encoded(*find_encoder("nvfp4"), values, 64, 512).decoded(), values);
  EXPECT_LT(int4, 0.9 * plain_error(values, 128, 7.0f, true));
  EXPECT_LT(nvfp4, 0.9 * plain_error(values, 16, 6.0f, false));
}

TEST(Encoders, OfNvfp4AreExactForWhatItHolds) {
  std::vector<float> values(32 * 64);
  std::mt19937 engine(9);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float scale = i / 16 % 3 == 0 ? 448.0f : 1.5f;
    values[i] = e2m1(static_cast<std::uint8_t>(i % 16 == 0 ? 7 : engine() % 16)) * scale * 0.25f;
  }
  EXPECT_EQ(squared_distance(Encoded(*find_encoder("nvfp4"), values, 32, 64).decoded(), values), 0.0);
}

}  // namespace
}  // namespace sluice
