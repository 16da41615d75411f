#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "cache/kv_pool.h"
#include "engine/request.h"
#include "models/model.h"

namespace sluice {

/// A model whose logits are a hash of all tokens so far, as it finds them in the caches: the tokens in the KV pages
/// that the block table names, a running hash and the count of tokens in the state slot, the last three tokens in the
/// conv state. Anything wrong with a page, a slot, a position or a chunk gives other logits than fake_logits().
inline constexpr int fake_vocabulary = 96;
inline constexpr TokenId fake_poison_token = 95;  // after it, logits hold a NaN; never sampled

inline std::uint64_t fake_mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

inline void fake_row(std::uint64_t hash, TokenId last, float* logits) {
  for (int id = 0; id < fake_vocabulary; ++id) {
    const std::uint64_t bits = fake_mix(hash, static_cast<std::uint64_t>(id) + 1);
    logits[id] = static_cast<float>(bits >> 40) * 0x1p-20f - 8.0f;
  }
  if (last == fake_poison_token) logits[7] = std::numeric_limits<float>::quiet_NaN();
}

/// Of a state slot: its hash in three pieces that float32 holds exactly, and the number of tokens.
struct FakeState {
  std::uint64_t hash = 0, count = 0;
  static FakeState load(const float* slot) {
    FakeState state;
    for (int i = 0; i < 3; ++i) state.hash = (state.hash << 22) ^ std::bit_cast<std::uint32_t>(slot[i]);
    state.count = std::bit_cast<std::uint32_t>(slot[3]);
    return state;
  }
  void add(std::uint64_t token) {
    hash = fake_mix(hash, fake_mix(token, count)) & ((1u << 22) - 1);
    ++count;
  }
  void store(float* slot) const {
    slot[0] = slot[1] = 0.0f;
    slot[2] = std::bit_cast<float>(static_cast<std::uint32_t>(hash));
    slot[3] = std::bit_cast<float>(static_cast<std::uint32_t>(count));
  }
};

/// The logits after a history, computed without any cache.
inline std::vector<float> fake_logits(std::span<const TokenId> history) {
  FakeState state;
  std::uint64_t pages = 1;
  for (std::size_t i = 0; i < history.size(); ++i) {
    state.add(static_cast<std::uint64_t>(history[i]));
    pages = fake_mix(pages, static_cast<std::uint64_t>(history[i]));
  }
  std::uint64_t conv = 0;
  for (std::size_t back = 3; back >= 1; --back) {
    conv = fake_mix(conv, history.size() >= back ? static_cast<std::uint64_t>(history[history.size() - back]) : 0);
  }
  std::vector<float> logits(fake_vocabulary);
  fake_row(fake_mix(fake_mix(pages, fake_mix(state.hash, state.count)), conv), history.back(), logits.data());
  return logits;
}

class FakeModel : public Model {
 public:
  explicit FakeModel(std::int64_t max_context = 1024) {
    info_.architecture = "fake";
    info_.vocabulary = fake_vocabulary;
    info_.hidden = 1;
    info_.max_context = max_context;
  }
  const ModelInfo& info() const override { return info_; }
  CacheNeeds cache_needs() const override { return needs(); }
  static CacheNeeds needs() {
    return {.kv_layers = 2,
            .kv_heads = 1,
            .head_dim = 1,
            .state_layers = 2,
            .conv_taps = 4,
            .conv_channels = 1,
            .value_heads = 1,
            .key_dim = 2,
            .value_dim = 2};
  }
  std::uint64_t bytes_per_token() const override { return 1; }
  ForwardResult draft(Ops&, const BatchView&, const Tensor&, const LayerCaches&) override { return {}; }

  ForwardResult forward(Ops& ops, const BatchView& batch, const LayerCaches& caches, const LayerObserver&) override {
    seen_ = caches;
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(batch.rows()));
    for (std::int64_t s = 0; s < batch.sequences(); ++s) run_sequence(s, batch, caches, hashes);
    ForwardResult result;
    const std::int64_t scored = batch.score_rows.size(0);
    if (scored == 0) return result;
    result.logits = ops.allocate(DType::f32, {scored, fake_vocabulary});
    for (std::int64_t i = 0; i < scored; ++i) {
      const std::int32_t row = batch.score_rows.as<std::int32_t>()[i];
      fake_row(hashes[static_cast<std::size_t>(row)], batch.token_ids.as<std::int32_t>()[row],
               result.logits.row<float>(i));
    }
    return result;
  }

  /// The caches of the last step, and what was written in all steps; to be read only while the engine is idle.
  const LayerCaches& caches_seen() const { return seen_; }
  const std::set<std::int32_t>& blocks_written() const { return blocks_written_; }
  const std::set<std::int32_t>& slots_written() const { return slots_written_; }

 private:
  /// The second layer of each kind must hold the same as the first, so that views of the wrong layer show.
  void run_sequence(std::int64_t s, const BatchView& batch, const LayerCaches& caches,
                    std::vector<std::uint64_t>& hashes) {
    const std::int32_t* table = batch.block_table.row<std::int32_t>(s);
    const std::int32_t slot = batch.state_slots.as<std::int32_t>()[s];
    const std::int32_t context = batch.context_lengths.as<std::int32_t>()[s];
    const std::int32_t begin = batch.sequence_starts.as<std::int32_t>()[s];
    const std::int32_t end = batch.sequence_starts.as<std::int32_t>()[s + 1];
    slots_written_.insert(slot);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      float* recurrent = caches.state.at(layer).recurrent.row<float>(slot);
      float* conv = caches.state.at(layer).conv.row<float>(slot);
      FakeState state = FakeState::load(recurrent);
      if (static_cast<std::int64_t>(state.count) != context) state.hash ^= 1;
      for (std::int32_t row = begin; row < end; ++row) {
        const std::int32_t token = batch.token_ids.as<std::int32_t>()[row];
        const std::int32_t position = batch.positions.row<std::int32_t>(1)[row];
        cell(caches.kv.at(layer).keys, table, position) = std::bit_cast<float>(token);
        cell(caches.kv.at(layer).values, table, position) = std::bit_cast<float>(token + 1);
        blocks_written_.insert(table[position / kv_block_size]);
        state.add(static_cast<std::uint64_t>(token));
        conv[0] = conv[1], conv[1] = conv[2], conv[2] = std::bit_cast<float>(token);
        std::uint64_t pages = 1, last = 0;
        for (std::int32_t p = 0; p < context + (row - begin) + 1; ++p) {
          const std::uint32_t key = std::bit_cast<std::uint32_t>(cell(caches.kv.at(layer).keys, table, p));
          const std::uint32_t value = std::bit_cast<std::uint32_t>(cell(caches.kv.at(layer).values, table, p));
          pages = fake_mix(pages, value == key + 1 ? key : 12345);
        }
        for (int i = 0; i < 3; ++i) last = fake_mix(last, std::bit_cast<std::uint32_t>(conv[i]));
        std::uint64_t& hash = hashes[static_cast<std::size_t>(row)];
        const std::uint64_t now = fake_mix(fake_mix(pages, fake_mix(state.hash, state.count)), last);
        hash = layer == 0 ? now : hash == now ? now : 0;
      }
      state.store(recurrent);
    }
  }
  static float& cell(const Tensor& pages, const std::int32_t* table, std::int32_t position) {
    const std::int64_t size = pages.size(2);
    return pages.as<float>()[table[position / size] * pages.stride(0) + position % size];
  }

  ModelInfo info_;
  LayerCaches seen_;
  std::set<std::int32_t> blocks_written_, slots_written_;
};

}  // namespace sluice
