#include <algorithm>
#include <chrono>
#include <map>

#include "apps/bench_limits.h"
#include "apps/bench_report.h"
#include "apps/bench_serve.h"
#include "apps/bench_shapes.h"
#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/model_files.h"
#include "apps/output.h"
#include "apps/sequence_batch.h"
#include "apps/session.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "cpu/probes.h"
#include "cpu/simd/instruction_set.h"
#include "weights/safetensors.h"

namespace sluice {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

/// What is measured: the model and how its cases are called.
struct Subject {
  std::string name, format;
  Qwen3_5Config config;
  LoadedModel loaded;
};

/// Times prefill and decode of one model, without an engine around it.
class Bench {
 public:
  Bench(Subject& subject, const MachineRates& rates, const BenchOptions& options)
      : subject_(subject),
        options_(options),
        model_(*subject.loaded.model),
        ops_(*subject.loaded.ops),
        limits_(rates, model_sizes(subject.config), model_.cache_needs(), ops_, model_) {}

  BenchRecord prefill(std::int64_t batch, std::int64_t tokens) {
    SequenceBatch sequences(ops_, model_, batch, tokens);
    const auto once = [&] {
      sequences.assume_tokens(0);
      for (std::int64_t done = 0; done < tokens;) {
        const std::int64_t count = std::min(tokens - done, std::max<std::int64_t>(1, rows_of_step() / batch));
        done += count;
        step(sequences, batch * count, done == tokens);
      }
    };
    once();
    std::vector<double> rates;
    for (std::int64_t i = 0; i < *options_.repeat; ++i) {
      const auto start = Clock::now();
      once();
      rates.push_back(static_cast<double>(batch * tokens) / seconds_since(start));
    }
    return record("prefill", batch, tokens, median(rates), limits_.prefill(static_cast<double>(tokens)));
  }

  BenchRecord decode(std::int64_t batch, std::int64_t depth, std::int64_t tokens) {
    SequenceBatch sequences(ops_, model_, batch, depth + tokens);
    cache_bytes_ = sequences.cache_bytes();
    sequences.touch_caches();
    std::vector<double> rates;
    for (std::int64_t i = 0; i < *options_.repeat; ++i) {
      sequences.assume_tokens(depth);
      if (i == 0) {
        step(sequences, batch, true);
        sequences.assume_tokens(depth);
      }
      const auto start = Clock::now();
      for (std::int64_t done = 0; done < tokens; ++done) step(sequences, batch, true);
      rates.push_back(static_cast<double>(batch * tokens) / seconds_since(start));
    }
    const double context = static_cast<double>(depth) + static_cast<double>(tokens) / 2.0;
    return record("decode", batch, depth, median(rates), limits_.decode(static_cast<double>(batch), context));
  }

  /// Of the decode case before: the most this process held, against weights and caches.
  BenchRecord memory(std::int64_t batch, std::int64_t depth, std::uint64_t weight_bytes) const {
    constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
    const double needed = static_cast<double>(weight_bytes + cache_bytes_) / gibibyte;
    const double held = peak_resident_bytes() / gibibyte;
    return {case_name("memory", batch, depth), held, "GiB", needed, needed / held};
  }

 private:
  std::int64_t rows_of_step() const {
    return *options_.engine.max_num_batched_tokens > 0 ? *options_.engine.max_num_batched_tokens : 512;
  }
  /// Feeds the best tokens of the step before back, as decoding would.
  void step(SequenceBatch& sequences, std::int64_t rows, bool scored) {
    if (interrupt_.interrupted()) throw Interrupted();
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i < best_.size() ? best_[i] : static_cast<std::int32_t>(i);
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(id % model_.info().vocabulary);
    sequences.forward(ids, scored ? ScoredRows::last : ScoredRows::none, [&](const ForwardResult& result) {
      if (scored) take_best(result.logits);
    });
  }
  void take_best(const Tensor& logits) {
    const std::int64_t columns = logits.size(1);
    scores_.resize(static_cast<std::size_t>(logits.elements()));
    ops_.to_host(scores_.data(), logits);
    best_.clear();
    for (auto row = scores_.begin(); row != scores_.end(); row += columns) {
      best_.push_back(static_cast<std::int32_t>(std::max_element(row, row + columns) - row));
    }
  }
  std::string case_name(std::string_view kind, std::int64_t batch, std::int64_t context) const {
    return fmt::format("{}.{}.{}.b{}.c{}", kind, subject_.name, subject_.format, batch, context);
  }
  BenchRecord record(std::string_view kind, std::int64_t batch, std::int64_t context, double value,
                     double limit) const {
    return {case_name(kind, batch, context), value, "tok/s", limit, value / limit};
  }

  Subject& subject_;
  const BenchOptions& options_;
  Model& model_;
  Ops& ops_;
  BenchLimits limits_;
  InterruptGuard interrupt_;
  std::uint64_t cache_bytes_ = 0;
  std::vector<float> scores_;
  std::vector<std::int32_t> best_;
};

void check_usage(const BenchOptions& options) {
  options.engine.refuse_unsupported();
  if (*options.format != "bf16")
    fail<UsageError>("--format {}: random weights are bf16 only in this build", *options.format);
  const bool names_model = options.model.model.given() || options.model.model_flag.origin == Origin::command_line;
  if (options.shape.given() && names_model) fail<UsageError>("bench takes either MODEL or --shape, found both");
  if (options.format.given() && !options.shape.given())
    fail<UsageError>("--format: goes with --shape; a MODEL has its own format");
  if (*options.json && *options.markdown) fail<UsageError>("bench takes either --json or --markdown, found both");
}

/// The type that most bytes of a checkpoint have, as case names spell it.
std::string main_format(const Checkpoint& checkpoint) {
  std::map<std::string, std::uint64_t> bytes;
  for (const std::string& name : checkpoint.names()) {
    const StoredTensor& tensor = *checkpoint.find(name);
    bytes[std::string(tensor.type_name())] += tensor.byte_size();
  }
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return "none";
  std::string format = most->first == "bfloat16" ? "bf16" : most->first == "float16" ? "f16" : most->first;
  std::ranges::transform(format, format.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return format;
}

Subject open_subject(const BenchOptions& options, const Environment& environment) {
  Subject subject;
  Json json;
  std::unique_ptr<Checkpoint> checkpoint;
  if (options.shape.given()) {
    subject.name = *options.shape;
    json = shape_config(*options.shape);
    checkpoint = shape_weights(*options.shape, json);
  } else {
    const std::unique_ptr<ModelFiles> files =
        open_model_files(options.model.name(), environment, *options.model.mmproj);
    subject.name = files->name();
    json = files->config();
    checkpoint = files->weights();
  }
  subject.format = main_format(*checkpoint);
  subject.config = parse_qwen3_5_config(json);
  const std::uint64_t free = make_device(options.engine)->free_memory();
  if (checkpoint->total_bytes() > free) {
    fail<DeviceError>("the weights take {:.2f} GB, but {:.2f} GB of memory are free; choose a smaller model",
                      static_cast<double>(checkpoint->total_bytes()) / 1e9, static_cast<double>(free) / 1e9);
  }
  subject.loaded = load_weights(json, std::move(checkpoint), options.engine, environment);
  return subject;
}

void check_lengths(const BenchOptions& options, std::int64_t max_context) {
  const auto longest = [](const std::vector<std::int64_t>& values) {
    return *std::max_element(values.begin(), values.end());
  };
  const std::int64_t needed = std::max(longest(*options.pp), longest(*options.depth) + longest(*options.tg));
  if (needed > max_context)
    fail<RequestError>("{} tokens are more than the model's context of {}", needed, max_context);
}

/// Measured by a team of threads of its own, before the model is there.
MachineRates measure_machine(const EngineFlags& flags) {
  ThreadPool pool(*flags.threads > 0 ? static_cast<int>(*flags.threads) : usable_processors());
  const MachineLimits limits = measure_machine_limits(pool, choose_instruction_set(""));
  return {limits.read_bytes_per_second, *flags.compute == "f32" ? limits.f32_flops : limits.bf16_flops,
          limits.f32_flops, processor_name()};
}

std::vector<BenchRecord> measure(Subject& subject, const MachineRates& rates, const BenchOptions& options) {
  Bench bench(subject, rates, options);
  std::vector<BenchRecord> records;
  for (const std::int64_t batch : *options.batch) {
    for (const std::int64_t tokens : *options.pp) {
      if (tokens > 0) records.push_back(bench.prefill(batch, tokens));
    }
    for (const std::int64_t depth : *options.depth) {
      for (const std::int64_t tokens : *options.tg) {
        if (tokens == 0) continue;
        records.push_back(bench.decode(batch, depth, tokens));
        records.push_back(bench.memory(batch, depth, subject.loaded.checkpoint->total_bytes()));
      }
    }
  }
  return records;
}

}  // namespace

int bench_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  BenchOptions options;
  if (!read_into(options, info, arguments)) return 0;
  if (options.serve.url.given()) return bench_server(options, bench_command_line(arguments));
  check_usage(options);
  const BenchRun run{measure_machine(options.engine), *options.engine.compute == "f32" ? "f32" : "bf16",
                     bench_command_line(arguments)};
  Subject subject = open_subject(options, read_environment());
  check_lengths(options, subject.config.max_context());
  try {
    const std::vector<BenchRecord> records = measure(subject, run.rates, options);
    write_output(*options.json ? indented_json(bench_json(records, run))
                               : bench_table(records, run, *options.markdown));
  } catch (const Interrupted&) {
    return interrupted_exit_code;
  }
  return 0;
}

}  // namespace sluice
