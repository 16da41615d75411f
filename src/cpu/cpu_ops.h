#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/backend.h"
#include "cpu/linear/placer.h"
#include "cpu/simd/instruction_set.h"
#include "ops/ops.h"

namespace sluice {

struct HeadRows;

/// The CPU backend: activations and state in float32; products and KV as Compute says. One file an operation.
class CpuOps final : public Ops {
 public:
  explicit CpuOps(const CpuOptions& options);

  std::vector<std::string> describe() const override;
  Placer& placer() override { return placer_; }
  DType activation_dtype() const override { return DType::f32; }
  DType kv_dtype() const override { return compute_ == Compute::bf16 ? DType::bf16 : DType::f32; }
  std::uint64_t free_memory() const override;
  Buffer new_buffer(std::size_t bytes) override { return host_buffer(bytes); }
  Tensor allocate(DType dtype, Shape shape) override;
  Arena::Mark mark() const override { return arena_.mark(); }
  void release(Arena::Mark mark) override { arena_.release(mark); }
  void to_device(const Tensor& destination, const void* host) override;
  void to_host(void* host, const Tensor& source) override;
  void fill_bytes(const Tensor& tensor, std::uint8_t value) override;
  void bind_thread() override { pool_.pin_caller(); }

  Tensor embed(const Weight& table, const Tensor& ids) override;
  Tensor linear(const Tensor& x, const Weight& w) override;
  Tensor linear_f32(const Tensor& x, const Weight& w) override { return linear(x, w); }
  void add_bias(const Tensor& x, const Tensor& bias) override;
  Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps) override;
  void add_to(const Tensor& residual, const Tensor& x) override;
  Tensor silu_mul(const Tensor& gate_up) override;
  void sigmoid_mul(const Tensor& x, const Tensor& gate) override;
  void rope(const Tensor& x, const BatchView& batch, const Rope& rope) override;
  void append_kv(const Tensor& k, const Tensor& v, const KvView& cache, const BatchView& batch) override;
  Tensor attention(const Tensor& q, const KvView& cache, const BatchView& batch, float scale) override;
  Tensor causal_conv(const Tensor& x, const Tensor& weight, const StateView& state, const BatchView& batch) override;
  std::pair<Tensor, Tensor> delta_gates(const Tensor& ba, const Tensor& decay, const Tensor& dt_bias) override;
  Tensor delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& beta, HeadMap map,
                    const StateView& state, const BatchView& batch) override;
  Tensor gated_rms_norm(const Tensor& x, const Tensor& gate, const Tensor& weight, float eps,
                        GateActivation activation) override;
  Routing route(const Tensor& logits, std::int64_t k) override;
  Tensor experts(const Tensor& x, const Routing& routing, const ExpertWeights& gate_up,
                 const ExpertWeights& down) override;
  void add_gated(const Tensor& accumulate, const Tensor& x, const Tensor& gate) override;
  Tensor gather_rows(const Tensor& x, const Tensor& indices) override;
  Tensor concat_columns(const Tensor& a, const Tensor& b) override;

  Tensor add_rms_norm(const Tensor& residual, const Tensor& x, const Tensor& weight, float eps) override;
  Tensor prepare_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& q_norm,
                           const Tensor& k_norm, float eps, const Rope& rope, const KvView& cache,
                           const BatchView& batch) override;

 private:
  /// experts() of some rows, to rows of `result` that are its own.
  void expert_rows(const HeadRows& in, const Routing& routing, const CpuExpertWeights& gate_up,
                   const CpuExpertWeights& down, std::int64_t first_row, std::int64_t rows, const Tensor& result);

  Compute compute_;
  const InstructionSet& instruction_set_;
  ThreadPool pool_;
  Arena arena_;
  CpuPlacer placer_;
};

}  // namespace sluice
