#include "cpu/reference.h"
#include "cpu/row_fixture.h"

namespace sluice {
namespace {

class RmsNorm : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(RmsNorm);

TEST_P(RmsNorm, divides_strided_rows_by_their_root_mean_square) {
  const auto ops = backend();
  for (const std::int64_t n : {1, 5, 16, 64, 100, 1024}) {
    Source source;
    const Tensor x = source.strided(7, n);
    const Tensor weight = source.normal({n});
    std::vector<double> expected;
    for (std::int64_t row = 0; row < 7; ++row) {
      const auto out = reference::rms_norm(reference::row_of(x.row<float>(row), n), weight.as<float>(), 1e-6);
      expected.insert(expected.end(), out.begin(), out.end());
    }
    expect_close(ops->rms_norm(x, weight, 1e-6f), expected);
  }
}

TEST_P(RmsNorm, takes_each_head_by_itself) {
  const auto ops = backend();
  Source source;
  const Tensor x = source.strided(40, 3 * 128).split_columns(3, 128);
  const Tensor weight = source.normal({128});
  std::vector<double> expected;
  for (std::int64_t row = 0; row < 40; ++row) {
    for (std::int64_t head = 0; head < 3; ++head) {
      const auto in = reference::row_of(x.row<float>(row) + head * 128, 128);
      const auto out = reference::rms_norm(in, weight.as<float>(), 1e-3);
      expected.insert(expected.end(), out.begin(), out.end());
    }
  }
  const Tensor result = ops->rms_norm(x, weight, 1e-3f);
  EXPECT_EQ(result.shape(), (Shape{40, 3, 128}));
  expect_close(result, expected);
}

TEST_P(RmsNorm, fused_with_an_addition_equals_its_definition) {
  const auto ops = backend();
  Source source;
  for (const std::int64_t rows : {1, 90}) {
    const Tensor residual = source.normal({rows, 320});
    const Tensor same_residual = source.copy(residual);
    const Tensor x = source.strided(rows, 320);
    const Tensor weight = source.normal({320});
    const Tensor fused = ops->add_rms_norm(residual, x, weight, 1e-6f);
    const Tensor defined = ops->Ops::add_rms_norm(same_residual, x, weight, 1e-6f);
    expect_same_rows(fused, 0, rows, defined, 0);
    expect_same_rows(residual, 0, rows, same_residual, 0);
  }
}

class GatedRmsNorm : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(GatedRmsNorm);

TEST_P(GatedRmsNorm, multiplies_the_norm_by_the_activated_gate) {
  const auto ops = backend();
  Source source;
  const std::int64_t rows = 33, heads = 4, n = 128;
  const Tensor x = source.normal({rows, heads, n}, 3.0f);
  const Tensor gate = source.strided(rows, heads * n).split_columns(heads, n);
  const Tensor weight = source.normal({n});
  for (const GateActivation activation : {GateActivation::swish, GateActivation::sigmoid}) {
    std::vector<double> expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        auto out = reference::rms_norm(reference::row_of(x.row<float>(row) + head * n, n), weight.as<float>(), 1e-6);
        const float* gates = gate.row<float>(row) + head * n;
        for (std::int64_t i = 0; i < n; ++i) {
          const double g = static_cast<double>(gates[i]);
          out[static_cast<std::size_t>(i)] *=
              activation == GateActivation::swish ? reference::silu(g) : reference::sigmoid(g);
        }
        expected.insert(expected.end(), out.begin(), out.end());
      }
    }
    const Tensor result = ops->gated_rms_norm(x, gate, weight, 1e-6f, activation);
    EXPECT_EQ(result.shape(), (Shape{rows, heads * n}));
    expect_close(result, expected);
  }
}

}  // namespace
}  // namespace sluice
