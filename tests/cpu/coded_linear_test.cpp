// Products with quantized matrices, from their stored form, against the numbers that they stand for.
#include <algorithm>
#include <tuple>

#include "cpu/row_fixture.h"
#include "cpu/weight_source.h"
#include "support/quantized_matrices.h"

namespace sluice {
namespace {

using test::MemoryCheckpoint;
using test::QuantizedForm;

class CodedLinear : public testing::TestWithParam<std::tuple<std::string, std::size_t>> {
 protected:
  const QuantizedForm form_ = test::quantized_forms()[std::get<1>(GetParam())];
  test::RandomTensors random_{5};
  Source source_;

  std::unique_ptr<Ops> backend(int threads = 2, Compute compute = Compute::f32) const {
    return make_cpu_backend({threads, compute, std::get<0>(GetParam())});
  }
  SourceMatrix make(MemoryCheckpoint& checkpoint, std::int64_t out, std::int64_t in) {
    form_.write(checkpoint, random_, out, in);
    SourceMatrix matrix = checkpoint.matrix("m", out, in);
    EXPECT_NE(matrix.format, nullptr);
    EXPECT_EQ(matrix.format == nullptr ? "" : matrix.format->name, form_.format);
    return matrix;
  }
  static std::vector<float> numbers_of(const SourceMatrix& matrix) {
    std::vector<float> values(static_cast<std::size_t>(matrix.out * matrix.in));
    matrix.dequantize(0, matrix.out, values.data());
    return values;
  }
  /// The largest error of a result, in units of the sum of its terms' magnitudes.
  static double worst_error(const Tensor& x, const std::vector<float>& w, const Tensor& y) {
    const std::int64_t in = x.size(1), out = y.size(1);
    double worst = 0.0;
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      for (std::int64_t o = 0; o < out; ++o) {
        double value = 0.0, magnitude = 1e-30;
        for (std::int64_t i = 0; i < in; ++i) {
          const double term = double{x.row<float>(row)[i]} * w[static_cast<std::size_t>(o * in + i)];
          value += term;
          magnitude += std::abs(term);
        }
        const double error = std::abs(y.row<float>(row)[o] - value) / magnitude;
        worst = std::isfinite(error) ? std::max(worst, error) : INFINITY;
      }
    }
    return worst;
  }
  std::int64_t rounded(std::int64_t n, std::int64_t step) const { return (n + step - 1) / step * step; }
};

TEST_P(CodedLinear, KeepsEveryNumber) {
  const auto ops = backend();
  for (const std::int64_t out : {8, 16, 40}) {
    for (const std::int64_t in : {1, 70, 256, 300}) {
      MemoryCheckpoint checkpoint;
      const SourceMatrix matrix = make(checkpoint, rounded(out, form_.out_step), rounded(in, form_.in_step));
      const WeightPtr weight = ops->placer().place({&matrix, 1});
      std::vector<std::int32_t> ids(static_cast<std::size_t>(matrix.out));
      std::iota(ids.begin(), ids.end(), 0);
      const Tensor rows = ops->embed(*weight, source_.integers(ids));
      const std::vector<float> found(rows.as<float>(), rows.as<float>() + rows.elements());
      ASSERT_EQ(found, numbers_of(matrix)) << matrix.out << " " << matrix.in;
    }
  }
}

TEST_P(CodedLinear, IsTheProductOfTheNumbers) {
  const auto ops = backend();
  for (const std::int64_t out : {8, 16, 40, 328}) {
    for (const std::int64_t in : {1, 70, 256, 300, 1000}) {
      MemoryCheckpoint checkpoint;
      const SourceMatrix matrix = make(checkpoint, rounded(out, form_.out_step), rounded(in, form_.in_step));
      const WeightPtr weight = ops->placer().place({&matrix, 1});
      const Tensor x = source_.normal({33, matrix.in});
      const std::vector<float> numbers = numbers_of(matrix);
      for (const std::int64_t rows : {1, 2, 7, 33}) {
        const Scope scope(*ops);
        const Tensor some = x.slice(0, 0, rows);
        EXPECT_LT(worst_error(some, numbers, ops->linear(some, *weight)), 2e-6) << rows << " " << out << " " << in;
      }
    }
  }
}

TEST_P(CodedLinear, GivesARowTheSameBitsWhateverIsBesideIt) {
  const auto ops = backend(2, Compute::bf16), alone = backend(1, Compute::bf16);
  MemoryCheckpoint checkpoint;
  const SourceMatrix matrix = make(checkpoint, rounded(100, form_.out_step), rounded(1111, form_.in_step));
  const WeightPtr weight = ops->placer().place({&matrix, 1});
  const Tensor x = source_.normal({70, matrix.in});
  const Tensor all = ops->linear(x, *weight);
  for (const std::int64_t rows : {1, 3, 8, 33})
    expect_same_rows(ops->linear(x.slice(0, 5, rows), *weight), 0, rows, all, 5);
  expect_same_rows(alone->linear(x, *weight), 0, 70, all, 0);
  EXPECT_LT(worst_error(x, numbers_of(matrix), all), 0.01) << "bf16";
}

TEST_P(CodedLinear, TakesLittleMoreMemoryThanIsStored) {
  const auto ops = backend();
  MemoryCheckpoint checkpoint;
  const SourceMatrix matrix = make(checkpoint, 512, rounded(1024, form_.in_step));
  std::uint64_t stored = 0;
  for (const StoredPart& part : matrix.parts) stored += part.tensor->byte_size();
  const WeightPtr weight = ops->placer().place({&matrix, 1});
  if (form_.name == "int8_odd_groups") {
    EXPECT_EQ(weight->layout(), "f32 panels");
  } else {
    EXPECT_LE(weight->bytes(), stored + stored / 20);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, CodedLinear,
                         testing::Combine(testing::ValuesIn(all_instruction_sets()),
                                          testing::Range<std::size_t>(0, test::quantized_forms().size())),
                         [](const auto& parameter) {
                           std::string name = std::get<0>(parameter.param) + "_" +
                                              test::quantized_forms()[std::get<1>(parameter.param)].name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace sluice
