#pragma once
#include <string>
#include <vector>

#include "apps/bench_report.h"
#include "apps/bench_statistics.h"
#include "apps/command_options.h"

namespace sluice {

/// `bench --serve URL`. Exit code; throws UsageError, and RequestError for a server that gives no answer.
int bench_server(const BenchOptions& options, const std::string& command);

/// One load and what it came to.
struct ServeCase {
  std::string model;
  std::int64_t concurrency = 1, input_tokens = 0, output_tokens = 0;  // as asked for
  double request_rate = 0;                                            // 0: no bound
  bool streams = true;
  LoadSummary summary;
};

/// "serve.MODEL.c64.in128.out128.output_throughput" and so on.
std::vector<BenchRecord> serve_records(const ServeCase& result);
/// As `vllm bench serve` prints it.
std::string serve_text(const ServeCase& result);
/// A table with one line a case.
std::string serve_markdown(const std::vector<ServeCase>& results);

}  // namespace sluice
