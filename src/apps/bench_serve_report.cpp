#include <fmt/format.h>

#include "apps/bench_serve.h"

namespace sluice {

namespace {

constexpr int line_width = 50, label_width = 40;

std::string heading(std::string_view title, char line) {
  return fmt::format("{}\n", fmt::format(fmt::runtime(fmt::format("{{:{}^{}}}", line, line_width)), title));
}

std::string count_line(std::string_view label, std::int64_t value) {
  return fmt::format("{:<{}} {:<10}\n", label, label_width, value);
}
std::string number_line(std::string_view label, double value) {
  return fmt::format("{:<{}} {:<10.2f}\n", label, label_width, value);
}

struct NamedSpread {
  const char* name;   // of records
  const char* shown;  // in the text
  const char* title;
  const Spread LoadSummary::* spread;
  bool needs_stream;
};

constexpr NamedSpread spreads[] = {
    {"ttft", "TTFT", "Time to First Token", &LoadSummary::ttft, true},
    {"tpot", "TPOT", "Time per Output Token (excl. 1st token)", &LoadSummary::tpot, true},
    {"itl", "ITL", "Inter-token Latency", &LoadSummary::itl, true},
    {"e2el", "E2EL", "End-to-end Latency", &LoadSummary::e2el, false},
};

std::string spread_text(const NamedSpread& named, const Spread& spread) {
  std::string text = heading(named.title, '-');
  text += number_line(fmt::format("Mean {} (ms):", named.shown), spread.mean);
  text += number_line(fmt::format("Median {} (ms):", named.shown), spread.p50);
  text += number_line(fmt::format("P90 {} (ms):", named.shown), spread.p90);
  return text + number_line(fmt::format("P99 {} (ms):", named.shown), spread.p99);
}

}  // namespace

std::vector<BenchRecord> serve_records(const ServeCase& result) {
  const LoadSummary& summary = result.summary;
  const std::string rate = result.request_rate > 0 ? fmt::format(".r{:g}", result.request_rate) : "";
  const std::string prefix = fmt::format("serve.{}.c{}{}.in{}.out{}{}.", result.model, result.concurrency, rate,
                                         result.input_tokens, result.output_tokens, result.streams ? "" : ".whole");
  std::vector<BenchRecord> records;
  const auto add = [&](std::string_view name, double value, const char* unit) {
    records.push_back({prefix + std::string(name), value, unit});
  };
  add("successful_requests", static_cast<double>(summary.succeeded), "requests");
  add("failed_requests", static_cast<double>(summary.failed), "requests");
  add("duration", summary.duration, "s");
  add("input_tokens", static_cast<double>(summary.input_tokens), "tok");
  add("generated_tokens", static_cast<double>(summary.output_tokens), "tok");
  add("request_throughput", summary.request_throughput, "req/s");
  if (summary.goodput) add("goodput", *summary.goodput, "req/s");
  add("output_throughput", summary.output_throughput, "tok/s");
  add("total_token_throughput", summary.total_throughput, "tok/s");
  for (const NamedSpread& named : spreads) {
    if (named.needs_stream && !result.streams) continue;
    const Spread& spread = summary.*named.spread;
    add(fmt::format("mean_{}", named.name), spread.mean, "ms");
    add(fmt::format("p50_{}", named.name), spread.p50, "ms");
    add(fmt::format("p90_{}", named.name), spread.p90, "ms");
    add(fmt::format("p99_{}", named.name), spread.p99, "ms");
  }
  return records;
}

std::string serve_text(const ServeCase& result) {
  const LoadSummary& summary = result.summary;
  std::string text = heading(" Serving Benchmark Result ", '=');
  text += count_line("Successful requests:", summary.succeeded);
  text += count_line("Failed requests:", summary.failed);
  text += count_line("Maximum request concurrency:", result.concurrency);
  if (result.request_rate > 0) text += number_line("Request rate configured (RPS):", result.request_rate);
  text += number_line("Benchmark duration (s):", summary.duration);
  text += count_line("Total input tokens:", summary.input_tokens);
  text += count_line("Total generated tokens:", summary.output_tokens);
  text += number_line("Request throughput (req/s):", summary.request_throughput);
  if (summary.goodput) text += number_line("Request goodput (req/s):", *summary.goodput);
  text += number_line("Output token throughput (tok/s):", summary.output_throughput);
  text += number_line("Total token throughput (tok/s):", summary.total_throughput);
  for (const NamedSpread& named : spreads) {
    if (named.needs_stream && !result.streams) continue;
    text += spread_text(named, summary.*named.spread);
  }
  return text + std::string(line_width, '=') + "\n";
}

std::string serve_markdown(const std::vector<ServeCase>& results) {
  std::string text =
      "| concurrency | requests | failed | req/s | goodput req/s | output tok/s | total tok/s "
      "| TTFT ms mean / p50 / p90 / p99 | TPOT ms | ITL ms | E2EL ms |\n"
      "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const ServeCase& result : results) {
    const LoadSummary& summary = result.summary;
    text += fmt::format("| {} | {} | {} | {:.2f} | {} | {:.1f} | {:.1f} |", result.concurrency, summary.succeeded,
                        summary.failed, summary.request_throughput,
                        summary.goodput ? fmt::format("{:.2f}", *summary.goodput) : "", summary.output_throughput,
                        summary.total_throughput);
    for (const NamedSpread& named : spreads) {
      const Spread& spread = summary.*named.spread;
      text += named.needs_stream && !result.streams ? " |"
                                                    : fmt::format(" {:.2f} / {:.2f} / {:.2f} / {:.2f} |", spread.mean,
                                                                  spread.p50, spread.p90, spread.p99);
    }
    text += "\n";
  }
  return text;
}

}  // namespace sluice
