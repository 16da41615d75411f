// Matrix products of the CPU backend, against the limits of the machine:
//   linear_bench [THREADS [INSTRUCTION_SET [f32|bf16 [FORM]]]]    FORM: bf16, or a name of
//   tests/support/quantized_matrices.h
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "cpu/cpu_ops.h"
#include "cpu/probes.h"
#include "support/quantized_matrices.h"

using namespace sluice;

namespace {

/// A matrix "m" of small bf16 numbers, or of random codes in a quantized form.
SourceMatrix make_matrix(test::MemoryCheckpoint& to, const std::string& form, std::int64_t out, std::int64_t in) {
  test::RandomTensors random(1);
  if (form == "bf16") {
    to.add_values("m.weight", DType::bf16, {out, in}, random.bfloats(out * in));
  } else {
    const auto forms = test::quantized_forms();
    const auto found = std::ranges::find(forms, form, &test::QuantizedForm::name);
    if (found == forms.end()) fail<UsageError>("the form {} is unknown", form);
    found->write(to, random, out, in);
  }
  return to.matrix("m", out, in);
}

double seconds(const std::chrono::steady_clock::time_point& since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

/// Seconds of the fastest of many products of these rows with some matrices in turn, so that the caches hold none.
double best_time(Ops& ops, const std::vector<WeightPtr>& weights, std::int64_t rows) {
  const std::int64_t in = weights.front()->in();
  std::vector<float> x(static_cast<std::size_t>(rows * in), 0.5f);
  double best = 1e9;
  const auto begin = std::chrono::steady_clock::now();
  for (int repetition = 0; repetition < 3 || seconds(begin) < 0.25; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    for (const WeightPtr& weight : weights) {
      const Scope scope(ops);
      ops.linear(Tensor(x.data(), DType::f32, {rows, in}), *weight);
    }
    best = std::min(best, seconds(start) / static_cast<double>(weights.size()));
  }
  return best;
}

void measure_shape(Ops& ops, const std::string& form, std::int64_t out, std::int64_t in) {
  test::MemoryCheckpoint checkpoint;
  const SourceMatrix matrix = make_matrix(checkpoint, form, out, in);
  std::vector<WeightPtr> weights;
  const std::int64_t copies = 1 + (std::int64_t{160} << 20) / (2 * out * in);
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < copies; ++i) weights.push_back(ops.placer().place({&matrix, 1}));
  const auto bytes = static_cast<double>(weights.front()->bytes());
  const double placing = seconds(begin) / static_cast<double>(copies);
  std::printf("[%lld, %lld] placed %.1f GB/s |", static_cast<long long>(out), static_cast<long long>(in),
              bytes / placing * 1e-9);
  for (const std::int64_t rows : {1, 4, 8}) {
    std::printf(" %lld rows %.1f GB/s |", static_cast<long long>(rows), bytes / best_time(ops, weights, rows) * 1e-9);
  }
  for (const std::int64_t rows : {16, 64, 512}) {
    const double flops = 2.0 * static_cast<double>(rows * out * in);
    std::printf(" %lld rows %.1f GFLOP/s |", static_cast<long long>(rows),
                flops / best_time(ops, weights, rows) * 1e-9);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    CpuOptions options;
    if (count > 1) options.threads = std::atoi(arguments[1]);
    if (count > 2) options.instruction_set = arguments[2];
    if (count > 3 && std::string(arguments[3]) == "f32") options.compute = Compute::f32;
    {
      ThreadPool pool(options.threads > 0 ? options.threads : usable_processors());
      const MachineLimits limits = measure_machine_limits(pool, choose_instruction_set(options.instruction_set));
      std::printf("limits: read %.1f GB/s, float32 %.1f GFLOP/s, bf16 %.1f GFLOP/s\n",
                  limits.read_bytes_per_second * 1e-9, limits.f32_flops * 1e-9, limits.bf16_flops * 1e-9);
    }
    const std::string form = count > 4 ? arguments[4] : "bf16";
    const auto ops = make_cpu_backend(options);
    for (const std::string& line : ops->describe()) std::printf("%s\n", line.c_str());
    measure_shape(*ops, form, 8192, 1024);
    measure_shape(*ops, form, 7168, 1024);
    measure_shape(*ops, form, 1024, 3584);
    measure_shape(*ops, form, 1024, 2048);
    measure_shape(*ops, form, 32, 1024);
    measure_shape(*ops, form, 65536, 1024);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "linear_bench: %s\n", error.what());
    return 1;
  }
}
