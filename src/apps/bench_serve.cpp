#include "apps/bench_serve.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "apps/bench_load.h"
#include "apps/bench_prompts.h"
#include "apps/interrupt.h"
#include "apps/output.h"
#include "base/error.h"
#include "base/progress.h"

namespace sluice {

namespace {

constexpr std::size_t most_errors_shown = 3;
constexpr std::int64_t fewest_requests = 16;

/// Requests a second; 0 for "inf".
double parse_rate(const std::string& text) {
  if (text == "inf") return 0;
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(rate) || rate <= 0) {
    fail<UsageError>("--request-rate: \"{}\" is no number of requests a second, expected one above 0, or inf", text);
  }
  return rate;
}

void check_serve_usage(const BenchOptions& options) {
  if (options.shape.given()) fail<UsageError>("bench takes either --serve or --shape, found both");
  if (*options.json && *options.markdown) fail<UsageError>("bench takes either --json or --markdown, found both");
  if (*options.serve.prompt_ids && *options.serve.endpoint == "chat") {
    fail<UsageError>("--prompt-ids: a chat is text; use --endpoint completions");
  }
  const GoodputBounds bounds = parse_goodput(*options.serve.goodput);
  if (*options.serve.no_stream && (bounds.ttft || bounds.tpot)) {
    fail<UsageError>("--goodput: with --no-stream only e2el is known");
  }
}

std::uint64_t seed_of(const BenchOptions& options) { return static_cast<std::uint64_t>(*options.engine.seed); }

RequestShape shape_of(const BenchOptions& options, const std::string& model) {
  RequestShape shape;
  shape.model = model;
  shape.chat = *options.serve.endpoint == "chat";
  shape.prompt_ids = *options.serve.prompt_ids;
  shape.streams = !*options.serve.no_stream;
  shape.input_tokens = *options.serve.input_tokens;
  shape.output_tokens = *options.serve.output_tokens;
  shape.seed = seed_of(options);
  return shape;
}

/// The different ways in which requests failed, the frequent ones first.
std::string failures_text(const std::vector<RequestSample>& samples) {
  std::map<std::string, std::int64_t> counts;
  for (const RequestSample& sample : samples) {
    if (!sample.succeeded) ++counts[sample.error];
  }
  std::vector<std::pair<std::string, std::int64_t>> errors(counts.begin(), counts.end());
  std::sort(errors.begin(), errors.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (errors.size() > most_errors_shown) errors.resize(most_errors_shown);
  std::string text;
  for (const auto& [error, count] : errors) text += fmt::format("sluice: {} requests failed: {}\n", count, error);
  return text;
}

/// Says so when replies are not as long as they were asked to be.
std::string length_note(const ServeCase& result) {
  const std::int64_t wanted = result.summary.succeeded * result.output_tokens;
  if (result.summary.output_tokens == wanted) return "";
  return fmt::format("sluice: the replies have {} tokens, {} were asked for: the server does not follow ignore_eos\n",
                     result.summary.output_tokens, wanted);
}

/// Runs the cases one after the other.
class ServeBench {
 public:
  ServeBench(const BenchOptions& options, LoadClient& client)
      : options_(options),
        client_(client),
        environment_(read_environment()),
        bounds_(parse_goodput(*options.serve.goodput)) {
    plan_.request_rate = parse_rate(*options.serve.request_rate);
    plan_.streams = !*options.serve.no_stream;
    plan_.seed = seed_of(options);
    plan_.timeout = *options.serve.timeout;
    plan_.interrupted = [this] { return interrupt_.interrupted(); };
  }

  void run() {
    const ServedModel model = find_served_model(client_, options_.model.name());
    const RequestShape shape = shape_of(options_, model.name);
    const PromptMaker prompts(client_, shape, model.vocabulary);
    plan_.path = shape.path();
    plan_.body = [&prompts](std::int64_t i) { return prompts.body(i); };
    for (const std::int64_t concurrency : *options_.serve.concurrency) {
      if (interrupt_.interrupted()) break;
      cases_.push_back(run_case(shape, concurrency));
    }
  }

  const std::vector<ServeCase>& cases() const { return cases_; }
  bool interrupted() const { return interrupt_.interrupted(); }
  bool none_succeeded() const {
    return std::all_of(cases_.begin(), cases_.end(), [](const ServeCase& c) { return c.summary.succeeded == 0; });
  }

 private:
  ServeCase run_case(const RequestShape& shape, std::int64_t concurrency) {
    plan_.concurrency = concurrency;
    plan_.requests =
        *options_.serve.requests > 0 ? *options_.serve.requests : std::max(fewest_requests, 4 * concurrency);
    LoadResult result;
    {
      ProgressBar bar(fmt::format("concurrency {}", concurrency), environment_.colored(), "requests");
      plan_.on_progress = [&](std::int64_t done) {
        bar.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(plan_.requests));
      };
      result = client_.run(plan_);
      plan_.on_progress = nullptr;
    }
    ServeCase served{shape.model,
                     concurrency,
                     shape.input_tokens,
                     shape.output_tokens,
                     plan_.request_rate,
                     plan_.streams,
                     summarize(result.samples, result.duration, bounds_)};
    write_error(failures_text(result.samples) + length_note(served));
    return served;
  }

  const BenchOptions& options_;
  LoadClient& client_;
  Environment environment_;
  InterruptGuard interrupt_;
  GoodputBounds bounds_;
  LoadPlan plan_;
  std::vector<ServeCase> cases_;
};

std::string serve_report(const std::vector<ServeCase>& cases, const BenchOptions& options, const std::string& command) {
  if (*options.markdown) return serve_markdown(cases);
  std::string text;
  std::vector<BenchRecord> records;
  for (const ServeCase& result : cases) {
    text += serve_text(result);
    for (BenchRecord& record : serve_records(result)) records.push_back(std::move(record));
  }
  BenchRun run;
  run.rates.device = processor_name();
  run.command = command;
  return *options.json ? indented_json(bench_json(records, run)) : text;
}

}  // namespace

int bench_server(const BenchOptions& options, const std::string& command) {
  check_serve_usage(options);
  LoadClient client({parse_server_url(*options.serve.url), *options.serve.api_key, !*options.serve.insecure});
  ServeBench bench(options, client);
  bench.run();
  if (bench.interrupted() && bench.none_succeeded()) return interrupted_exit_code;
  write_output(serve_report(bench.cases(), options, command));
  if (bench.none_succeeded()) fail<RequestError>("--serve: no request succeeded");
  return bench.interrupted() ? interrupted_exit_code : 0;
}

}  // namespace sluice
