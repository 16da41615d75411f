#include "cpu/probes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "cpu/simd/probe_kernels.h"
#include "tensor/buffer.h"

namespace sluice {

namespace {

/// Far more than the caches hold.
constexpr std::size_t read_bytes = std::size_t{512} << 20;
constexpr std::int64_t read_grain = 1 << 16;
constexpr std::int64_t multiply_rounds = 4'000'000;
/// The best of so many runs: others only disturb.
constexpr int repetitions = 5;

const ProbeKernels& probe_kernels(const InstructionSet& instruction_set) {
  if (instruction_set.avx512_bf16) return probe_kernels_avx512_bf16;
  if (instruction_set.avx512) return probe_kernels_avx512;
  if (instruction_set.avx2) return probe_kernels_avx2;
  return probe_kernels_plain;
}

/// Work per second of the fastest of some runs. `run` returns how much it did.
template <class Run>
double best_rate(Run run) {
  double best = 0.0;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const double work = run();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    best = std::max(best, work / std::max(time.count(), 1e-9));
  }
  return best;
}

double read_rate(ThreadPool& pool, const ProbeKernels& kernels) {
  const Buffer buffer = host_buffer(read_bytes);
  auto* data = static_cast<float*>(buffer.data());
  const auto count = static_cast<std::int64_t>(read_bytes / sizeof(float));
  // Written first, and by the threads that will read: untouched memory is one page of zeros.
  pool.parallel_for(count, read_grain, [&](std::int64_t begin, std::int64_t end) {
    std::memset(data + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
  std::atomic<float> sink = 0.0f;
  return best_rate([&] {
    pool.parallel_for(count, read_grain, [&](std::int64_t begin, std::int64_t end) {
      sink.store(kernels.read(data + begin, end - begin), std::memory_order_relaxed);
    });
    return static_cast<double>(read_bytes);
  });
}

double multiply_rate(ThreadPool& pool, std::int64_t (*multiply)(std::int64_t rounds, float* sink)) {
  return best_rate([&] {
    std::atomic<std::int64_t> operations = 0;
    pool.run([&](int) {
      float sink = 1.0f;
      operations += multiply(multiply_rounds, &sink);
    });
    return static_cast<double>(operations.load());
  });
}

}  // namespace

MachineLimits measure_machine_limits(ThreadPool& pool, const InstructionSet& instruction_set) {
  const ProbeKernels& kernels = probe_kernels(instruction_set);
  return {read_rate(pool, kernels), multiply_rate(pool, kernels.multiply_f32),
          multiply_rate(pool, kernels.multiply_bf16)};
}

}  // namespace sluice
