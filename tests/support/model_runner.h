#pragma once
#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/mmap.h"
#include "cpu/backend.h"
#include "models/model.h"
#include "weights/safetensors.h"

namespace sluice::test {

using Row = std::vector<float>;
using Rows = std::vector<Row>;

inline std::filesystem::path source_dir() { return SLUICE_SOURCE_DIR; }
inline std::filesystem::path tiny_model() { return source_dir() / "models/tiny"; }
inline std::filesystem::path dense_golden() { return source_dir() / "tests/data/golden/dense-ratio3"; }
/// Products in float32.
inline const CpuOptions reference_options{.threads = 1, .compute = Compute::f32, .instruction_set = ""};

inline Json read_config(const std::filesystem::path& directory) {
  return parse_json(read_text_file(directory / "config.json"), "config.json");
}

/// A model with caches of its own, driven row by row; block ids and slots are handed out in random order.
class ModelRunner {
 public:
  static constexpr std::int64_t block_size = 64, block_count = 64, slot_count = 24, table_width = 8;

  struct Sequence {
    std::int32_t slot = 0, length = 0;
    std::vector<std::int32_t> blocks;
  };
  /// Rows that one step adds to a sequence; next_ids (for the draft head) has the ids at t + 1.
  struct Piece {
    Sequence* sequence = nullptr;
    std::vector<std::int32_t> ids, next_ids;
  };
  struct Output {
    Rows logits, draft_logits;
  };

  ModelRunner(const std::filesystem::path& directory, CpuOptions options) : ops_(make_cpu_backend(options)) {
    checkpoint_ = open_safetensors(directory);
    model_ = load_model(read_config(directory), *checkpoint_, *ops_);
    make_caches();
    std::mt19937 random(7);
    free_blocks_.resize(block_count);
    free_slots_.resize(slot_count);
    std::iota(free_blocks_.begin(), free_blocks_.end(), 0);
    std::iota(free_slots_.begin(), free_slots_.end(), 0);
    std::shuffle(free_blocks_.begin(), free_blocks_.end(), random);
    std::shuffle(free_slots_.begin(), free_slots_.end(), random);
  }

  Model& model() { return *model_; }
  Ops& ops() { return *ops_; }

  Sequence open() {
    Sequence sequence;
    sequence.slot = free_slots_.back();
    free_slots_.pop_back();
    for (const StateView& state : caches_.state) {
      ops_->fill_bytes(state.conv.slice(0, sequence.slot, 1), 0);
      ops_->fill_bytes(state.recurrent.slice(0, sequence.slot, 1), 0);
    }
    return sequence;
  }

  void close(const Sequence& sequence) {
    free_slots_.push_back(sequence.slot);
    free_blocks_.insert(free_blocks_.end(), sequence.blocks.begin(), sequence.blocks.end());
  }

  Output step(const std::vector<Piece>& pieces, const LayerObserver& observe = nullptr) {
    const Scope scope(*ops_);
    const BatchView batch = make_batch(pieces, false);
    ForwardResult result;
    ops_->step(batch.rows(), [&] { result = model_->forward(*ops_, batch, caches_, observe); });
    Output output{read_rows(result.logits), {}};
    if (std::all_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return !piece.next_ids.empty(); })) {
      output.draft_logits = run_draft(pieces, result.hidden);
    }
    for (const Piece& piece : pieces) piece.sequence->length += static_cast<std::int32_t>(piece.ids.size());
    return output;
  }

  /// All rows of one fresh sequence, in pieces of `chunk` rows (0: all at once). With drafts, the last row has none.
  Output run(const std::vector<std::int32_t>& ids, std::size_t chunk = 0, bool draft = false,
             const LayerObserver& observe = nullptr) {
    Sequence sequence = open();
    Output all;
    const std::size_t size = chunk == 0 ? ids.size() : chunk;
    for (std::size_t begin = 0; begin < ids.size(); begin += size) {
      const std::size_t end = std::min(ids.size(), begin + size);
      Piece piece{&sequence, {ids.begin() + static_cast<long>(begin), ids.begin() + static_cast<long>(end)}, {}};
      for (std::size_t t = begin; draft && t < end && t + 1 < ids.size(); ++t) piece.next_ids.push_back(ids[t + 1]);
      const Output part = step({piece}, observe);
      all.logits.insert(all.logits.end(), part.logits.begin(), part.logits.end());
      all.draft_logits.insert(all.draft_logits.end(), part.draft_logits.begin(), part.draft_logits.end());
    }
    close(sequence);
    return all;
  }

  Rows read_rows(const Tensor& tensor) const {
    Rows rows;
    if (tensor.empty()) return rows;
    Row flat(static_cast<std::size_t>(tensor.elements()));
    ops_->to_host(flat.data(), tensor);
    const auto columns = static_cast<long>(tensor.size(1));
    for (std::int64_t r = 0; r < tensor.size(0); ++r) {
      rows.emplace_back(flat.begin() + r * columns, flat.begin() + (r + 1) * columns);
    }
    return rows;
  }

 private:
  void make_caches() {
    const CacheNeeds needs = model_->cache_needs();
    auto make = [&](DType dtype, Shape shape) {
      buffers_.push_back(ops_->new_buffer(static_cast<std::size_t>(shape.elements()) * size_of(dtype)));
      return buffers_.back().view(0, dtype, shape);
    };
    const Shape kv{block_count, needs.kv_heads, block_size, needs.head_dim};
    for (std::int64_t i = 0; i < needs.kv_layers; ++i) {
      caches_.kv.push_back({make(ops_->kv_dtype(), kv), make(ops_->kv_dtype(), kv)});
    }
    for (std::int64_t i = 0; i < needs.state_layers; ++i) {
      caches_.state.push_back({make(DType::f32, {slot_count, needs.conv_taps - 1, needs.conv_channels}),
                               make(DType::f32, {slot_count, needs.value_heads, needs.key_dim * needs.value_dim})});
    }
  }

  Tensor place(const std::vector<std::int32_t>& values, Shape shape) {
    const Tensor tensor = ops_->allocate(DType::i32, shape);
    if (!values.empty()) ops_->to_device(tensor, values.data());
    return tensor;
  }

  /// For the draft head the last rows without a next token are left out.
  BatchView make_batch(const std::vector<Piece>& pieces, bool draft) {
    std::vector<std::int32_t> ids, positions, starts{0}, contexts, table, slots;
    for (const Piece& piece : pieces) {
      Sequence& sequence = *piece.sequence;
      const auto& tokens = draft ? piece.next_ids : piece.ids;
      const auto needed = (static_cast<std::size_t>(sequence.length) + piece.ids.size() + block_size - 1) / block_size;
      while (sequence.blocks.size() < needed) {
        sequence.blocks.push_back(free_blocks_.back());
        free_blocks_.pop_back();
      }
      ids.insert(ids.end(), tokens.begin(), tokens.end());
      for (std::size_t t = 0; t < tokens.size(); ++t) positions.push_back(sequence.length + static_cast<int>(t));
      starts.push_back(static_cast<std::int32_t>(ids.size()));
      contexts.push_back(sequence.length);
      slots.push_back(sequence.slot);
      std::vector<std::int32_t> row(table_width, -1);
      std::copy(sequence.blocks.begin(), sequence.blocks.end(), row.begin());
      table.insert(table.end(), row.begin(), row.end());
    }
    const auto rows = static_cast<std::int64_t>(ids.size());
    const auto sequences = static_cast<std::int64_t>(pieces.size());
    std::vector<std::int32_t> all_positions;
    for (int axis = 0; axis < 3; ++axis) all_positions.insert(all_positions.end(), positions.begin(), positions.end());
    std::vector<std::int32_t> score(ids.size());
    std::iota(score.begin(), score.end(), 0);
    return {place(ids, {rows}),           place(all_positions, {3, rows}),        place(starts, {sequences + 1}),
            place(contexts, {sequences}), place(table, {sequences, table_width}), place(slots, {sequences}),
            place(score, {rows})};
  }

  Rows run_draft(const std::vector<Piece>& pieces, const Tensor& hidden) {
    std::vector<std::int32_t> kept;
    std::int32_t row = 0;
    for (const Piece& piece : pieces) {
      for (std::size_t t = 0; t < piece.next_ids.size(); ++t) kept.push_back(row + static_cast<std::int32_t>(t));
      row += static_cast<std::int32_t>(piece.ids.size());
    }
    const Tensor rows = ops_->gather_rows(hidden, place(kept, {static_cast<std::int64_t>(kept.size())}));
    return read_rows(model_->draft(*ops_, make_batch(pieces, true), rows, caches_).logits);
  }

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Model> model_;
  std::vector<Buffer> buffers_;
  LayerCaches caches_;
  std::vector<std::int32_t> free_blocks_, free_slots_;
};

}  // namespace sluice::test
