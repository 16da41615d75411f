#include "apps/sequence_batch.h"

#include <numeric>

#include "base/check.h"
#include "base/error.h"

namespace sluice {

namespace {

/// Memory of the pools, refused in one sentence before it is taken.
CacheMemory checked_memory(Ops& ops, std::uint64_t& taken) {
  return {[&ops, &taken](std::size_t bytes) {
            const std::uint64_t available = ops.free_memory();
            if (bytes > available) {
              fail<DeviceError>(
                  "the caches need {:.2f} GB more, but {:.2f} GB of memory are free; use fewer or shorter sequences",
                  static_cast<double>(bytes) / 1e9, static_cast<double>(available) / 1e9);
            }
            taken += bytes;
            return ops.new_buffer(bytes);
          },
          [&ops](const Tensor& tensor, std::uint8_t value) { ops.fill_bytes(tensor, value); }};
}

}  // namespace

SequenceBatch::SequenceBatch(Ops& ops, Model& model, std::int64_t sequences, std::int64_t max_tokens)
    : ops_(ops),
      model_(model),
      sequences_(sequences),
      blocks_per_sequence_(kv_blocks_for(max_tokens)),
      kv_(model.cache_needs(), ops.kv_dtype(), sequences * blocks_per_sequence_, checked_memory(ops, cache_bytes_)),
      state_(model.cache_needs(), sequences, checked_memory(ops, cache_bytes_)),
      caches_{kv_.layers(), state_.layers()} {
  for (std::int32_t slot = 0; slot < sequences; ++slot) state_.zero(slot);
}

Tensor SequenceBatch::upload(const std::vector<std::int32_t>& values, const Shape& shape) {
  const Tensor tensor = ops_.allocate(DType::i32, shape);
  if (!values.empty()) ops_.to_device(tensor, values.data());
  return tensor;
}

BatchView SequenceBatch::make_batch(std::span<const std::int32_t> ids, ScoredRows scored) {
  const auto rows = static_cast<std::int64_t>(ids.size());
  CHECK(rows > 0 && rows % sequences_ == 0, "{} rows of {} sequences", rows, sequences_);
  const std::int64_t count = rows / sequences_;
  CHECK(tokens_ + count <= blocks_per_sequence_ * kv_block_size, "{} tokens do not fit", tokens_ + count);

  std::vector<std::int32_t> positions, starts,
      lengths(static_cast<std::size_t>(sequences_), static_cast<std::int32_t>(tokens_));
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(sequences_ * blocks_per_sequence_)), slots(lengths.size()),
      scores;
  for (int axis = 0; axis < 3; ++axis) {
    for (std::int64_t row = 0; row < rows; ++row) positions.push_back(static_cast<std::int32_t>(tokens_ + row % count));
  }
  for (std::int64_t i = 0; i <= sequences_; ++i) starts.push_back(static_cast<std::int32_t>(i * count));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::iota(slots.begin(), slots.end(), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool is_last = row % count == count - 1;
    if (scored == ScoredRows::all || (scored == ScoredRows::last && is_last))
      scores.push_back(static_cast<std::int32_t>(row));
  }

  BatchView batch;
  batch.token_ids = upload({ids.begin(), ids.end()}, {rows});
  batch.positions = upload(positions, {3, rows});
  batch.sequence_starts = upload(starts, {sequences_ + 1});
  batch.context_lengths = upload(lengths, {sequences_});
  batch.block_table = upload(blocks, {sequences_, blocks_per_sequence_});
  batch.state_slots = upload(slots, {sequences_});
  batch.score_rows = upload(scores, {static_cast<std::int64_t>(scores.size())});
  return batch;
}

void SequenceBatch::touch_caches() {
  constexpr std::uint8_t small = 0x3c;  // 0.0115 in float32 and bf16
  for (const KvView& layer : kv_.layers()) {
    ops_.fill_bytes(layer.keys, small);
    ops_.fill_bytes(layer.values, small);
  }
}

void SequenceBatch::forward(std::span<const std::int32_t> ids, ScoredRows scored, const Reader& read) {
  const Scope scope(ops_);
  const BatchView batch = make_batch(ids, scored);
  ForwardResult result;
  ops_.step(batch.rows(), [&] { result = model_.forward(ops_, batch, caches_); });
  tokens_ += batch.rows() / sequences_;
  if (read) read(result);
}

void SequenceBatch::forward_and_draft(std::span<const std::int32_t> ids, std::span<const std::int32_t> next_ids,
                                      const Reader& read, const Reader& read_draft) {
  CHECK(sequences_ == 1 && next_ids.size() <= ids.size(), "{} tokens, {} next tokens", ids.size(), next_ids.size());
  const Scope scope(ops_);
  const BatchView batch = make_batch(ids, ScoredRows::all);
  const ForwardResult result = model_.forward(ops_, batch, caches_);
  read(result);
  if (!next_ids.empty()) {
    const BatchView draft_batch = make_batch(next_ids, ScoredRows::all);
    const Tensor hidden = result.hidden.slice(0, 0, draft_batch.rows());
    read_draft(model_.draft(ops_, draft_batch, hidden, caches_));
  }
  tokens_ += batch.rows();
}

}  // namespace sluice
