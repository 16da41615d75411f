#include <cmath>

#include "cpu/batch_rows.h"
#include "cpu/cpu_ops.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

namespace {

constexpr float l2_eps = 1e-6f;

/// The tensors of one call.
struct DeltaRule {
  HeadRows q, k, v, g, beta, out;
  HeadMap map;
  const RowKernels& kernels;

  std::int64_t key_head(std::int64_t head) const {
    return map == HeadMap::tiled ? head % k.heads : head / (v.heads / k.heads);
  }
};

/// Some value columns of one value head of one sequence.
struct DeltaPart {
  SequenceRows rows;
  std::int64_t head, first_column, columns;
  float* state;  // [key_dim, value_dim], from first_column on
  std::int64_t state_stride;
};

/// Floats of scratch that run_part wants.
std::int64_t scratch_floats(std::int64_t key_dim) {
  return delta_scratch_floats(key_dim) + 2 * delta_chunk * (key_dim + 1);
}

/// `tokens` <= delta_chunk rows from `row` on, in chunked form where they are a whole chunk.
void run_rows(const DeltaRule& rule, const DeltaPart& part, std::int64_t row, std::int64_t tokens, bool chunked,
              float* scratch) {
  const std::int64_t n = rule.k.n;
  float* q = scratch;
  float* k = q + delta_chunk * n;
  float* decay = k + delta_chunk * n;
  float* beta = decay + delta_chunk;
  const std::int64_t key_head = rule.key_head(part.head);
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(n));
  for (std::int64_t t = 0; t < tokens; ++t) {
    rule.kernels.l2_norm(q + t * n, rule.q.at(row + t, key_head), l2_eps, query_scale, n);
    rule.kernels.l2_norm(k + t * n, rule.k.at(row + t, key_head), l2_eps, 1.0f, n);
    const float g = rule.g.at(row + t)[part.head];
    decay[t] = chunked ? g : std::exp(g);
    beta[t] = rule.beta.at(row + t)[part.head];
  }
  const DeltaHead head{n,
                       part.columns,
                       part.state,
                       part.state_stride,
                       q,
                       k,
                       rule.v.at(row, part.head) + part.first_column,
                       rule.v.row_stride,
                       decay,
                       beta,
                       rule.out.at(row, part.head) + part.first_column,
                       rule.out.row_stride,
                       beta + delta_chunk};
  if (chunked) {
    rule.kernels.delta_chunk_step(head);
  } else {
    rule.kernels.delta_steps(head, tokens);
  }
}

/// Chunks lie on multiples of delta_chunk of the sequence. A chunk of which the step holds all tokens goes in chunked
/// form, others token by token: so however a prompt is cut at such multiples, and wherever decoding takes over, the
/// sums are the same.
void run_part(const DeltaRule& rule, const DeltaPart& part, float* scratch) {
  std::int64_t done = 0;
  while (done < part.rows.count) {
    const std::int64_t room = delta_chunk - (part.rows.context + done) % delta_chunk;
    const std::int64_t tokens = std::min(room, part.rows.count - done);
    run_rows(rule, part, part.rows.first + done, tokens, tokens == delta_chunk, scratch);
    done += tokens;
  }
}

}  // namespace

Tensor CpuOps::delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& beta,
                          HeadMap map, const StateView& state, const BatchView& batch) {
  CHECK(q.rank() == 3 && q.shape() == k.shape() && v.rank() == 3 && v.size(0) == q.size(0) &&
            q.size(0) == batch.rows() && v.size(1) % q.size(1) == 0,
        "q {}, k {}, v {} for {} rows", q.shape().to_string(), k.shape().to_string(), v.shape().to_string(),
        batch.rows());
  const std::int64_t heads = v.size(1), key_dim = q.size(2), value_dim = v.size(2);
  CHECK(key_dim % 16 == 0 && value_dim % 16 == 0, "heads of {} x {}: not multiples of 16", key_dim, value_dim);
  CHECK(g.shape() == (Shape{v.size(0), heads}) && beta.shape() == g.shape(), "g {}, beta {}", g.shape().to_string(),
        beta.shape().to_string());
  CHECK(state.recurrent.dtype() == DType::f32 && state.recurrent.is_contiguous() &&
            state.recurrent.shape() == (Shape{state.recurrent.size(0), heads, key_dim * value_dim}),
        "state {} for {} heads of {} x {}", state.recurrent.shape().to_string(), heads, key_dim, value_dim);

  const Tensor result = allocate(DType::f32, v.shape());
  const DeltaRule rule{HeadRows(q),    HeadRows(k),      HeadRows(v), HeadRows(g),
                       HeadRows(beta), HeadRows(result), map,         row_kernels(instruction_set_)};
  const Scope scope(*this);
  const Tensor scratch = allocate(DType::f32, {pool_.size(), scratch_floats(key_dim)});
  // Columns of the state are independent; they are cut only where there are not heads enough.
  std::int64_t cuts = 1;
  while (batch.sequences() * heads * cuts < 2 * pool_.size() && value_dim % (32 * cuts) == 0) cuts *= 2;
  const std::int64_t columns = value_dim / cuts;
  pool_.parallel_items(batch.sequences() * heads * cuts, [&](std::int64_t item, int thread) {
    const std::int64_t sequence = item / (heads * cuts);
    const std::int64_t head = item / cuts % heads;
    const std::int64_t first_column = item % cuts * columns;
    const std::int64_t slot = state_slot(batch, sequence, state.recurrent.size(0));
    float* head_state = state.recurrent.row<float>(slot) + head * key_dim * value_dim + first_column;
    run_part(rule, {sequence_rows(batch, sequence), head, first_column, columns, head_state, value_dim},
             scratch.row<float>(thread));
  });
  return result;
}

}  // namespace sluice
