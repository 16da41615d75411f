#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "support/block_types.h"
#include "weights/ggml/k_scales.h"
#include "weights/ggml/quantize.h"

namespace sluice {
namespace {

using test::block_type;

std::vector<BlockType> quantized_types() {
  std::vector<BlockType> types;
  std::ranges::copy_if(block_types(), std::back_inserter(types), can_quantize);
  return types;
}

std::vector<std::byte> quantized(const BlockType& type, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> blocks(static_cast<std::size_t>(count / type.values * type.bytes));
  quantize_row(type, values.data(), count, blocks.data());
  return blocks;
}

std::vector<float> dequantized(const BlockType& type, const std::vector<std::byte>& blocks) {
  const auto count = static_cast<std::int64_t>(blocks.size()) / type.bytes;
  std::vector<float> values(static_cast<std::size_t>(count * type.values));
  type.dequantize(blocks.data(), count, values.data());
  return values;
}

/// What is left of the values after a round trip.
std::vector<float> stored(const BlockType& type, const std::vector<float>& values) {
  return dequantized(type, quantized(type, values));
}

std::vector<float> normal_values(std::size_t count, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// Of one block: the largest error and the root mean square of errors, relative to the same of the values.
struct BlockError {
  double largest, rms;
};

BlockError block_error(const float* found, const float* expected, std::int64_t count) {
  double largest = 0.0, largest_error = 0.0, squares = 0.0, error_squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = expected[i], error = found[i] - value;
    largest = std::max(largest, std::fabs(value));
    largest_error = std::max(largest_error, std::fabs(error));
    squares += value * value;
    error_squares += error * error;
  }
  return {largest_error / largest, std::sqrt(error_squares / squares)};
}

/// What a block of normally distributed values may lose.
BlockError allowed_error(const BlockType& type) {
  if (type.name == "Q8_0") return {0.5 / 127 * 1.2, 0.009};
  if (type.name == "Q4_0") return {1.0 / 8 * 1.02, 0.15};  // the extreme's opposite has no code of its own
  if (type.name == "Q4_K") return {0.10, 0.09};
  return {0.04, 0.025};  // Q6_K
}

/// What the quantizers of ggml lose of normally distributed values, all in all, rounded up.
double reference_error(const BlockType& type) {
  if (type.name == "Q8_0") return 0.0054;
  if (type.name == "Q4_0") return 0.087;
  if (type.name == "Q4_K") return 0.072;
  return 0.018;  // Q6_K
}

class GgmlQuantize : public testing::TestWithParam<BlockType> {};

TEST_P(GgmlQuantize, KeepsTheErrorOfEveryBlockSmall) {
  const BlockType& type = GetParam();
  const auto allowed = allowed_error(type);
  for (const float scale : {0.02f, 1.0f, 1000.0f}) {
    const auto values = normal_values(256 * 200, scale, 7);
    const auto found = stored(type, values);
    for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(type.values)) {
      const BlockError error = block_error(&found[i], &values[i], type.values);
      ASSERT_LE(error.largest, allowed.largest) << "value " << i << ", scale " << scale;
      ASSERT_LE(error.rms, allowed.rms) << "value " << i << ", scale " << scale;
    }
  }
}

TEST_P(GgmlQuantize, LosesNoMoreThanTheReferenceOverall) {
  const BlockType& type = GetParam();
  const auto values = normal_values(256 * 400, 0.02f, 23);
  const auto found = stored(type, values);
  const double error = block_error(found.data(), values.data(), static_cast<std::int64_t>(values.size())).rms;
  EXPECT_LE(error, reference_error(type));
  EXPECT_GE(error, reference_error(type) * 0.98);
}

TEST_P(GgmlQuantize, KeepsZeros) {
  for (const float value : stored(GetParam(), std::vector<float>(512, 0.0f))) ASSERT_EQ(value, 0.0f);
}

TEST_P(GgmlQuantize, KeepsConstantBlocks) {
  for (const float constant : {1.0f, -1.0f, 0.37f, -0.3f, 300.0f}) {
    for (const float value : stored(GetParam(), std::vector<float>(256, constant))) {
      ASSERT_NEAR(value, constant, std::fabs(constant) * 0.001f);
    }
  }
}

TEST_P(GgmlQuantize, GivesFiniteNumbersForHugeAndTinyOnes) {
  for (const float scale : {3e38f, 1e30f, 1e9f, 1e7f, 1e-5f, 1e-8f, 1e-20f, 1e-38f, 1e-44f}) {
    std::vector<float> values = normal_values(1024, 1.0f, 11);
    for (float& value : values) value = std::clamp(value / 4.0f, -1.0f, 1.0f) * scale;
    const auto found = stored(GetParam(), values);
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_TRUE(std::isfinite(found[i])) << values[i];
      ASSERT_LE(std::fabs(found[i]), 1.2f * scale + 1e-5f) << values[i];
    }
  }
}

TEST_P(GgmlQuantize, MakesTheLargestNumberOfWhatIsTooLarge) {
  std::vector<float> values(256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 3e38f : -3e38f;
  const auto found = stored(GetParam(), values);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_GT(found[i] * (i % 2 == 0 ? 1.0f : -1.0f), 4e5f) << "value " << i;
  }
}

TEST_P(GgmlQuantize, SeesEveryBlockAlone) {
  const BlockType& type = GetParam();
  auto values = normal_values(256 * 4, 1.0f, 13);
  for (std::size_t i = 256; i < 512; ++i) values[i] *= 1000.0f;
  const auto whole = quantized(type, values);
  std::vector<std::byte> pieces;
  for (auto at = values.begin(); at != values.end(); at += type.values) {
    const auto block = quantized(type, {at, at + type.values});
    pieces.insert(pieces.end(), block.begin(), block.end());
  }
  EXPECT_EQ(whole, pieces);
}

TEST_P(GgmlQuantize, TakesWholeBlocksOnly) {
  std::vector<float> values(512);
  std::vector<std::byte> blocks(1024);
  EXPECT_THROW(quantize_row(GetParam(), values.data(), GetParam().values + 1, blocks.data()), InternalError);
}

INSTANTIATE_TEST_SUITE_P(Types, GgmlQuantize, testing::ValuesIn(quantized_types()), test::name_of_type);

TEST(GgmlQuantizeTypes, AreFour) {
  std::vector<std::string> names;
  for (const BlockType& type : quantized_types()) names.emplace_back(type.name);
  EXPECT_EQ(names, (std::vector<std::string>{"Q4_0", "Q8_0", "Q4_K", "Q6_K"}));
  float value = 0.0f;
  std::byte block{};
  EXPECT_THROW(quantize_row(block_type("Q2_K"), &value, 0, &block), InternalError);
}

class GgmlQuantizeReference : public testing::TestWithParam<const char*> {};

TEST_P(GgmlQuantizeReference, MakesTheSameBytes) {
  const Checkpoint& reference = test::ggml_reference();
  const BlockType& type = block_type(GetParam());
  const StoredTensor& numbers = *reference.find("numbers");
  const auto expected = reference.bytes(*reference.find(std::string(GetParam()) + ".numbers"));
  std::vector<float> values(static_cast<std::size_t>(numbers.elements()));
  std::memcpy(values.data(), reference.bytes(numbers).data(), values.size() * sizeof(float));
  const auto found = quantized(type, values);
  ASSERT_EQ(found.size(), expected.size());
  const auto bytes = static_cast<std::size_t>(type.bytes);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i], expected[i]) << "row " << i / bytes << ", byte " << i % bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GgmlQuantizeReference, testing::Values("Q4_0", "Q8_0"),
                         [](const auto& name) { return std::string(name.param); });

/// `count` blocks that `fill` makes of random numbers come back as they are.
template <class Block>
void expect_round_trip(const char* name, const std::function<void(Block&, std::mt19937&)>& fill) {
  const BlockType& type = block_type(name);
  std::mt19937 random(17);
  for (int round = 0; round < 50; ++round) {
    Block block{};
    fill(block, random);
    std::vector<std::byte> bytes(sizeof block);
    std::memcpy(bytes.data(), &block, sizeof block);
    const auto values = dequantized(type, bytes);
    const auto found = stored(type, values);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(found[i], values[i]) << "value " << i;
  }
}

constexpr ggml::Half one_64th = 0x2400;

TEST(GgmlQuantizeRoundTrip, KeepsBlocksThatUseAllCodes) {
  expect_round_trip<ggml::Q8_0>("Q8_0", [](ggml::Q8_0& block, std::mt19937& random) {
    block.d = one_64th;
    for (auto& code : block.qs) code = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
    block.qs[random() % 32] = 127;
  });
  expect_round_trip<ggml::Q4_0>("Q4_0", [](ggml::Q4_0& block, std::mt19937& random) {
    block.d = one_64th;
    for (auto& codes : block.qs) codes = static_cast<ggml::Byte>(random());
    block.qs[random() % 16] &= 0x0f;  // code 0 is the extreme, -8
  });
}

TEST(GgmlQuantizeRoundTrip, KeepsGroupsThatSpanTheirCodes) {
  expect_round_trip<ggml::Q4_K>("Q4_K", [](ggml::Q4_K& block, std::mt19937& random) {
    block.d = block.dmin = one_64th;
    // The first group has the largest scale and minimum.
    for (int group = 0; group < 8; ++group) {
      const auto draw = [&] { return group == 0 ? 63 : 1 + static_cast<int>(random() % 63); };
      const int scale = draw();
      ggml::pack_scale_min({scale, draw()}, group, block.scales);
    }
    for (auto& codes : block.qs) codes = static_cast<ggml::Byte>(random());
    for (int group = 0; group < 4; ++group) block.qs[group * 32 + 3] = 0x00, block.qs[group * 32 + 9] = 0xff;
  });
  expect_round_trip<ggml::Q6_K>("Q6_K", [](ggml::Q6_K& block, std::mt19937& random) {
    block.d = one_64th;
    for (auto& bits : block.ql) bits = static_cast<ggml::Byte>(random());
    for (auto& bits : block.qh) bits = static_cast<ggml::Byte>(random());
    for (auto& scale : block.scales) scale = static_cast<std::int8_t>(1 + random() % 127);
    block.scales[5] = -128;
    // Code 0 is the extreme of each group of 16, -32.
    for (int i = 0; i < 128; i += 16) block.ql[i] = 0;
    for (int i = 0; i < 64; i += 16) block.qh[i] = 0;
  });
}

}  // namespace
}  // namespace sluice
