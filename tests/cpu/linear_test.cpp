#include <memory>
#include <tuple>

#include "cpu/row_fixture.h"
#include "cpu/weight_source.h"

namespace sluice {
namespace {

std::vector<std::string> machines() {
  std::vector<std::string> sets = instruction_sets();
  try {
    make_cpu_backend({1, Compute::f32, "avx512-bf16"});
    sets.push_back("avx512-bf16");
  } catch (const DeviceError&) {
  }
  return sets;
}

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
  std::vector<double> expected(const Tensor& x, const std::vector<float>& w, std::int64_t out) const {
    const std::int64_t in = x.size(1);
    std::vector<double> sums;
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      for (std::int64_t o = 0; o < out; ++o) {
        double sum = 0.0;
        for (std::int64_t i = 0; i < in; ++i) {
          const float value = x.row<float>(row)[i];
          sum += double{rounds_inputs() ? bf16_to_float(float_to_bf16(value)) : value} *
                 w[static_cast<std::size_t>(o * in + i)];
        }
        sums.push_back(sum);
      }
    }
    return sums;
  }

  WeightSource weights_;
  Source source_;
};

TEST_P(Linear, IsTheProductForAllShapes) {
  const auto ops = backend();
  for (const std::int64_t in : {1, 2, 63, 64, 160, 600}) {
    for (const std::int64_t out : {1, 15, 16, 17, 320}) {
      const SourceMatrix matrix = weights_.matrix(dtype(), out, in);
      const WeightPtr weight = ops->placer().place({&matrix, 1});
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 100}) {
        const Scope scope(*ops);
        const Tensor x = source_.normal({rows, in});
        SCOPED_TRACE(fmt::format("{} rows of {} to {}", rows, in, out));
        const Tensor y = ops->linear(x, *weight);
        ASSERT_EQ(y.shape(), (Shape{rows, out}));
        expect_close(y, expected(x, weights_.values(matrix), out), 2e-6);
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
  expect_close(ops->linear(x, *weight), expected(x, weights_.values(matrix), 40), 2e-6);
}

TEST_P(Linear, OfNoRowsIsEmpty) {
  const auto ops = backend();
  const SourceMatrix matrix = weights_.matrix(dtype(), 40, 70);
  const WeightPtr weight = ops->placer().place({&matrix, 1});
  EXPECT_EQ(ops->linear(source_.normal({1, 70}).slice(0, 0, 0), *weight).shape(), (Shape{0, 40}));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Linear,
                         testing::Combine(testing::ValuesIn(machines()),
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
