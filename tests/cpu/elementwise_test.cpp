#include "cpu/reference.h"
#include "cpu/row_fixture.h"

namespace sluice {
namespace {

class Elementwise : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(Elementwise);

// Odd widths leave a part of a vector over; 600 rows are work for several threads.
const std::vector<std::pair<std::int64_t, std::int64_t>> shapes{{1, 1}, {3, 7}, {2, 64}, {5, 100}, {600, 130}};

TEST_P(Elementwise, add_to_adds_strided_rows_in_place) {
  const auto ops = backend();
  for (const auto& [rows, n] : shapes) {
    Source source;
    const Tensor wide = source.normal({rows, n + 5});
    const Tensor residual = wide.slice(1, 2, n);
    const Tensor x = source.strided(rows, n);
    auto expected = values_of(wide);
    const auto added = values_of(x);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < n; ++i) {
        expected[static_cast<std::size_t>(row * (n + 5) + 2 + i)] += added[static_cast<std::size_t>(row * n + i)];
      }
    }
    ops->add_to(residual, x);
    expect_close(wide, expected);  // what lies beside the slice included
  }
}

TEST_P(Elementwise, add_bias_adds_one_row_to_all) {
  const auto ops = backend();
  for (const auto& [rows, n] : shapes) {
    Source source;
    const Tensor x = source.strided(rows, n);
    const Tensor bias = source.normal({n});
    auto expected = values_of(x);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] += static_cast<double>(bias.as<float>()[i % static_cast<std::size_t>(n)]);
    }
    ops->add_bias(x, bias);
    expect_close(x, expected);
  }
}

TEST_P(Elementwise, silu_mul_takes_gates_from_the_first_half) {
  const auto ops = backend();
  for (const auto& [rows, n] : shapes) {
    Source source;
    const Tensor gate_up = source.strided(rows, 2 * n);
    const auto in = values_of(gate_up);
    std::vector<double> expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(row * 2 * n + i);
        expected.push_back(reference::silu(in[at]) * in[at + static_cast<std::size_t>(n)]);
      }
    }
    expect_close(ops->silu_mul(gate_up), expected);
  }
}

TEST_P(Elementwise, silu_mul_of_far_values_neither_overflows_nor_hides_a_nan) {
  const auto ops = backend();
  Source source;
  const Tensor gate_up = source.filled({1, 10}, 1.0f);
  const float gates[] = {1000.0f, -1000.0f, 88.0f, -104.0f, NAN};
  std::copy(std::begin(gates), std::end(gates), gate_up.as<float>());
  const Tensor result = ops->silu_mul(gate_up);
  const float* out = result.as<float>();
  EXPECT_EQ(out[0], 1000.0f);
  EXPECT_NEAR(out[1], 0.0f, 1e-30f);
  EXPECT_EQ(out[2], 88.0f);
  EXPECT_NEAR(out[3], 0.0f, 1e-30f);
  EXPECT_TRUE(std::isnan(out[4]));
}

TEST_P(Elementwise, sigmoid_mul_gates_each_head_in_place) {
  const auto ops = backend();
  Source source;
  const std::int64_t rows = 50, heads = 3, n = 72;
  const Tensor x = source.normal({rows, heads, n});
  // The second half of each head of a wider projection, as gates of queries lie.
  const Tensor gate = source.strided(rows, heads * 2 * n).split_columns(heads, 2 * n).slice(2, n, n);
  auto expected = values_of(x);
  const auto gates = values_of(gate);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= reference::sigmoid(gates[i]);
  ops->sigmoid_mul(x, gate);
  expect_close(x, expected);
}

TEST_P(Elementwise, add_gated_scales_each_row_by_its_gate) {
  const auto ops = backend();
  for (const auto& [rows, n] : shapes) {
    Source source;
    const Tensor sum = source.normal({rows, n});
    const Tensor x = source.normal({rows, n});
    const Tensor gate = source.strided(rows, 1);
    auto expected = values_of(sum);
    const auto added = values_of(x), gates = values_of(gate);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] += reference::sigmoid(gates[i / static_cast<std::size_t>(n)]) * added[i];
    }
    ops->add_gated(sum, x, gate);
    expect_close(sum, expected);
  }
}

TEST_P(Elementwise, gather_rows_copies_rows_in_the_order_asked_for) {
  const auto ops = backend();
  Source source;
  const Tensor x = source.strided(6, 33);
  const Tensor result = ops->gather_rows(x, source.integers({5, 0, 5, 2}));
  ASSERT_EQ(result.shape(), (Shape{4, 33}));
  const std::vector<std::int64_t> from{5, 0, 5, 2};
  for (std::size_t i = 0; i < from.size(); ++i) expect_same_rows(result, static_cast<std::int64_t>(i), 1, x, from[i]);
  EXPECT_THROW(ops->gather_rows(x, source.integers({6})), InternalError);
  EXPECT_THROW(ops->gather_rows(x, source.integers({-1})), InternalError);
}

TEST_P(Elementwise, concat_columns_puts_the_second_to_the_right_of_the_first) {
  const auto ops = backend();
  Source source;
  const Tensor a = source.strided(4, 5), b = source.strided(4, 9);
  const Tensor result = ops->concat_columns(a, b);
  ASSERT_EQ(result.shape(), (Shape{4, 14}));
  EXPECT_EQ(values_of(result.slice(1, 0, 5)), values_of(a));
  EXPECT_EQ(values_of(result.slice(1, 5, 9)), values_of(b));
}

class DeltaGates : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(DeltaGates);

TEST_P(DeltaGates, beta_is_a_sigmoid_and_g_a_scaled_softplus) {
  const auto ops = backend();
  Source source;
  const std::int64_t rows = 300, heads = 5;
  const Tensor ba = source.strided(rows, 2 * heads);
  ba.row<float>(0)[heads] = 200.0f;      // e^x overflows float32
  ba.row<float>(0)[heads + 1] = -30.0f;  // 1 + e^x is 1 in float32
  const Tensor decay = source.uniform({heads}, -16.0f, -0.1f);
  const Tensor bias = source.normal({heads});
  std::vector<double> g, beta;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const float* in = ba.row<float>(row);
      beta.push_back(reference::sigmoid(static_cast<double>(in[h])));
      const double a = static_cast<double>(in[heads + h]) + static_cast<double>(bias.as<float>()[h]);
      g.push_back(static_cast<double>(decay.as<float>()[h]) * std::log1p(std::exp(a)));
    }
  }
  const auto [g_found, beta_found] = ops->delta_gates(ba, decay, bias);
  expect_close(beta_found, beta);
  const auto found = values_of(g_found);
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(found[i] / g[i], 1.0, 1e-5) << i;
}

class Route : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(Route);

TEST_P(Route, the_best_experts_share_a_weight_of_one_by_their_softmax) {
  const auto ops = backend();
  Source source;
  const std::int64_t rows = 200, experts = 60, k = 8;
  const Tensor logits = source.strided(rows, experts);
  const Routing routing = ops->route(logits, k);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* in = logits.row<float>(row);
    std::vector<std::int32_t> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [in](auto a, auto b) { return in[a] > in[b]; });
    double total = 0.0;
    for (std::size_t i = 0; i < k; ++i) total += std::exp(static_cast<double>(in[order[i]]));
    for (std::size_t i = 0; i < k; ++i) {
      EXPECT_EQ(routing.experts.row<std::int32_t>(row)[i], order[i]);
      EXPECT_NEAR(routing.weights.row<float>(row)[i], std::exp(static_cast<double>(in[order[i]])) / total, 1e-6);
    }
  }
}

TEST_P(Route, of_equal_experts_the_lower_index_is_first) {
  const auto ops = backend();
  Source source;
  const Tensor logits = source.filled({1, 6}, 2.0f);
  logits.as<float>()[4] = 3.0f;
  const Routing routing = ops->route(logits, 3);
  const auto* experts = routing.experts.as<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(experts, experts + 3), (std::vector<std::int32_t>{4, 0, 1}));
}

}  // namespace
}  // namespace sluice
