#include "engine/batch_builder.h"

#include <algorithm>

#include "cache/kv_pool.h"

namespace sluice {

namespace {
constexpr std::int64_t part_alignment = 16;  // elements: each array begins at a multiple of 64 bytes
}  // namespace

/// One array within the host copy and the device copy.
struct BatchBuilder::Part {
  Part(std::int64_t& end, Shape array) : begin(end), shape(array) {
    end += (shape.elements() + part_alignment - 1) / part_alignment * part_alignment;
  }
  std::int32_t* in(std::vector<std::int32_t>& host) const { return host.data() + begin; }
  Tensor of(const Tensor& device) const { return Tensor(device.as<std::int32_t>() + begin, DType::i32, shape); }
  std::int64_t begin;
  Shape shape;
};

BatchView BatchBuilder::build(std::span<const BatchSequence> sequences, Ops& ops) {
  std::int64_t rows = 0, scored = 0, width = 0;
  for (const BatchSequence& sequence : sequences) {
    const std::int64_t length = sequence.context + std::ssize(sequence.tokens);
    CHECK(sequence.scored_rows >= 0 && sequence.scored_rows <= std::ssize(sequence.tokens), "{} of {} rows scored",
          sequence.scored_rows, sequence.tokens.size());
    CHECK(!sequence.tokens.empty() && kv_blocks_for(length) <= std::ssize(sequence.blocks) && sequence.slot >= 0,
          "{} + {} tokens in {} blocks, slot {}", sequence.context, sequence.tokens.size(), sequence.blocks.size(),
          sequence.slot);
    rows += std::ssize(sequence.tokens);
    scored += sequence.scored_rows;
    width = std::max(width, kv_blocks_for(length));
  }
  const std::int64_t count = std::ssize(sequences);
  std::int64_t end = 0;
  const Part token_ids(end, {rows}), positions(end, {3, rows}), starts(end, {count + 1}), contexts(end, {count}),
      table(end, {count, width}), slots(end, {count}), score_rows(end, {scored});

  host_.assign(static_cast<std::size_t>(end), 0);
  std::fill_n(table.in(host_), count * width, -1);
  std::int32_t* score = score_rows.in(host_);
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const BatchSequence& sequence = sequences[static_cast<std::size_t>(i)];
    const std::int64_t tokens = std::ssize(sequence.tokens);
    std::copy(sequence.tokens.begin(), sequence.tokens.end(), token_ids.in(host_) + row);
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      std::int32_t* position = positions.in(host_) + axis * rows + row;
      for (std::int64_t t = 0; t < tokens; ++t) position[t] = static_cast<std::int32_t>(sequence.context + t);
    }
    const std::int64_t blocks = kv_blocks_for(sequence.context + tokens);
    std::copy_n(sequence.blocks.begin(), blocks, table.in(host_) + i * width);
    starts.in(host_)[i] = static_cast<std::int32_t>(row);
    contexts.in(host_)[i] = static_cast<std::int32_t>(sequence.context);
    slots.in(host_)[i] = sequence.slot;
    row += tokens;
    for (std::int64_t t = row - sequence.scored_rows; t < row; ++t) *score++ = static_cast<std::int32_t>(t);
  }
  starts.in(host_)[count] = static_cast<std::int32_t>(row);

  const Tensor device = ops.allocate(DType::i32, {end});
  ops.to_device(device, host_.data());
  return {token_ids.of(device), positions.of(device), starts.of(device),    contexts.of(device),
          table.of(device),     slots.of(device),     score_rows.of(device)};
}

}  // namespace sluice
