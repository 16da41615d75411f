// The engine alone, as `sluice bench --serve` sees it through HTTP: so many requests at once, each submitted when one
// ends.
//   engine_bench MODEL_DIRECTORY [CONCURRENCY [INPUT_TOKENS [OUTPUT_TOKENS [REQUESTS [THREADS]]]]]
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <random>
#include <vector>

#include "base/json.h"
#include "base/mmap.h"
#include "cpu/backend.h"
#include "engine/engine.h"
#include "models/model.h"
#include "weights/safetensors.h"

using namespace sluice;

namespace {

struct Load {
  int concurrency = 1, input_tokens = 128, output_tokens = 128, requests = 16;
};

/// Keeps `concurrency` requests running until all have ended. Callbacks come on the engine's thread.
class LoadedEngine {
 public:
  LoadedEngine(Engine& engine, const Load& load) : engine_(engine), load_(load), random_(1) {}

  /// Tokens generated a second.
  double run() {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < std::min(load_.concurrency, load_.requests); ++i) submit();
    std::unique_lock lock(mutex_);
    all_ended_.wait(lock, [this] { return ended_ == load_.requests; });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return static_cast<double>(tokens_) / seconds;
  }

 private:
  void submit() {
    Request request;
    {
      const std::lock_guard lock(mutex_);
      if (submitted_ == load_.requests) return;
      ++submitted_;
      const auto ids = static_cast<std::uint64_t>(engine_.model_info().vocabulary) * 3 / 4;
      for (int k = 0; k < load_.input_tokens; ++k) request.prompt.push_back(static_cast<TokenId>(random_() % ids));
    }
    request.sampling.temperature = 0;
    request.sampling.max_tokens = load_.output_tokens;
    request.sampling.ignore_eos = true;
    request.on_event = [this](const TokenEvent& event) { take(event); };
    engine_.submit(std::move(request));
  }
  void take(const TokenEvent& event) {
    const bool ends = event.finish_reason != FinishReason::none;
    if (ends) submit();
    const std::lock_guard lock(mutex_);
    tokens_ += event.token ? 1 : 0;
    ended_ += ends ? 1 : 0;
    if (ended_ == load_.requests) all_ended_.notify_one();
  }

  Engine& engine_;
  Load load_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  std::mt19937_64 random_;
  int submitted_ = 0, ended_ = 0;
  std::int64_t tokens_ = 0;
};

int measure(const std::vector<std::string>& arguments) {
  const std::string& directory = arguments[0];
  const auto number = [&](std::size_t i, int otherwise) {
    return i < arguments.size() ? std::max(1, std::atoi(arguments[i].c_str())) : otherwise;
  };
  Load load;
  load.concurrency = number(1, load.concurrency);
  load.input_tokens = number(2, load.input_tokens);
  load.output_tokens = number(3, load.output_tokens);
  load.requests = number(4, std::max(16, 4 * load.concurrency));
  CpuOptions device;
  device.threads = number(5, 0);
  const auto checkpoint = open_safetensors(directory);
  auto ops = make_cpu_backend(device);
  const std::string path = directory + "/config.json";
  auto model = load_model(parse_json(read_text_file(path, std::size_t{1} << 20), path), *checkpoint, *ops, {});
  Engine engine(std::move(ops), std::move(model), {});
  LoadedEngine(engine, {1, load.input_tokens, 8, 1}).run();  // warms up
  const double rate = LoadedEngine(engine, load).run();
  std::printf("concurrency %d, %d + %d tokens, %d requests: %.1f tok/s\n", load.concurrency, load.input_tokens,
              load.output_tokens, load.requests, rate);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fputs(
        "usage: engine_bench MODEL_DIRECTORY [CONCURRENCY [INPUT_TOKENS [OUTPUT_TOKENS [REQUESTS [THREADS]]]]]\n",
        stderr);
    return 2;
  }
  try {
    return measure(std::vector<std::string>(arguments + 1, arguments + count));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_bench: %s\n", error.what());
    return 1;
  }
}
