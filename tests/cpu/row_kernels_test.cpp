#include "cpu/simd/row_kernels.h"

#include "cpu/row_fixture.h"
#include "cpu/simd/instruction_set.h"

namespace sluice {
namespace {

/// Tables that this machine can run.
std::vector<const RowKernels*> tables() {
  std::vector<const RowKernels*> result;
  for (const std::string& name : instruction_sets()) {
    result.push_back(name == "plain" ? &row_kernels_plain : name == "avx2" ? &row_kernels_avx2 : &row_kernels_avx512);
  }
  return result;
}

TEST(RowKernels, exponentials_are_within_two_units_in_the_last_place) {
  std::vector<float> x, result(20000);
  for (int i = 0; i < 20000; ++i) x.push_back(-87.3f + 175.6f * static_cast<float>(i) / 20000.0f);
  for (const RowKernels* kernels : tables()) {
    kernels->exp_into(result.data(), x.data(), 20000);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto exact = static_cast<float>(std::exp(static_cast<double>(x[i])));
      EXPECT_LE(std::fabs(result[i] - exact), 2.0f * (std::nextafter(exact, INFINITY) - exact)) << x[i];
    }
  }
}

TEST(RowKernels, exponentials_of_special_values) {
  for (const RowKernels* kernels : tables()) {
    const float x[] = {0.0f, -0.0f, -INFINITY, -1000.0f, NAN, -88.0f};
    float result[6];
    kernels->exp_into(result, x, 6);
    EXPECT_EQ(result[0], 1.0f);
    EXPECT_EQ(result[1], 1.0f);
    EXPECT_EQ(result[2], 0.0f);
    EXPECT_EQ(result[3], 0.0f);
    EXPECT_TRUE(std::isnan(result[4]));
    EXPECT_EQ(result[5], 0.0f);
  }
}

TEST(RowKernels, conversions_to_bf16_and_back_are_those_of_single_values) {
  std::vector<float> x{0.0f, -0.0f, 1.0f, 1.00390625f, 1.01171875f, INFINITY, -INFINITY, NAN, 3e38f, 3.4e38f, 1e-40f};
  std::mt19937 random(3);
  while (x.size() < 1003) {
    const auto bits = static_cast<std::uint32_t>(random());
    x.push_back(std::bit_cast<float>(bits));
  }
  for (const RowKernels* kernels : tables()) {
    std::vector<std::uint16_t> narrow(x.size());
    kernels->to_bf16(narrow.data(), x.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(narrow[i], float_to_bf16(x[i])) << x[i];
    std::vector<float> wide(x.size());
    kernels->from_bf16(wide.data(), narrow.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::uint32_t{narrow[i]} << 16) << x[i];
    }
  }
}

}  // namespace
}  // namespace sluice
