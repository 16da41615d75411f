#include "apps/bench_report.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "base/version.h"

namespace sluice {

namespace {

/// Four digits that count.
double rounded(double value) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 3.0 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace

std::string bench_command_line(const std::vector<std::string>& arguments) {
  constexpr std::string_view key = "--api-key";
  std::string line = "sluice bench";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_key = i > 0 && arguments[i - 1] == key;
    const bool holds_key = arguments[i].rfind(std::string(key) + "=", 0) == 0;
    line += is_key ? " KEY" : holds_key ? fmt::format(" {}=KEY", key) : " " + arguments[i];
  }
  return line;
}

Json bench_json(const std::vector<BenchRecord>& records, const BenchRun& run) {
  const std::string date = utc_now();
  Json list = Json::array();
  for (const BenchRecord& record : records) {
    Json entry = {{"case", record.name}, {"value", rounded(record.value)}, {"unit", record.unit}};
    if (record.limit > 0) {
      entry["limit"] = rounded(record.limit);
      entry["share"] = rounded(record.share);
    }
    entry["device"] = run.rates.device;
    entry["date"] = date;
    entry["commit"] = commit();
    entry["command"] = run.command;
    if (!run.product_type.empty()) {
      entry["bandwidth"] = {{"read", rounded(run.rates.read_bandwidth / 1e9)}, {"unit", "GB/s"}};
      entry["peaks"] = {{run.product_type + "_products", rounded(run.rates.product_peak / 1e9)},
                        {"f32", rounded(run.rates.float_peak / 1e9)},
                        {"unit", "GFLOP/s"}};
    }
    list.push_back(std::move(entry));
  }
  return list;
}

std::string bench_table(const std::vector<BenchRecord>& records, const BenchRun& run, bool markdown) {
  std::size_t width = 4;
  for (const BenchRecord& record : records) width = std::max(width, record.name.size());
  std::string text = fmt::format(
      "{}: reads {:.1f} GB/s, {} products {:.0f} GFLOP/s, f32 {:.0f} GFLOP/s (measured now)\n\n", run.rates.device,
      run.rates.read_bandwidth / 1e9, run.product_type, run.rates.product_peak / 1e9, run.rates.float_peak / 1e9);
  const char* row =
      markdown ? "| {:<{}} | {:>10} | {:<6} | {:>10} | {:>7} |\n" : "{:<{}}  {:>10} {:<6}  {:>10}  {:>7}\n";
  text += fmt::format(fmt::runtime(row), "case", width, "value", "unit", "limit", "share");
  if (markdown) text += fmt::format("|{:-<{}}|{:->12}|{:-<8}|{:->12}|{:->9}|\n", "", width + 2, ":", "", ":", ":");
  for (const BenchRecord& record : records) {
    text += fmt::format(fmt::runtime(row), record.name, width, fmt::format("{:.2f}", record.value), record.unit,
                        fmt::format("{:.2f}", record.limit), fmt::format("{:.1f}%", 100.0 * record.share));
  }
  return text;
}

double peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

}  // namespace sluice
