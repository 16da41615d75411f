#include <algorithm>
#include <random>

#include "cpu/weight_source.h"

namespace sluice {
namespace {

struct ExpertSizes {
  std::int64_t experts = 7, choices = 3, hidden = 40, inner = 24;
};

class Experts : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Ops> backend(int threads = 2) const { return make_cpu_backend({threads, Compute::f32, GetParam()}); }

  /// Matrices of all experts, and their numbers.
  struct Matrices {
    std::vector<std::vector<SourceMatrix>> parts;
    std::vector<std::vector<float>> values;
  };
  Matrices matrices(std::int64_t experts, std::int64_t out, std::int64_t in) {
    Matrices all;
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      all.parts.push_back({weights_.matrix(DType::bf16, out, in)});
      all.values.push_back(weights_.values(all.parts.back()));
    }
    return all;
  }
  /// Each row to different experts at random, never to the last of them.
  Routing random_routing(std::int64_t rows, const ExpertSizes& sizes) {
    std::vector<std::int32_t> chosen;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::vector<std::int32_t> order = source_.shuffled(static_cast<std::int32_t>(sizes.experts - 1));
      chosen.insert(chosen.end(), order.begin(), order.begin() + sizes.choices);
    }
    return {source_.integers(chosen, {rows, sizes.choices}), source_.uniform({rows, sizes.choices}, 0.1f, 1.0f)};
  }
  static double product(const std::vector<float>& w, std::int64_t row, const std::vector<double>& x) {
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += w[static_cast<std::size_t>(row) * x.size() + i] * x[i];
    return sum;
  }
  static std::vector<double> expected(const Tensor& x, const Routing& routing, const Matrices& gate_up,
                                      const Matrices& down, const ExpertSizes& sizes) {
    std::vector<double> sums;
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      const std::vector<double> input(x.row<float>(row), x.row<float>(row) + sizes.hidden);
      std::vector<double> sum(static_cast<std::size_t>(sizes.hidden));
      for (std::int64_t choice = 0; choice < sizes.choices; ++choice) {
        const auto expert = static_cast<std::size_t>(routing.experts.row<std::int32_t>(row)[choice]);
        std::vector<double> hidden;
        for (std::int64_t i = 0; i < sizes.inner; ++i) {
          const double gate = product(gate_up.values[expert], i, input);
          hidden.push_back(gate / (1.0 + std::exp(-gate)) * product(gate_up.values[expert], sizes.inner + i, input));
        }
        for (std::int64_t i = 0; i < sizes.hidden; ++i) {
          sum[static_cast<std::size_t>(i)] +=
              double{routing.weights.row<float>(row)[choice]} * product(down.values[expert], i, hidden);
        }
      }
      sums.insert(sums.end(), sum.begin(), sum.end());
    }
    return sums;
  }

  WeightSource weights_;
  Source source_;
};

TEST_P(Experts, AreTheWeightedSumOfTheChosenOnes) {
  const ExpertSizes sizes;
  const auto ops = backend();
  const Matrices gate_up = matrices(sizes.experts, 2 * sizes.inner, sizes.hidden);
  const Matrices down = matrices(sizes.experts, sizes.hidden, sizes.inner);
  const auto first = ops->placer().place_experts(gate_up.parts), second = ops->placer().place_experts(down.parts);
  for (const std::int64_t rows : {1, 2, 9, 70}) {
    SCOPED_TRACE(rows);
    const Tensor x = source_.strided(rows, sizes.hidden);
    const Routing routing = random_routing(rows, sizes);
    expect_close(ops->experts(x, routing, *first, *second), expected(x, routing, gate_up, down, sizes), 2e-6);
  }
}

TEST_P(Experts, GiveARowTheSameBitsWhateverIsBesideIt) {
  const ExpertSizes sizes;
  const auto ops = backend(), alone = backend(1);
  const Matrices gate_up = matrices(sizes.experts, 2 * sizes.inner, sizes.hidden);
  const Matrices down = matrices(sizes.experts, sizes.hidden, sizes.inner);
  const auto first = ops->placer().place_experts(gate_up.parts), second = ops->placer().place_experts(down.parts);
  const std::int64_t rows = 1500;  // more than are worked on at a time
  const Tensor x = source_.normal({rows, sizes.hidden});
  const Routing routing = random_routing(rows, sizes);
  const Tensor all = ops->experts(x, routing, *first, *second);
  const auto some = [&](Ops& device, std::int64_t begin, std::int64_t count) {
    const Routing part{routing.experts.slice(0, begin, count), routing.weights.slice(0, begin, count)};
    return device.experts(x.slice(0, begin, count), part, *first, *second);
  };
  for (const std::int64_t count : {1, 2, 10, 100}) {
    for (const std::int64_t begin : {0, 3, 1000, 1400})
      expect_same_rows(some(*ops, begin, count), 0, count, all, begin);
  }
  expect_same_rows(some(*alone, 0, rows), 0, rows, all, 0);
}

TEST_P(Experts, OutsideTheTableAreABug) {
  const ExpertSizes sizes;
  const auto ops = backend();
  const auto first = ops->placer().place_experts(matrices(sizes.experts, 2 * sizes.inner, sizes.hidden).parts);
  const auto second = ops->placer().place_experts(matrices(sizes.experts, sizes.hidden, sizes.inner).parts);
  const Routing routing{source_.integers({0, 7, 1}, {1, 3}), source_.filled({1, 3}, 0.3f)};
  EXPECT_THROW(ops->experts(source_.normal({1, sizes.hidden}), routing, *first, *second), InternalError);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Experts, testing::ValuesIn(all_instruction_sets()),
                         [](const testing::TestParamInfo<std::string>& parameter) {
                           return parameter.param == "avx512-bf16" ? "avx512_bf16" : parameter.param;
                         });

}  // namespace
}  // namespace sluice
