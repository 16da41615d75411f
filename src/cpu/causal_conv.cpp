#include <cstring>

#include "cpu/batch_rows.h"
#include "cpu/cpu_ops.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

namespace {

constexpr std::int64_t most_taps = 8;
constexpr std::int64_t channel_block = 512;

/// Some channels of one sequence.
struct ConvPart {
  std::int64_t taps, channels;  // channels of this part
  const float* weights;         // [channels, taps]
  float* state;                 // [taps - 1] rows, state_stride apart
  std::int64_t state_stride;
  const float* in;  // [rows]
  std::int64_t in_stride;
  float* out;
  std::int64_t out_stride, rows;
};

/// Input `row` of the sequence; those before row 0 come from the state.
const float* input_row(const ConvPart& part, std::int64_t row) {
  return row >= 0 ? part.in + row * part.in_stride : part.state + (part.taps - 1 + row) * part.state_stride;
}

void convolve_part(const RowKernels& kernels, const ConvPart& part) {
  float weights[most_taps * channel_block];  // [taps, channels]
  for (std::int64_t c = 0; c < part.channels; ++c) {
    for (std::int64_t tap = 0; tap < part.taps; ++tap) {
      weights[tap * part.channels + c] = part.weights[c * part.taps + tap];
    }
  }
  const float* inputs[most_taps];
  for (std::int64_t row = 0; row < part.rows; ++row) {
    for (std::int64_t tap = 0; tap < part.taps; ++tap) inputs[tap] = input_row(part, row - part.taps + 1 + tap);
    kernels.convolve(part.out + row * part.out_stride, inputs, weights, part.channels, static_cast<int>(part.taps),
                     part.channels);
  }
  // Upwards: with fewer rows than the state holds, its later rows move to earlier places.
  for (std::int64_t kept = 0; kept < part.taps - 1; ++kept) {
    const float* source = input_row(part, part.rows - part.taps + 1 + kept);
    std::memmove(part.state + kept * part.state_stride, source,
                 static_cast<std::size_t>(part.channels) * sizeof(float));
  }
}

}  // namespace

Tensor CpuOps::causal_conv(const Tensor& x, const Tensor& weight, const StateView& state, const BatchView& batch) {
  const HeadRows in(x);
  const std::int64_t taps = weight.size(1);
  CHECK(x.rank() == 2 && weight.is_contiguous() && weight.size(0) == in.n && taps >= 2 && taps <= most_taps, "{} by {}",
        x.shape().to_string(), weight.shape().to_string());
  CHECK(state.conv.rank() == 3 && state.conv.is_contiguous() && state.conv.dtype() == DType::f32 &&
            state.conv.size(1) == taps - 1 && state.conv.size(2) == in.n,
        "conv state {} for {}", state.conv.shape().to_string(), weight.shape().to_string());
  const Tensor result = allocate(DType::f32, x.shape());
  const RowKernels& kernels = row_kernels(instruction_set_);
  const std::int64_t blocks = (in.n + channel_block - 1) / channel_block;
  pool_.parallel_items(batch.sequences() * blocks, [&](std::int64_t item, int) {
    const std::int64_t sequence = item / blocks;
    const std::int64_t channel = item % blocks * channel_block;
    const SequenceRows rows = sequence_rows(batch, sequence);
    const std::int64_t slot = state_slot(batch, sequence, state.conv.size(0));
    convolve_part(kernels, {taps, std::min(channel_block, in.n - channel), weight.as<float>() + channel * taps,
                            state.conv.row<float>(slot) + channel, in.n, in.at(rows.first) + channel, in.row_stride,
                            result.row<float>(rows.first) + channel, in.n, rows.count});
  });
  return result;
}

}  // namespace sluice
