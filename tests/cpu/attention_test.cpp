#include "cpu/reference.h"
#include "cpu/row_fixture.h"

namespace sluice {
namespace {

class Attention : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(Attention);

/// Queries, keys and values of whole sequences, and what attention makes of them, a row a token.
struct Conversation {
  Conversation(Source& source, std::vector<std::int32_t> token_counts, std::int64_t query_heads, std::int64_t heads,
               std::int64_t n)
      : lengths(std::move(token_counts)), q_heads(query_heads), kv_heads(heads), head_dim(n) {
    for (const std::int32_t tokens : lengths) {
      q.push_back(source.normal({tokens, q_heads, head_dim}));
      k.push_back(source.normal({tokens, kv_heads, head_dim}));
      v.push_back(source.normal({tokens, kv_heads, head_dim}));
    }
  }
  std::int32_t sequences() const { return static_cast<std::int32_t>(lengths.size()); }
  std::int32_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }

  std::vector<std::int32_t> lengths;
  std::int64_t q_heads, kv_heads, head_dim;
  std::vector<Tensor> q, k, v;
};

/// The rows of `pieces` one after another, strided.
Tensor rows_of(Source& source, const std::vector<Tensor>& sequences, const std::vector<Piece>& pieces,
               const std::vector<std::int32_t>& which) {
  std::int64_t rows = 0;
  for (const Piece& piece : pieces) rows += piece.rows;
  const std::int64_t heads = sequences[0].size(1), n = sequences[0].size(2);
  const Tensor out = source.strided(rows, heads * n).split_columns(heads, n);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::int32_t r = 0; r < pieces[i].rows; ++r, ++row) {
      std::memcpy(out.row<float>(row), sequences[static_cast<std::size_t>(which[i])].row<float>(pieces[i].context + r),
                  static_cast<std::size_t>(heads * n) * sizeof(float));
    }
  }
  return out;
}

/// Runs one step over a cache and returns the result, [rows, heads * head_dim].
Tensor run_step(Ops& ops, Source& source, const Conversation& talk, const Places& places, const KvView& cache,
                const std::vector<Piece>& pieces, std::vector<std::int32_t> which = {}) {
  if (which.empty()) {
    which.resize(pieces.size());
    std::iota(which.begin(), which.end(), 0);
  }
  const BatchView batch = make_batch(source, places, pieces, which);
  const Scope scope(ops);
  ops.append_kv(rows_of(source, talk.k, pieces, which), rows_of(source, talk.v, pieces, which), cache, batch);
  const Tensor result = ops.attention(rows_of(source, talk.q, pieces, which), cache, batch, 0.25f);
  return source.copy(result);
}

void expect_reference(const Conversation& talk, const Tensor& result, const std::vector<Piece>& pieces) {
  std::vector<double> expected;
  for (std::size_t s = 0; s < pieces.size(); ++s) {
    for (std::int32_t r = 0; r < pieces[s].rows; ++r) {
      const std::int32_t token = pieces[s].context + r;
      for (std::int64_t head = 0; head < talk.q_heads; ++head) {
        const std::int64_t kv_head = head / (talk.q_heads / talk.kv_heads);
        std::vector<reference::Row> keys, values;
        for (std::int32_t t = 0; t <= token; ++t) {
          keys.push_back(reference::row_of(talk.k[s].row<float>(t) + kv_head * talk.head_dim, talk.head_dim));
          values.push_back(reference::row_of(talk.v[s].row<float>(t) + kv_head * talk.head_dim, talk.head_dim));
        }
        const auto q = reference::row_of(talk.q[s].row<float>(token) + head * talk.head_dim, talk.head_dim);
        const auto out = reference::attention(q, keys, values, keys.size(), 0.25);
        expected.insert(expected.end(), out.begin(), out.end());
      }
    }
  }
  expect_close(result, expected, 2e-6);
}

TEST_P(Attention, a_ragged_batch_of_prefills_and_decodes_equals_the_softmax_written_down) {
  const auto ops = backend();
  Source source;
  const Conversation talk(source, {150, 1, 70, 33}, 4, 2, 64);
  const Places places(source, talk.sequences(), talk.longest(), 16);
  const KvView cache = places.cache(source, talk.kv_heads, talk.head_dim);
  const std::vector<Piece> before{{0, 90}, {0, 0}, {0, 69}, {0, 31}};
  run_step(*ops, source, talk, places, cache, before);
  const std::vector<Piece> step{{90, 60}, {0, 1}, {69, 1}, {31, 2}};
  expect_reference(talk, run_step(*ops, source, talk, places, cache, step), step);
}

TEST_P(Attention, heads_of_all_shapes_in_groups_of_all_sizes) {
  const auto ops = backend();
  for (const auto& [q_heads, kv_heads, head_dim] :
       std::vector<std::array<std::int64_t, 3>>{{1, 1, 16}, {3, 1, 48}, {2, 2, 80}, {16, 1, 32}, {4, 2, 256}}) {
    Source source;
    const Conversation talk(source, {67}, q_heads, kv_heads, head_dim);
    const Places places(source, 1, talk.longest(), 32);
    const KvView cache = places.cache(source, kv_heads, head_dim);
    const std::vector<Piece> step{{0, 67}};
    expect_reference(talk, run_step(*ops, source, talk, places, cache, step), step);
  }
}

TEST_P(Attention, a_context_of_several_segments_is_merged_exactly) {
  const auto ops = backend();
  Source source;
  const Conversation talk(source, {1100}, 2, 1, 32);
  const Places places(source, 1, talk.longest(), 64);
  const KvView cache = places.cache(source, 1, 32);
  run_step(*ops, source, talk, places, cache, {{0, 1097}});
  const std::vector<Piece> step{{1097, 3}};
  expect_reference(talk, run_step(*ops, source, talk, places, cache, step), step);
}

TEST_P(Attention, no_bit_depends_on_chunks_neighbours_or_threads) {
  Source source;
  const Conversation talk(source, {730, 75, 300}, 4, 2, 32);
  const auto ops = backend(1);
  const Places places(source, talk.sequences(), talk.longest(), 16);
  std::vector<Tensor> alone;
  for (std::int32_t s = 0; s < talk.sequences(); ++s) {
    const KvView cache = places.cache(source, 2, 32);
    alone.push_back(run_step(*ops, source, talk, places, cache, {{0, talk.lengths[static_cast<std::size_t>(s)]}}, {s}));
  }
  struct Way {
    int threads;
    std::int32_t first_chunk, chunk;
  };
  for (const Way& way : {Way{1, 100, 100}, Way{2, 64, 64}, Way{3, 513, 300}, Way{2, 690, 7}, Way{3, 720, 1}}) {
    const auto other = backend(way.threads);
    const Places other_places(source, talk.sequences(), talk.longest(), 64);
    const KvView cache = other_places.cache(source, 2, 32);
    std::int32_t done = 0;
    for (std::int32_t rows = way.first_chunk; done < talk.longest(); done += rows, rows = way.chunk) {
      std::vector<Piece> pieces;
      std::vector<std::int32_t> which;
      for (std::int32_t s = talk.sequences() - 1; s >= 0; --s) {
        const std::int32_t left = talk.lengths[static_cast<std::size_t>(s)] - done;
        if (left <= 0) continue;
        pieces.push_back({done, std::min(rows, left)});
        which.push_back(s);
      }
      const Tensor result = run_step(*other, source, talk, other_places, cache, pieces, which);
      std::int64_t row = 0;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        expect_same_rows(result, row, pieces[i].rows, alone[static_cast<std::size_t>(which[i])], done);
        row += pieces[i].rows;
      }
    }
  }
}

TEST_P(Attention, what_a_block_held_before_is_not_seen) {
  const auto ops = backend();
  Source source;
  const Conversation talk(source, {40}, 2, 1, 64);
  const Places places(source, 1, 64, 16);
  const KvView cache = places.cache(source, 1, 64);
  std::fill_n(cache.keys.as<float>(), cache.keys.elements(), NAN);
  std::fill_n(cache.values.as<float>(), cache.values.elements(), NAN);
  const std::vector<Piece> step{{0, 40}};
  expect_reference(talk, run_step(*ops, source, talk, places, cache, step), step);
}

class AppendKv : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(AppendKv);

TEST_P(AppendKv, rounds_to_bf16_at_the_places_of_the_rows_and_nowhere_else) {
  const auto ops = backend(2, Compute::bf16);
  ASSERT_EQ(ops->kv_dtype(), DType::bf16);
  Source source;
  const std::int64_t kv_heads = 2, n = 40;
  const Places places(source, 2, 48, 16);
  const Shape shape{static_cast<std::int64_t>(places.blocks.size()), kv_heads, 16, n};
  std::vector<std::uint16_t> keys(static_cast<std::size_t>(shape.elements()), 0x4040), values = keys;
  auto expected_keys = keys, expected_values = values;
  const std::vector<Piece> pieces{{14, 20}, {31, 1}};
  const BatchView batch = make_batch(source, places, pieces);
  const Tensor k = source.strided(21, kv_heads * n).split_columns(kv_heads, n);
  const Tensor v = source.strided(21, kv_heads * n).split_columns(kv_heads, n);
  ops->append_kv(k, v, {Tensor(keys.data(), DType::bf16, shape), Tensor(values.data(), DType::bf16, shape)}, batch);
  for (std::int64_t row = 0; row < 21; ++row) {
    const std::int64_t sequence = row < 20 ? 0 : 1;
    const std::int64_t token = row < 20 ? 14 + row : 31;
    const auto block = places.blocks[static_cast<std::size_t>(sequence * places.blocks_each + token / 16)];
    for (std::int64_t head = 0; head < kv_heads; ++head) {
      for (std::int64_t d = 0; d < n; ++d) {
        const auto at = static_cast<std::size_t>(((block * kv_heads + head) * 16 + token % 16) * n + d);
        expected_keys[at] = float_to_bf16(k.row<float>(row)[head * n + d]);
        expected_values[at] = float_to_bf16(v.row<float>(row)[head * n + d]);
      }
    }
  }
  EXPECT_EQ(keys, expected_keys);
  EXPECT_EQ(values, expected_values);
}

TEST_P(AppendKv, refuses_a_token_without_a_block) {
  const auto ops = backend();
  Source source;
  const Places places(source, 1, 48, 16);
  const KvView cache = places.cache(source, 1, 16);
  BatchView batch = make_batch(source, places, {{0, 10}});
  batch.context_lengths.as<std::int32_t>()[0] = 10;  // rows 10 .. 19, but one block
  const Tensor k = source.normal({10, 1, 16});
  EXPECT_THROW(ops->append_kv(k, k, cache, batch), InternalError);
}

TEST_P(Attention, reads_a_bf16_cache_as_the_values_it_was_rounded_to) {
  Source source;
  Conversation talk(source, {90}, 4, 2, 64);
  for (const std::vector<Tensor>* part : {&talk.k, &talk.v}) {
    for (std::int64_t i = 0; i < (*part)[0].elements(); ++i) {
      float& value = (*part)[0].as<float>()[i];
      value = bf16_to_float(float_to_bf16(value));
    }
  }
  const Places places(source, 1, 90, 16);
  const KvView wide = places.cache(source, 2, 64);
  std::vector<std::uint16_t> keys(static_cast<std::size_t>(wide.keys.elements())), values = keys;
  const KvView narrow{Tensor(keys.data(), DType::bf16, wide.keys.shape()),
                      Tensor(values.data(), DType::bf16, wide.keys.shape())};
  const auto exact = backend();
  const auto rounded = backend(2, Compute::bf16);
  const Tensor a = run_step(*exact, source, talk, places, wide, {{0, 90}});
  const Tensor b = run_step(*rounded, source, talk, places, narrow, {{0, 90}});
  expect_same_rows(a, 0, 90, b, 0);
}

}  // namespace
}  // namespace sluice
