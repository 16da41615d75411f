#include <memory>
#include <tuple>

#include "cpu/row_fixture.h"
#include "cpu/weight_source.h"

namespace sluice {
namespace {

using Case = std::tuple<std::string, DType, Compute>;

class Linear : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Ops> backend(int threads = 2) const {
    return make_cpu_backend({threads, std::get<Compute>(GetParam()), std::get<std::string>(GetParam())});
  }
  DType dtype() const { return std::get<DType>(GetParam()); }
  /// Whether inputs are rounded to bf16 before they are multiplied.
  bool rounds_inputs() const {
    return std::get<Compute>(GetParam()) == Compute::bf16 && std::get<std::string>(GetParam()) == "avx512-bf16" &&
           dtype() == DType::bf16;
  }
  /// Sums of products, and of their magnitudes.
  struct Sums {
    std::vector<double> values, magnitudes;
  };
  Sums expected(const Tensor& x, const std::vector<float>& w, std::int64_t out) const {
    const std::int64_t in = x.size(1);
    Sums sums;
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      for (std::int64_t o = 0; o < out; ++o) {
        double value = 0.0, magnitude = 0.0;
        for (std::int64_t i = 0; i < in; ++i) {
          const float input = x.row<float>(row)[i];
          const double product = double{rounds_inputs() ? bf16_to_float(float_to_bf16(input)) : input} *
                                 w[static_cast<std::size_t>(o * in + i)];
          value += product;
          magnitude += std::abs(product);
        }
        sums.values.push_back(value);
        sums.magnitudes.push_back(magnitude);
      }
    }
    return sums;
  }
  /// The first rows of the sums, each within what float32 rounding of its terms explains.
  static void expect_sums(const Tensor& y, const Sums& sums) {
    const std::vector<double> values = values_of(y);
    double worst = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = std::abs(values[i] - sums.values[i]) / sums.magnitudes[i];
      worst = std::isfinite(error) ? std::max(worst, error) : INFINITY;
    }
    EXPECT_LT(worst, 1e-6);
  }

  WeightSource weights_;
  Source source_;
};

TEST_P(Linear, IsTheProductForAllShapes) {
  const auto ops = backend();
  for (const std::int64_t in : {1, 2, 63, 64, 160}) {
    for (const std::int64_t out : {1, 15, 16, 17, 320}) {
      const SourceMatrix matrix = weights_.matrix(dtype(), out, in);
      const WeightPtr weight = ops->placer().place({&matrix, 1});
      const Tensor x = source_.normal({100, in});
      const Sums sums = expected(x, weights_.values(matrix), out);
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 100}) {
        SCOPED_TRACE(fmt::format("{} rows of {} to {}", rows, in, out));
        const Scope scope(*ops);
        const Tensor y = ops->linear(x.slice(0, 0, rows), *weight);
        ASSERT_EQ(y.shape(), (Shape{rows, out}));
        expect_sums(y, sums);
      }
    }
  }
}

TEST_P(Linear, GivesARowTheSameBitsWhateverIsBesideIt) {
  const auto ops = backend(), alone = backend(1);
  const SourceMatrix matrix = weights_.matrix(dtype(), 333, 1111);
  const WeightPtr weight = ops->placer().place({&matrix, 1});
  const Tensor x = source_.normal({100, 1111});
  const Tensor all = ops->linear(x, *weight);
  for (const std::int64_t rows : {1, 2, 3, 7, 8, 9, 31, 65}) {
    for (const std::int64_t first : {0, 5, 35}) {
      expect_same_rows(ops->linear(x.slice(0, first, rows), *weight), 0, rows, all, first);
    }
  }
  expect_same_rows(alone->linear(x, *weight), 0, 100, all, 0);
}

TEST_P(Linear, TakesRowsOutOfWiderRows) {
  const auto ops = backend();
  const SourceMatrix matrix = weights_.matrix(dtype(), 40, 70);
  const WeightPtr weight = ops->placer().place({&matrix, 1});
  const Tensor x = source_.strided(11, 70);
  expect_sums(ops->linear(x, *weight), expected(x, weights_.values(matrix), 40));
}

TEST_P(Linear, GoesOnFromBlockToBlockOfLongRows) {
  const auto ops = backend();
  const SourceMatrix matrix = weights_.matrix(dtype(), 50, 13001);
  const WeightPtr weight = ops->placer().place({&matrix, 1});
  const Tensor x = source_.normal({20, 13001});
  expect_sums(ops->linear(x, *weight), expected(x, weights_.values(matrix), 50));
}

TEST_P(Linear, OfNoRowsIsEmpty) {
  const auto ops = backend();
  const SourceMatrix matrix = weights_.matrix(dtype(), 40, 70);
  const WeightPtr weight = ops->placer().place({&matrix, 1});
  EXPECT_EQ(ops->linear(source_.normal({1, 70}).slice(0, 0, 0), *weight).shape(), (Shape{0, 40}));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Linear,
                         testing::Combine(testing::ValuesIn(all_instruction_sets()),
                                          testing::Values(DType::bf16, DType::f16, DType::f32),
                                          testing::Values(Compute::f32, Compute::bf16)),
                         [](const testing::TestParamInfo<Case>& parameter) {
                           std::string name =
                               fmt::format("{}_{}_{}", std::get<std::string>(parameter.param),
                                           name_of(std::get<DType>(parameter.param)),
                                           std::get<Compute>(parameter.param) == Compute::f32 ? "f32" : "bf16");
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(CpuBackend, RefusesAnUnknownInstructionSet) {
  EXPECT_THROW(make_cpu_backend({1, Compute::f32, "avx1024"}), DeviceError);
}

}  // namespace
}  // namespace sluice
