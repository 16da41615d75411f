#include "apps/quantize_write.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/integers.h"

namespace sluice {

namespace {

using Bytes = std::vector<std::byte>;

/// Tiles of a thread in one step: enough that the threads end at about the same time.
constexpr std::int64_t tiles_per_thread = 4;

/// Gives the pages of the matrix's tensors back.
void release(const MatrixRows& matrix, const Checkpoint& checkpoint) {
  const StoredTensor* last = nullptr;
  for (const MatrixRows::Run& run : matrix.runs) {
    for (const StoredPart& part : run.matrix.parts) {
      if (&part.stored() != last) checkpoint.release(part.stored());
      last = &part.stored();
    }
  }
}

}  // namespace

void EncodingError::add(const EncodingError& other) {
  squared_error += other.squared_error;
  squares += other.squares;
  largest = std::max(largest, other.largest);
}

double EncodingError::relative() const { return squares > 0.0 ? std::sqrt(squared_error / squares) : 0.0; }

std::uint64_t stored_bytes(const PlannedItem& item) {
  return item.matrix != nullptr ? item.matrix->stored_bytes() : item.other->stored->byte_size();
}

std::uint64_t written_bytes(const PlannedItem& item) {
  std::uint64_t bytes = 0;
  for (const EncodedPart& part : item.parts) bytes += part.tensor.byte_size();
  if (item.matrix != nullptr) return bytes;
  const StoredTensor& stored = *item.other->stored;
  return item.as_stored ? stored.byte_size() : static_cast<std::uint64_t>(stored.elements()) * sizeof(float);
}

struct QuantizeRun::Step {
  std::int64_t first = 0, rows = 0;  // of the matrix
  std::vector<Bytes> parts;          // the rows of the step; of a part of the whole matrix, one copy a tile
};

QuantizeRun::QuantizeRun(const QuantizePlan& plan, const Qwen3_5Config& config, const Checkpoint& checkpoint,
                         const SourceView& view, ThreadPool& pool, Progress progress)
    : plan_(plan), config_(config), checkpoint_(checkpoint), view_(view), pool_(pool), progress_(std::move(progress)) {
  for (const PlannedItem& item : plan_.items) {
    total_ += stored_bytes(item);
    if (item.matrix != nullptr && item.encoder->needs_extreme) stacks_[item.matrix->stack].push_back(item.matrix);
  }
}

void QuantizeRun::advance(std::uint64_t bytes) {
  done_ += bytes;
  if (progress_) progress_(done_, total_);
}

float QuantizeRun::largest_magnitude(const MatrixRows& matrix) {
  constexpr std::int64_t tile_rows = 32;
  const std::int64_t tiles = ceil_divide(matrix.out, tile_rows);
  std::vector<float> found(static_cast<std::size_t>(tiles), 0.0f);
  pool_.parallel_items(tiles, [&](std::int64_t tile, int /*thread*/) {
    const std::int64_t first = tile * tile_rows, rows = std::min(tile_rows, matrix.out - first);
    std::vector<float> values(static_cast<std::size_t>(rows * matrix.in));
    matrix.read(first, rows, values.data());
    float& extreme = found[static_cast<std::size_t>(tile)];
    for (const float value : values) extreme = std::max(extreme, std::fabs(value));
  });
  return *std::ranges::max_element(found);
}

float QuantizeRun::extreme_of(const PlannedItem& item) {
  if (!item.encoder->needs_extreme) return 0.0f;
  const std::int64_t stack = item.matrix->stack;
  const auto known = extremes_.find(stack);
  if (known != extremes_.end()) return known->second;
  float extreme = 0.0f;
  for (const MatrixRows* matrix : stacks_.at(stack)) extreme = std::max(extreme, largest_magnitude(*matrix));
  extremes_[stack] = extreme;
  return extreme;
}

EncodingError QuantizeRun::encode_step(const PlannedItem& item, float extreme, Step& step) {
  const Encoder& encoder = *item.encoder;
  const std::int64_t in = item.matrix->in, tiles = ceil_divide(step.rows, encoder.tile_rows);
  step.parts.resize(item.parts.size());
  for (std::size_t p = 0; p < item.parts.size(); ++p) {
    const std::size_t copies = item.parts[p].rows == 0 ? static_cast<std::size_t>(tiles) : 1;
    step.parts[p].assign(part_bytes(item.parts[p], step.rows) * copies, std::byte{});
  }
  std::vector<EncodingError> errors(static_cast<std::size_t>(tiles));
  pool_.parallel_items(tiles, [&](std::int64_t index, int /*thread*/) {
    const std::int64_t first = index * encoder.tile_rows, rows = std::min(encoder.tile_rows, step.rows - first);
    std::vector<float> values(static_cast<std::size_t>(rows * in)), decoded(values.size());
    item.matrix->read(step.first + first, rows, values.data());
    std::vector<std::byte*> places;
    for (std::size_t p = 0; p < item.parts.size(); ++p) {
      const EncodedPart& part = item.parts[p];
      const std::size_t offset =
          part.rows == 0 ? part_bytes(part, 0) * static_cast<std::size_t>(index) : part_bytes(part, first);
      places.push_back(step.parts[p].data() + offset);
    }
    const RowTile tile{values.data(), rows, item.matrix->out, in, extreme};
    try {
      encoder.encode(tile, places);
    } catch (const Error& error) {
      fail<Error>("{}: {}", item.matrix->name, error.what());
    }
    std::vector<StoredTensor> tensors;
    encoded_tile(encoder, item.parts, tile, places, tensors).dequantize(0, rows, decoded.data());
    EncodingError& error = errors[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float difference = std::fabs(decoded[i] - values[i]);
      error.squared_error += static_cast<double>(difference) * static_cast<double>(difference);
      error.squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      error.largest = std::max(error.largest, difference);
    }
  });
  EncodingError sum;
  for (const EncodingError& error : errors) sum.add(error);
  return sum;
}

EncodingError QuantizeRun::write_matrix(const PlannedItem& item, TensorWriter& writer) {
  const MatrixRows& matrix = *item.matrix;
  const float extreme = extreme_of(item);
  const std::int64_t step_rows = item.encoder->tile_rows * tiles_per_thread * pool_.size();
  const std::uint64_t bytes = stored_bytes(item);
  std::vector<Bytes> rest(item.parts.size());  // what comes behind the values
  EncodingError error;
  Step step;
  for (std::int64_t first = 0; first < matrix.out; first += step.rows) {
    step.first = first;
    step.rows = std::min(step_rows, matrix.out - first);
    error.add(encode_step(item, extreme, step));
    writer.write(step.parts[0]);
    for (std::size_t p = 1; p < item.parts.size(); ++p) {
      if (item.parts[p].rows > 0) rest[p].insert(rest[p].end(), step.parts[p].begin(), step.parts[p].end());
      if (item.parts[p].rows == 0)
        rest[p].assign(step.parts[p].begin(),
                       step.parts[p].begin() + static_cast<std::ptrdiff_t>(part_bytes(item.parts[p], 0)));
    }
    const auto share = [&](std::int64_t row) {
      return static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(row) /
                                        static_cast<double>(matrix.out));
    };
    advance(share(first + step.rows) - share(first));
  }
  for (std::size_t p = 1; p < rest.size(); ++p) writer.write(rest[p]);
  release(matrix, checkpoint_);
  return error;
}

void QuantizeRun::write_other(const PlannedItem& item, TensorWriter& writer) {
  const StoredTensor& stored = *item.other->stored;
  if (item.as_stored) {
    writer.write(checkpoint_.bytes(stored));
  } else {
    writer.write(std::as_bytes(std::span<const float>(other_values(*item.other, config_, checkpoint_, view_))));
  }
  checkpoint_.release(stored);
  advance(stored_bytes(item));
}

std::vector<EncodingError> QuantizeRun::write(TensorWriter& writer) {
  std::vector<EncodingError> errors;
  for (const PlannedItem& item : plan_.items) {
    errors.push_back(item.matrix != nullptr ? write_matrix(item, writer) : EncodingError{});
    if (item.matrix == nullptr) write_other(item, writer);
  }
  return errors;
}

}  // namespace sluice
