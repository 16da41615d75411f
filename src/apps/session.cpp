#include "apps/session.h"

#include <algorithm>
#include <chrono>

#include "apps/bench_shapes.h"
#include "base/log.h"
#include "base/progress.h"
#include "cpu/backend.h"

namespace sluice {

std::unique_ptr<Ops> make_device(const EngineFlags& flags) {
  CpuOptions options;
  options.threads = static_cast<int>(*flags.threads);
  options.compute = *flags.compute == "f32" ? Compute::f32 : Compute::bf16;
  return make_cpu_backend(options);
}

LoadedModel load_weights(const Json& config, std::unique_ptr<Checkpoint> checkpoint, const EngineFlags& flags,
                         const Environment& environment) {
  LoadedModel loaded;
  loaded.checkpoint = std::move(checkpoint);
  if (*flags.verbose) set_log_level(LogLevel::info);
  loaded.ops = make_device(flags);
  const auto start = std::chrono::steady_clock::now();
  ProgressBar bar("loading", environment.colored());
  loaded.model = load_model(config, *loaded.checkpoint, *loaded.ops,
                            [&bar](std::uint64_t placed, std::uint64_t total) { bar.update(placed, total); });
  log_info("{}: {:.3f} GB loaded in {:.2f} s", loaded.checkpoint->describe(),
           static_cast<double>(loaded.checkpoint->total_bytes()) / 1e9,
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return loaded;
}

namespace {

void start_engine(Session& session, LoadedModel loaded, const EngineFlags& flags, const EngineLoad& load) {
  EngineOptions options;
  options.max_model_len = *flags.max_model_len;
  options.max_num_seqs = flags.max_num_seqs.given() ? static_cast<int>(*flags.max_num_seqs) : load.num_seqs;
  options.max_queued = load.max_queued;
  options.max_batched_tokens = *flags.max_num_batched_tokens;
  options.memory_utilization = *flags.memory_utilization;
  options.seed = flags.seed.given() ? static_cast<std::uint64_t>(*flags.seed) : 0;
  options.vocabulary_size = session.tokenizer ? session.tokenizer->size() : 0;
  options.stop_tokens = session.stop_tokens;
  session.checkpoint = std::move(loaded.checkpoint);
  session.engine = std::make_unique<Engine>(std::move(loaded.ops), std::move(loaded.model), options);
  for (const std::string& line : session.engine->describe()) log_info("{}", line);
}

}  // namespace

Session open_session(std::shared_ptr<const ModelFiles> files, const EngineFlags& flags, const Environment& environment,
                     bool needs_text, const EngineLoad& load) {
  Session session;
  session.files = std::move(files);
  const Json config = session.files->config();
  session.generation_config = session.files->generation_config();
  session.tokenizer = needs_text ? session.files->require_tokenizer() : session.files->tokenizer();
  LoadedModel loaded = load_weights(config, session.files->weights(), flags, environment);

  session.stop_tokens = stop_tokens_of(session.generation_config);
  const std::vector<TokenId>& of_config = loaded.model->info().stop_tokens;
  session.stop_tokens.insert(session.stop_tokens.end(), of_config.begin(), of_config.end());
  if (session.tokenizer && session.tokenizer->eos()) session.stop_tokens.push_back(*session.tokenizer->eos());
  std::sort(session.stop_tokens.begin(), session.stop_tokens.end());
  session.stop_tokens.erase(std::unique(session.stop_tokens.begin(), session.stop_tokens.end()),
                            session.stop_tokens.end());

  start_engine(session, std::move(loaded), flags, load);
  return session;
}

Session open_shape_session(const std::string& shape, const EngineFlags& flags, const Environment& environment,
                           const EngineLoad& load) {
  Session session;
  const Json config = shape_config(shape);
  start_engine(session, load_weights(config, shape_weights(shape, config), flags, environment), flags, load);
  return session;
}

}  // namespace sluice
