#include "cpu/row_fixture.h"

namespace sluice {
namespace {

class Rotary : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(Rotary);

/// The angle as the published implementation computes it, a product in float32.
double angle(const BatchView& batch, const Rope& rope, std::int64_t row, std::int64_t frequency) {
  const std::int32_t axis = rope.axes.as<std::int32_t>()[frequency];
  const auto position = static_cast<float>(batch.positions.row<std::int32_t>(axis)[row]);
  return static_cast<double>(position * rope.inverse_frequencies.as<float>()[frequency]);
}

Rope make_rope(Source& source, std::int64_t frequencies) {
  Rope rope{source.filled({frequencies}, 0.0f), {}, 1.25f};
  std::vector<std::int32_t> axes;
  for (std::int64_t i = 0; i < frequencies; ++i) {
    rope.inverse_frequencies.as<float>()[i] = std::pow(1e7f, -static_cast<float>(i) / static_cast<float>(frequencies));
    axes.push_back(static_cast<std::int32_t>(i % 3));
  }
  rope.axes = source.integers(axes);
  return rope;
}

TEST_P(Rotary, turns_pairs_half_a_rotary_part_apart_by_the_position_of_their_axis) {
  const auto ops = backend();
  Source source;
  for (const std::int64_t frequencies : {5, 32}) {
    const std::int64_t rows = 20, heads = 3, n = 80;
    const Places places(source, 1, 32);
    const BatchView batch = make_batch(source, places, {{3, static_cast<std::int32_t>(rows)}});
    for (std::int64_t row = 0; row < rows; ++row) {  // the axes differ, and far positions occur
      batch.positions.row<std::int32_t>(1)[row] = static_cast<std::int32_t>(1000000 - row);
      batch.positions.row<std::int32_t>(2)[row] = static_cast<std::int32_t>(7 * row);
    }
    const Rope rope = make_rope(source, frequencies);
    const Tensor x = source.strided(rows, heads * n).split_columns(heads, n);
    auto expected = values_of(x);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        double* values = expected.data() + (row * heads + head) * n;
        for (std::int64_t i = 0; i < frequencies; ++i) {
          const double turn = angle(batch, rope, row, i);
          const double a = values[i], b = values[i + frequencies];
          values[i] = (a * std::cos(turn) - b * std::sin(turn)) * 1.25;
          values[i + frequencies] = (b * std::cos(turn) + a * std::sin(turn)) * 1.25;
        }
      }
    }
    ops->rope(x, batch, rope);
    expect_close(x, expected);
  }
}

TEST_P(Rotary, preparing_attention_at_once_equals_its_definition) {
  const auto ops = backend();
  Source source;
  for (const std::int32_t rows : {1, 70}) {
    const std::int64_t heads = 4, kv_heads = 2, n = 64;
    const Places places(source, 1, 128);
    const BatchView batch = make_batch(source, places, {{9, rows}});
    const Rope rope = make_rope(source, 16);
    // Queries beside their gates, head by head.
    const Tensor q = source.strided(rows, heads * 2 * n).split_columns(heads, 2 * n).slice(2, 0, n);
    const Tensor k = source.strided(rows, kv_heads * n).split_columns(kv_heads, n);
    const Tensor v = source.strided(rows, kv_heads * n).split_columns(kv_heads, n);
    const Tensor q_norm = source.normal({n}), k_norm = source.normal({n});
    const KvView cache = places.cache(source, kv_heads, n), same = places.cache(source, kv_heads, n);
    const Tensor fused = ops->prepare_attention(q, k, v, q_norm, k_norm, 1e-6f, rope, cache, batch);
    const Tensor defined = ops->Ops::prepare_attention(q, k, v, q_norm, k_norm, 1e-6f, rope, same, batch);
    expect_same_rows(fused, 0, rows, defined, 0);
    const Shape flat{1, cache.keys.elements()};
    expect_same_rows(cache.keys.reshaped(flat), 0, 1, same.keys.reshaped(flat), 0);
    expect_same_rows(cache.values.reshaped(flat), 0, 1, same.values.reshaped(flat), 0);
  }
}

}  // namespace
}  // namespace sluice
