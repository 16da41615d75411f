#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/views.h"
#include "tensor/arena.h"
#include "tensor/buffer.h"
#include "weights/weight.h"

namespace sluice {

/// Kinds of gate of the delta net's output norm.
enum class GateActivation : std::uint8_t { swish, sigmoid };

/// Which key head the delta net's value head h reads: h / (value_heads / key_heads), or h % key_heads.
enum class HeadMap : std::uint8_t { grouped, tiled };

/// Everything a model may ask of a machine. Row tensors are [rows, columns] in activation_dtype(), innermost
/// dimension contiguous; results are step memory of the innermost Scope. Sums are accumulated in float32.
/// A fused operation has its definition as default body; a backend may override it with something equal but faster.
class Ops {
 public:
  virtual ~Ops() = default;

  // ---- The machine
  /// Lines for people: device, threads, kernels chosen.
  virtual std::vector<std::string> describe() const = 0;
  virtual Placer& placer() = 0;
  virtual DType activation_dtype() const = 0;
  virtual DType kv_dtype() const = 0;
  /// Bytes that caches may take now.
  virtual std::uint64_t free_memory() const = 0;
  /// Long-lived memory, zeroed.
  virtual Buffer new_buffer(std::size_t bytes) = 0;
  /// Step memory, uninitialized.
  virtual Tensor allocate(DType dtype, Shape shape) = 0;
  virtual Arena::Mark mark() const = 0;
  virtual void release(Arena::Mark mark) = 0;
  /// Between host memory (packed) and a contiguous tensor. Both return when the host memory may be used again.
  virtual void to_device(const Tensor& destination, const void* host) = 0;
  virtual void to_host(void* host, const Tensor& source) = 0;
  virtual void fill_bytes(const Tensor& tensor, std::uint8_t value) = 0;
  /// Called by the thread of the steps before the first one: the thread belongs to the machine from then on.
  virtual void bind_thread() {}
  /// Runs one step's operations. `rows` names the step's size; a backend may record the body and replay it.
  virtual void step(std::int64_t rows, const std::function<void()>& body);

  // ---- Primitives
  /// Rows `ids` of the table, [ids, in].
  virtual Tensor embed(const Weight& table, const Tensor& ids) = 0;
  /// x [rows, in] times w transposed: [rows, out]. A row's result does not depend on the other rows.
  virtual Tensor linear(const Tensor& x, const Weight& w) = 0;
  /// The same in float32, for logits.
  virtual Tensor linear_f32(const Tensor& x, const Weight& w) = 0;
  /// bias [columns] float32, added to each row of x.
  virtual void add_bias(const Tensor& x, const Tensor& bias) = 0;
  /// x * rsqrt(mean(x^2) + eps) * weight, over the innermost dimension of x [rows, n] or [rows, heads, n].
  virtual Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps) = 0;
  /// residual += x, in place.
  virtual void add_to(const Tensor& residual, const Tensor& x) = 0;
  /// gate_up [rows, 2 n], gates first: silu(gate) * up, [rows, n].
  virtual Tensor silu_mul(const Tensor& gate_up) = 0;
  /// x [rows, heads, n] *= sigmoid(gate), gate of the same shape; in place.
  virtual void sigmoid_mul(const Tensor& x, const Tensor& gate) = 0;
  /// Turns the leading dimensions of each head of x [rows, heads, head_dim] by its row's position; in place.
  virtual void rope(const Tensor& x, const BatchView& batch, const Rope& rope) = 0;
  /// Writes k and v [rows, kv_heads, head_dim] to the cache at their rows' places.
  virtual void append_kv(const Tensor& k, const Tensor& v, const KvView& cache, const BatchView& batch) = 0;
  /// Causal attention of q [rows, heads, head_dim] over the cache (this step's rows included): [rows, heads *
  /// head_dim].
  virtual Tensor attention(const Tensor& q, const KvView& cache, const BatchView& batch, float scale) = 0;
  /// Depthwise causal convolution of x [rows, channels] with weight [channels, taps] float32 (the last tap multiplies
  /// the current row), then SiLU. Reads and replaces the sequences' conv state.
  virtual Tensor causal_conv(const Tensor& x, const Tensor& weight, const StateView& state, const BatchView& batch) = 0;
  /// From ba [rows, 2 * heads], b first: beta = sigmoid(b), g = decay * softplus(a + dt_bias); both [rows, heads]
  /// float32. decay [heads] is -exp(A_log).
  virtual std::pair<Tensor, Tensor> delta_gates(const Tensor& ba, const Tensor& decay, const Tensor& dt_bias) = 0;
  /// The gated delta rule over each sequence's rows, state in float32, read and replaced (model.md 1.7, Gated DeltaNet,
  /// arXiv 2412.06464). q, k [rows, key_heads, key_dim], before normalization: both are divided by
  /// sqrt(sum of squares + 1e-6) here, and q is scaled by key_dim^-0.5. v [rows, value_heads, value_dim], whose heads
  /// read those key heads that `map` says. Result: [rows, value_heads, value_dim].
  virtual Tensor delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& beta,
                            HeadMap map, const StateView& state, const BatchView& batch) = 0;
  /// rms_norm over the innermost dimension of x [rows, heads, n], times act(gate) of the same shape: [rows, heads * n].
  virtual Tensor gated_rms_norm(const Tensor& x, const Tensor& gate, const Tensor& weight, float eps,
                                GateActivation activation) = 0;
  /// Softmax over all experts of logits [rows, experts], the k best (lower index first on a tie), renormalized.
  virtual Routing route(const Tensor& logits, std::int64_t k) = 0;
  /// Sum over a row's experts of weight * down(silu(gate) * up): [rows, hidden].
  virtual Tensor experts(const Tensor& x, const Routing& routing, const ExpertWeights& gate_up,
                         const ExpertWeights& down) = 0;
  /// accumulate += sigmoid(gate [rows, 1]) * x, in place.
  virtual void add_gated(const Tensor& accumulate, const Tensor& x, const Tensor& gate) = 0;
  /// Rows `indices` of x.
  virtual Tensor gather_rows(const Tensor& x, const Tensor& indices) = 0;
  /// [a | b] by columns.
  virtual Tensor concat_columns(const Tensor& a, const Tensor& b) = 0;

  // ---- Fusions
  /// residual += x, then rms_norm(residual).
  virtual Tensor add_rms_norm(const Tensor& residual, const Tensor& x, const Tensor& weight, float eps);
  /// Head norms of q and k, rotary embedding of both, append of k and v: what attention needs of a layer's projections.
  /// q [rows, heads, head_dim] may be strided; the prepared queries are returned.
  virtual Tensor prepare_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& q_norm,
                                   const Tensor& k_norm, float eps, const Rope& rope, const KvView& cache,
                                   const BatchView& batch);
  /// down(silu(gate) * up).
  virtual Tensor mlp(const Tensor& x, const Weight& gate_up, const Weight& down);
};

/// Frees the step memory that was allocated during its life.
class Scope {
 public:
  explicit Scope(Ops& ops) : ops_(ops), mark_(ops.mark()) {}
  ~Scope() { ops_.release(mark_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Ops& ops_;
  Arena::Mark mark_;
};

}  // namespace sluice
