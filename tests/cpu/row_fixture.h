#pragma once
// What the tests of operations on rows share: random tensors, ragged batches, backends of each instruction set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cpu/backend.h"

namespace sluice {

/// Instruction sets that this machine can run.
inline std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets;
  for (const std::string name : {"plain", "avx2", "avx512"}) {
    try {
      make_cpu_backend({1, Compute::f32, name});
      sets.push_back(name);
    } catch (const DeviceError&) {
      continue;
    }
  }
  return sets;
}

class EachInstructionSet : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Ops> backend(int threads = 2, Compute compute = Compute::f32) const {
    return make_cpu_backend({threads, compute, GetParam()});
  }
};

#define FOR_EACH_INSTRUCTION_SET(suite)                                       \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, testing::ValuesIn(instruction_sets()), \
                           [](const testing::TestParamInfo<std::string>& parameter) { return parameter.param; })

/// Makes tensors and owns their memory.
class Source {
 public:
  explicit Source(unsigned seed = 1) : random_(seed) {}

  Tensor filled(Shape shape, float value) {
    auto& memory = floats_.emplace_back(static_cast<std::size_t>(shape.elements()), value);
    return Tensor(memory.data(), DType::f32, shape);
  }
  /// Normally distributed.
  Tensor normal(Shape shape, float deviation = 1.0f) {
    const Tensor tensor = filled(shape, 0.0f);
    std::normal_distribution<float> distribution(0.0f, deviation);
    for (std::int64_t i = 0; i < shape.elements(); ++i) tensor.as<float>()[i] = distribution(random_);
    return tensor;
  }
  Tensor uniform(Shape shape, float low, float high) {
    const Tensor tensor = filled(shape, 0.0f);
    std::uniform_real_distribution<float> distribution(low, high);
    for (std::int64_t i = 0; i < shape.elements(); ++i) tensor.as<float>()[i] = distribution(random_);
    return tensor;
  }
  /// Normally distributed [rows, columns], a slice of wider rows.
  Tensor strided(std::int64_t rows, std::int64_t columns) { return normal({rows, columns + 24}).slice(1, 16, columns); }
  Tensor integers(const std::vector<std::int32_t>& values, Shape shape) {
    auto& memory = integers_.emplace_back(values);
    return Tensor(memory.data(), DType::i32, shape);
  }
  Tensor integers(const std::vector<std::int32_t>& values) {
    return integers(values, {static_cast<std::int64_t>(values.size())});
  }
  std::vector<std::int32_t> shuffled(std::int32_t count) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    std::shuffle(values.begin(), values.end(), random_);
    return values;
  }
  Tensor copy(const Tensor& x) {
    CHECK(x.is_contiguous() && x.dtype() == DType::f32);
    const Tensor result = filled(x.shape(), 0.0f);
    std::memcpy(result.data(), x.data(), x.bytes());
    return result;
  }

 private:
  std::mt19937 random_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<std::int32_t>> integers_;
};

/// Tokens of one sequence: `context` of them in the caches before the step, `rows` in it.
struct Piece {
  std::int32_t context, rows;
};

/// Places of some sequences in caches of `block_size` tokens a block, shuffled.
struct Places {
  Places(Source& source, std::int32_t sequence_count, std::int32_t most_tokens, std::int32_t tokens_a_block = 16)
      : sequences(sequence_count),
        blocks_each((most_tokens + tokens_a_block - 1) / tokens_a_block),
        block_size(tokens_a_block),
        blocks(source.shuffled(sequence_count * blocks_each + 3)),
        slots(source.shuffled(sequence_count + 2)) {}
  KvView cache(Source& source, std::int64_t kv_heads, std::int64_t head_dim) const {
    const Shape shape{static_cast<std::int64_t>(blocks.size()), kv_heads, block_size, head_dim};
    return {source.filled(shape, 0.0f), source.filled(shape, 0.0f)};
  }
  std::int64_t slot_count() const { return static_cast<std::int64_t>(slots.size()); }

  std::int32_t sequences, blocks_each, block_size;
  std::vector<std::int32_t> blocks, slots;
};

/// One step of the sequences `which` (all of them, if empty); pieces[i] is that of which[i].
inline BatchView make_batch(Source& source, const Places& places, const std::vector<Piece>& pieces,
                            std::vector<std::int32_t> which = {}) {
  if (which.empty()) {
    which.resize(pieces.size());
    std::iota(which.begin(), which.end(), 0);
  }
  std::vector<std::int32_t> starts{0}, contexts, table, slots, positions;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    starts.push_back(starts.back() + pieces[i].rows);
    contexts.push_back(pieces[i].context);
    slots.push_back(places.slots[static_cast<std::size_t>(which[i])]);
    const std::int32_t used = (pieces[i].context + pieces[i].rows + places.block_size - 1) / places.block_size;
    for (std::int32_t b = 0; b < places.blocks_each; ++b) {
      const auto index = static_cast<std::size_t>(which[i] * places.blocks_each + b);
      table.push_back(b < used ? places.blocks[index] : -1);
    }
  }
  for (int axis = 0; axis < 3; ++axis) {
    for (const Piece& piece : pieces) {
      for (std::int32_t row = 0; row < piece.rows; ++row) positions.push_back(piece.context + row);
    }
  }
  const std::int64_t sequences = static_cast<std::int64_t>(pieces.size());
  BatchView batch;
  batch.token_ids = source.integers(std::vector<std::int32_t>(static_cast<std::size_t>(starts.back())));
  batch.positions = source.integers(positions, {3, starts.back()});
  batch.sequence_starts = source.integers(starts);
  batch.context_lengths = source.integers(contexts);
  batch.block_table = source.integers(table, {sequences, places.blocks_each});
  batch.state_slots = source.integers(slots);
  return batch;
}

/// All elements, in order; x may have strided outer dimensions.
inline std::vector<double> values_of(const Tensor& x) {
  std::vector<double> values;
  const std::int64_t middle = x.rank() == 3 ? x.size(1) : 1;
  const std::int64_t inner = x.size(x.rank() - 1);
  for (std::int64_t i = 0; i < (x.rank() == 1 ? 1 : x.size(0)); ++i) {
    for (std::int64_t j = 0; j < middle; ++j) {
      const float* row = x.as<float>() + (x.rank() == 1 ? 0 : i * x.stride(0)) + (x.rank() == 3 ? j * x.stride(1) : 0);
      values.insert(values.end(), row, row + inner);
    }
  }
  return values;
}

/// |a - b| / |b| by the Euclidean norm; infinite where a value is not finite.
inline double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(a.size() == b.size(), "{} and {} values", a.size(), b.size());
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return INFINITY;
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference) / std::max(std::sqrt(size), 1e-30);
}

inline void expect_close(const Tensor& x, const std::vector<double>& expected, double tolerance = 1e-6) {
  EXPECT_LT(relative_error(values_of(x), expected), tolerance);
}

/// Rows begin .. begin + count - 1 of a and rows from `at` on of b hold the same bits.
inline void expect_same_rows(const Tensor& a, std::int64_t begin, std::int64_t count, const Tensor& b,
                             std::int64_t at) {
  const Tensor left = a.slice(0, begin, count), right = b.slice(0, at, count);
  EXPECT_EQ(values_of(left), values_of(right)) << "rows from " << begin << ", " << at;
}

}  // namespace sluice
