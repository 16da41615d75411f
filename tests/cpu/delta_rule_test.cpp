#include "cpu/reference.h"
#include "cpu/row_fixture.h"

namespace sluice {
namespace {

class DeltaRule : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(DeltaRule);

struct Sizes {
  std::int64_t key_heads, value_heads, key_dim, value_dim;
};

/// The rows that one call takes, and the states that it starts from.
struct Inputs {
  Inputs(Source& source, const Sizes& sizes, std::int64_t rows, std::int64_t slots)
      : q(source.strided(rows, sizes.key_heads * sizes.key_dim).split_columns(sizes.key_heads, sizes.key_dim)),
        k(source.strided(rows, sizes.key_heads * sizes.key_dim).split_columns(sizes.key_heads, sizes.key_dim)),
        v(source.strided(rows, sizes.value_heads * sizes.value_dim).split_columns(sizes.value_heads, sizes.value_dim)),
        g(source.uniform({rows, sizes.value_heads}, -1.0f, 0.0f)),
        beta(source.uniform({rows, sizes.value_heads}, 0.0f, 1.0f)),
        state{{}, source.normal({slots, sizes.value_heads, sizes.key_dim * sizes.value_dim}, 0.3f)} {}

  Tensor run(Ops& ops, const BatchView& batch, std::int64_t first = 0) const { return run(ops, state, batch, first); }
  Tensor run(Ops& ops, const StateView& other, const BatchView& batch, std::int64_t first = 0) const {
    const std::int64_t rows = batch.rows();
    return ops.delta_rule(q.slice(0, first, rows), k.slice(0, first, rows), v.slice(0, first, rows),
                          g.slice(0, first, rows), beta.slice(0, first, rows), map, other, batch);
  }
  Tensor q, k, v, g, beta;
  StateView state;
  HeadMap map = HeadMap::grouped;
};

/// The recurrence in float64: results, then the states that it leaves.
std::pair<std::vector<double>, std::vector<double>> expected_of(const Inputs& in, const Sizes& sizes,
                                                                const Places& places,
                                                                const std::vector<Piece>& pieces) {
  const std::int64_t rows = in.q.size(0), dk = sizes.key_dim, dv = sizes.value_dim;
  std::vector<double> out(static_cast<std::size_t>(rows * sizes.value_heads * dv));
  auto states = values_of(in.state.recurrent);
  std::int64_t first = 0;
  for (std::size_t s = 0; s < pieces.size(); first += pieces[s].rows, ++s) {
    for (std::int64_t head = 0; head < sizes.value_heads; ++head) {
      double* slot = states.data() + (places.slots[s] * sizes.value_heads + head) * dk * dv;
      std::vector<reference::Row> state;
      for (std::int64_t r = 0; r < dk; ++r) state.emplace_back(slot + r * dv, slot + (r + 1) * dv);
      const std::int64_t key_head = head / (sizes.value_heads / sizes.key_heads);
      for (std::int64_t row = first; row < first + pieces[s].rows; ++row) {
        const auto result = reference::delta_step(state, reference::row_of(in.q.row<float>(row) + key_head * dk, dk),
                                                  reference::row_of(in.k.row<float>(row) + key_head * dk, dk),
                                                  reference::row_of(in.v.row<float>(row) + head * dv, dv),
                                                  static_cast<double>(in.g.row<float>(row)[head]),
                                                  static_cast<double>(in.beta.row<float>(row)[head]));
        std::copy(result.begin(), result.end(), out.begin() + (row * sizes.value_heads + head) * dv);
      }
      for (std::int64_t r = 0; r < dk; ++r) {
        std::copy(state[static_cast<std::size_t>(r)].begin(), state[static_cast<std::size_t>(r)].end(), slot + r * dv);
      }
    }
  }
  return {out, states};
}

void expect_recurrence(Ops& ops, Source& source, const Inputs& in, const Sizes& sizes, const Places& places,
                       const std::vector<Piece>& pieces) {
  const auto [out, states] = expected_of(in, sizes, places, pieces);
  expect_close(in.run(ops, make_batch(source, places, pieces)), out, 2e-6);
  expect_close(in.state.recurrent, states, 2e-6);
}

TEST_P(DeltaRule, a_ragged_batch_equals_the_recurrence) {
  const auto ops = backend();
  Source source;
  const Sizes sizes{2, 4, 128, 128};
  const std::vector<Piece> pieces{{0, 200}, {17, 1}, {64, 64}, {100, 129}, {3, 0}, {63, 2}, {0, 63}};
  const Places places(source, 7, 256);
  const Inputs in(source, sizes, 459, places.slot_count());
  expect_recurrence(*ops, source, in, sizes, places, pieces);
}

TEST_P(DeltaRule, all_lengths_and_head_shapes_equal_the_recurrence) {
  const auto ops = backend();
  for (const Sizes& sizes : {Sizes{1, 1, 16, 16}, Sizes{1, 3, 32, 80}, Sizes{2, 2, 48, 64}}) {
    Source source;
    for (const std::int32_t rows : {1, 2, 31, 64, 65, 127, 128, 192, 200}) {
      const Places places(source, 1, 256);
      const Inputs in(source, sizes, rows, places.slot_count());
      expect_recurrence(*ops, source, in, sizes, places, {{0, rows}});
    }
  }
}

TEST_P(DeltaRule, survives_gates_that_forget_everything_or_nothing) {
  const auto ops = backend();
  Source source;
  const Sizes sizes{1, 2, 64, 64};
  const Places places(source, 1, 256);
  const Inputs in(source, sizes, 192, places.slot_count());
  for (std::int64_t row = 0; row < 192; ++row) {
    float* g = in.g.row<float>(row);
    float* beta = in.beta.row<float>(row);
    g[0] = row % 64 < 40 ? -20.0f : -0.01f;  // small changes of a large running sum
    g[1] = row / 64 == 1 ? -20.0f : 0.0f;    // the weight of a whole chunk underflows
    beta[0] = row % 2 == 0 ? 1.0f : 0.0f;
    beta[1] = 1.0f;
  }
  expect_recurrence(*ops, source, in, sizes, places, {{0, 192}});
}

TEST_P(DeltaRule, keys_that_are_all_alike_do_not_spoil_the_chunked_form) {
  const auto ops = backend();
  Source source;
  const Sizes sizes{1, 1, 128, 128};
  const Places places(source, 1, 128);
  const Inputs in(source, sizes, 128, places.slot_count());
  for (std::int64_t row = 1; row < 128; ++row) {
    std::memcpy(in.k.row<float>(row), in.k.row<float>(0), 128 * sizeof(float));
    in.g.row<float>(row)[0] = -0.001f;
    in.beta.row<float>(row)[0] = 0.9f;
  }
  expect_recurrence(*ops, source, in, sizes, places, {{0, 128}});
}

TEST_P(DeltaRule, no_bit_depends_on_neighbours_threads_or_cuts_at_whole_chunks) {
  Source source;
  const Sizes sizes{2, 4, 128, 128};
  const Places places(source, 3, 256);
  const Inputs in(source, sizes, 203 + 130 + 70, places.slot_count());
  const StateView start{{}, source.copy(in.state.recurrent)};
  const auto ops = backend(1);
  const Tensor together = in.run(*ops, make_batch(source, places, {{0, 203}, {10, 130}, {64, 70}}));
  for (const int threads : {1, 2, 5}) {
    const auto other = backend(threads);
    const StateView state{{}, source.copy(start.recurrent)};
    // The first sequence in chunks of 64, the last of which is decoded; the others alone.
    std::int32_t done = 0;
    for (const std::int32_t rows : {64, 128, 1, 1, 1, 8}) {
      const BatchView batch = make_batch(source, places, {{done, rows}}, {0});
      expect_same_rows(in.run(*other, state, batch, done), 0, rows, together, done);
      done += rows;
    }
    // The second starts within a chunk; it is cut where that ends.
    const Tensor second = in.run(*other, state, make_batch(source, places, {{10, 54}}, {1}), 203);
    expect_same_rows(second, 0, 54, together, 203);
    const Tensor rest = in.run(*other, state, make_batch(source, places, {{64, 76}}, {1}), 257);
    expect_same_rows(rest, 0, 76, together, 257);
    const Tensor third = in.run(*other, state, make_batch(source, places, {{64, 70}}, {2}), 333);
    expect_same_rows(third, 0, 70, together, 333);
    EXPECT_EQ(values_of(state.recurrent), values_of(in.state.recurrent));
  }
}

/// Head `to` of each row of `target` becomes head `from` of `source`; heads of n floats each.
void copy_head(const Tensor& target, std::int64_t to, const Tensor& source, std::int64_t from, std::int64_t n) {
  for (std::int64_t row = 0; row < source.size(0); ++row) {
    std::memcpy(target.row<float>(row) + to * n, source.row<float>(row) + from * n,
                static_cast<std::size_t>(n) * sizeof(float));
  }
}

TEST_P(DeltaRule, tiled_heads_are_grouped_heads_in_another_order) {
  const auto ops = backend();
  Source source;
  const Sizes sizes{2, 6, 32, 48};
  const std::int64_t per_key = sizes.value_heads / sizes.key_heads, state_size = sizes.key_dim * sizes.value_dim;
  const std::vector<Piece> pieces{{0, 130}, {17, 1}, {64, 64}};  // token by token, and in chunks
  const Places places(source, 3, 256);
  const Inputs grouped(source, sizes, 195, places.slot_count());
  Inputs tiled(source, sizes, 195, places.slot_count());
  tiled.q = grouped.q;
  tiled.k = grouped.k;
  tiled.map = HeadMap::tiled;
  const auto tiled_head = [&](std::int64_t head) { return head % per_key * sizes.key_heads + head / per_key; };
  for (std::int64_t head = 0; head < sizes.value_heads; ++head) {
    copy_head(tiled.v, tiled_head(head), grouped.v, head, sizes.value_dim);
    copy_head(tiled.g, tiled_head(head), grouped.g, head, 1);
    copy_head(tiled.beta, tiled_head(head), grouped.beta, head, 1);
    copy_head(tiled.state.recurrent, tiled_head(head), grouped.state.recurrent, head, state_size);
  }
  const BatchView batch = make_batch(source, places, pieces);
  const Tensor expected = grouped.run(*ops, batch), found = tiled.run(*ops, batch);
  const Tensor reordered = source.copy(expected), states = source.copy(grouped.state.recurrent);
  for (std::int64_t head = 0; head < sizes.value_heads; ++head) {
    copy_head(reordered, tiled_head(head), expected, head, sizes.value_dim);
    copy_head(states, tiled_head(head), grouped.state.recurrent, head, state_size);
  }
  EXPECT_EQ(values_of(found), values_of(reordered));
  EXPECT_EQ(values_of(tiled.state.recurrent), values_of(states));
  EXPECT_NE(values_of(found), values_of(expected));
}

TEST_P(DeltaRule, refuses_a_slot_outside_the_pool) {
  const auto ops = backend();
  Source source;
  const Places places(source, 1, 64);
  const Inputs in(source, {1, 1, 16, 16}, 2, places.slot_count());
  const BatchView batch = make_batch(source, places, {{0, 2}});
  batch.state_slots.as<std::int32_t>()[0] = static_cast<std::int32_t>(places.slot_count());
  EXPECT_THROW(in.run(*ops, batch), InternalError);
}

}  // namespace
}  // namespace sluice
