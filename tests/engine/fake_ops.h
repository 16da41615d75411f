#pragma once
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ops/ops.h"

namespace sluice {

/// A machine with host memory and no arithmetic: enough for an engine whose model computes by itself.
class FakeOps : public Ops {
 public:
  struct Plan {
    std::uint64_t free_memory = 1u << 20;
    std::atomic<int> steps_until_failure{-1};  // -1: never
    std::atomic<int> steps{0};
    std::chrono::milliseconds step_time{0};
    std::atomic<bool> held{false};  // the next step waits for go_on()

    void go_on() {
      held = false;
      held.notify_all();
    }
  };
  explicit FakeOps(Plan& plan) : plan_(plan) {}

  std::vector<std::string> describe() const override { return {"device       fake"}; }
  Placer& placer() override { missing(); }
  DType activation_dtype() const override { return DType::f32; }
  DType kv_dtype() const override { return DType::f32; }
  std::uint64_t free_memory() const override { return plan_.free_memory; }
  Buffer new_buffer(std::size_t bytes) override { return host_buffer(bytes); }
  Tensor allocate(DType dtype, Shape shape) override {
    return Tensor(arena_.allocate(static_cast<std::size_t>(shape.elements()) * size_of(dtype)), dtype, shape);
  }
  Arena::Mark mark() const override { return arena_.mark(); }
  void release(Arena::Mark mark) override { arena_.release(mark); }
  void to_device(const Tensor& destination, const void* host) override {
    std::memcpy(destination.data(), host, destination.bytes());
  }
  void to_host(void* host, const Tensor& source) override { std::memcpy(host, source.data(), source.bytes()); }
  void fill_bytes(const Tensor& tensor, std::uint8_t value) override {
    std::memset(tensor.data(), value, tensor.bytes());
  }
  void step(std::int64_t, const std::function<void()>& body) override {
    plan_.held.wait(true);
    if (plan_.step_time.count() > 0) std::this_thread::sleep_for(plan_.step_time);
    if (plan_.steps_until_failure == 0) throw DeviceError("the fake device is gone");
    if (plan_.steps_until_failure > 0) --plan_.steps_until_failure;
    ++plan_.steps;
    body();
  }

  Tensor embed(const Weight&, const Tensor&) override { missing(); }
  Tensor linear(const Tensor&, const Weight&) override { missing(); }
  Tensor linear_f32(const Tensor&, const Weight&) override { missing(); }
  void add_bias(const Tensor&, const Tensor&) override { missing(); }
  Tensor rms_norm(const Tensor&, const Tensor&, float) override { missing(); }
  void add_to(const Tensor&, const Tensor&) override { missing(); }
  Tensor silu_mul(const Tensor&) override { missing(); }
  void sigmoid_mul(const Tensor&, const Tensor&) override { missing(); }
  void rope(const Tensor&, const BatchView&, const Rope&) override { missing(); }
  void append_kv(const Tensor&, const Tensor&, const KvView&, const BatchView&) override { missing(); }
  Tensor attention(const Tensor&, const KvView&, const BatchView&, float) override { missing(); }
  Tensor causal_conv(const Tensor&, const Tensor&, const StateView&, const BatchView&) override { missing(); }
  std::pair<Tensor, Tensor> delta_gates(const Tensor&, const Tensor&, const Tensor&) override { missing(); }
  Tensor delta_rule(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, HeadMap,
                    const StateView&, const BatchView&) override {
    missing();
  }
  Tensor gated_rms_norm(const Tensor&, const Tensor&, const Tensor&, float, GateActivation) override { missing(); }
  Routing route(const Tensor&, std::int64_t) override { missing(); }
  Tensor experts(const Tensor&, const Routing&, const ExpertWeights&, const ExpertWeights&) override { missing(); }
  void add_gated(const Tensor&, const Tensor&, const Tensor&) override { missing(); }
  Tensor gather_rows(const Tensor&, const Tensor&) override { missing(); }
  Tensor concat_columns(const Tensor&, const Tensor&) override { missing(); }

 private:
  [[noreturn]] static void missing() { throw InternalError("an operation that the fake machine does not have"); }
  Plan& plan_;
  Arena arena_;
};

}  // namespace sluice
