#pragma once
#include <cstdint>

namespace sluice {

struct InstructionSet;

/// Keys that attention takes at a time, and so the grid of absolute positions on which its sums are cut.
inline constexpr int attention_tile = 64;
/// Tokens of one chunk of the delta rule.
inline constexpr int delta_chunk = 64;
/// Most columns of the state that the delta rule works on at a time.
inline constexpr int delta_strip = 32;

/// Softmax attention of `queries` rows over one tile of keys, added to running sums. All packed, float32.
struct AttentionTile {
  std::int64_t head_dim, queries;
  const float* q;       // [queries, head_dim], already scaled
  const float* keys;    // [attention_tile, head_dim]; what lies beyond the last visible key is not used
  const float* values;  // the same
  const int* visible;   // [queries] keys that the query sees, 0 .. attention_tile
  float* scores;        // [queries, attention_tile], scratch
  float* maxima;        // [queries] running
  float* sums;          // [queries] running
  float* accumulators;  // [queries, head_dim] running
};

/// One (sequence, value head) of the delta rule: the state [key_dim, value_dim] and rows of one token each.
struct DeltaHead {
  std::int64_t key_dim, value_dim;
  float* state;  // row r at r * state_stride
  std::int64_t state_stride;
  const float* q;  // [tokens, key_dim] packed, normalized and scaled
  const float* k;  // the same, normalized
  const float* v;  // [tokens, value_dim], row t at t * v_stride
  std::int64_t v_stride;
  const float* decay;  // delta_steps: [tokens] exp(g); delta_chunk_step: g itself
  const float* beta;   // [tokens]
  float* out;          // [tokens, value_dim], row t at t * out_stride
  std::int64_t out_stride;
  float* scratch;  // delta_scratch_floats(key_dim)
};

/// The inner loops of the operations on rows, one table for each instruction set. `n` counts float32 elements of
/// packed rows; inputs and outputs may be the same row where an operation is called "in place".
/// The order of additions within a row is fixed by n alone.
struct RowKernels {
  void (*add)(float* out, const float* x, std::int64_t n);                      // out += x
  void (*add_scaled)(float* out, const float* x, float scale, std::int64_t n);  // out += scale * x
  void (*silu_mul)(float* out, const float* gate, const float* up, std::int64_t n);
  void (*sigmoid_mul)(float* x, const float* gate, std::int64_t n);  // x *= sigmoid(gate)
  void (*exp_into)(float* out, const float* x, std::int64_t n);
  void (*rms_norm)(float* out, const float* x, const float* weight, float eps, std::int64_t n);
  /// out = rms_norm(x) * weight * gate * sigmoid(gate), or without the second factor gate.
  void (*gated_rms_norm)(float* out, const float* x, const float* gate, const float* weight, float eps, bool swish,
                         std::int64_t n);
  /// out = x * scale / sqrt(sum of squares + eps).
  void (*l2_norm)(float* out, const float* x, float eps, float scale, std::int64_t n);
  /// out[c] = silu(sum over taps t of weights[t * weight_stride + c] * inputs[t][c]), oldest tap first.
  void (*convolve)(float* out, const float* const* inputs, const float* weights, std::int64_t weight_stride, int taps,
                   std::int64_t n);
  /// Rotate-half: (x[i], x[i + n]) turned by the angle of cosines[i], sines[i]; in place.
  void (*rotate)(float* x, const float* cosines, const float* sines, std::int64_t n);
  void (*to_bf16)(std::uint16_t* out, const float* x, std::int64_t n);
  void (*from_bf16)(float* out, const std::uint16_t* x, std::int64_t n);
  void (*attend)(const AttentionTile& tile);
  /// The recurrence, one token after another.
  void (*delta_steps)(const DeltaHead& head, std::int64_t tokens);
  /// The same for exactly delta_chunk tokens at once, in chunked form.
  void (*delta_chunk_step)(const DeltaHead& head);
};

/// Scratch of delta_steps and delta_chunk_step: a strip of the state; [chunk, key_dim] keys transposed and decayed; two
/// [chunk, chunk] matrices; corrected values and results of a strip.
inline constexpr std::int64_t delta_scratch_floats(std::int64_t key_dim) {
  return key_dim * delta_strip + 2 * delta_chunk * (key_dim + delta_chunk + delta_strip);
}

extern const RowKernels row_kernels_plain, row_kernels_avx2, row_kernels_avx512;

/// The fastest table that a machine of this instruction set can run.
const RowKernels& row_kernels(const InstructionSet& instruction_set);

}  // namespace sluice
