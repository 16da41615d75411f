#include "tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/arena.h"
#include "tensor/buffer.h"

namespace sluice {
namespace {

TEST(DType, RoundsToBf16AsTheHardwareDoes) {
  EXPECT_EQ(float_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie goes to even
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);  // overflows to infinity
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(DType, TurnsEveryF16IntoAFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const float value = f16_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_f16(value), bits) << value;
  }
  EXPECT_EQ(f16_to_float(0x3555), 0.333251953125f);
  EXPECT_EQ(f16_to_float(0x0001), 5.9604644775390625e-8f);
}

TEST(DType, RoundsToTheNearestF16) {
  EXPECT_EQ(float_to_f16(1.0f + 0x1p-11f), 0x3c00);  // a tie goes to even
  EXPECT_EQ(float_to_f16(1.0f + 0x1.8p-11f), 0x3c01);
  EXPECT_EQ(float_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(float_to_f16(0x1.8p-25f), 0x0001);
}

TEST(Tensor, SlicesWithoutCopying) {
  std::vector<float> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor tensor(values.data(), DType::f32, {4, 6});
  const Tensor part = tensor.slice(1, 2, 4).split_columns(2, 2).slice(2, 1, 1);
  EXPECT_EQ(part.shape(), (Shape{4, 2, 1}));
  EXPECT_EQ(part.row<float>(3)[part.stride(1)], values[3 * 6 + 2 + 2 + 1]);
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_THROW(tensor.slice(1, 3, 4), InternalError);
  EXPECT_THROW(tensor.as<std::uint16_t>(), InternalError);
  EXPECT_THROW(tensor.slice(1, 0, 3).reshaped({12}), InternalError);
}

TEST(Buffer, IsZeroedAlignedAndBounded) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{9} << 20}) {
    const Buffer buffer = host_buffer(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    const auto* data = static_cast<const unsigned char*>(buffer.data());
    EXPECT_TRUE(std::all_of(data, data + bytes, [](unsigned char byte) { return byte == 0; }));
    EXPECT_THROW(buffer.view(4, DType::u8, {static_cast<std::int64_t>(bytes)}), InternalError);
  }
}

TEST(Arena, RepeatsItsAddressesStepAfterStep) {
  Arena arena;
  std::vector<void*> first;
  for (int step = 0; step < 3; ++step) {
    const Arena::Mark mark = arena.mark();
    std::vector<void*> addresses;
    for (const std::size_t bytes : {100u, 3000000u, 64u, 5000000u}) {
      addresses.push_back(arena.allocate(bytes));
      std::memset(addresses.back(), step, bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(addresses.back()) % 64, 0u);
    }
    if (step == 0) first = addresses;
    EXPECT_EQ(addresses, first);
    arena.release(mark);
  }
}

}  // namespace
}  // namespace sluice
