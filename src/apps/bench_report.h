#pragma once
#include <string>
#include <vector>

#include "apps/bench_limits.h"
#include "base/json.h"

namespace sluice {

/// One measurement.
struct BenchRecord {
  std::string name;  // "decode.qwen3.5-9b.bf16.b1.c1024"
  double value = 0;
  std::string unit;
  double limit = 0, share = 0;  // 0: there is none
};

/// What all records of a run have in common.
struct BenchRun {
  MachineRates rates;
  std::string product_type;  // "bf16" or "f32"; empty: rates were not measured
  std::string command;
};

/// The command as it was given, without the value of --api-key.
std::string bench_command_line(const std::vector<std::string>& arguments);

/// The list of records that --json prints.
Json bench_json(const std::vector<BenchRecord>& records, const BenchRun& run);
std::string bench_table(const std::vector<BenchRecord>& records, const BenchRun& run, bool markdown);

/// Most memory that this process held at once, in bytes.
double peak_resident_bytes();
/// The processor's own name.
std::string processor_name();

}  // namespace sluice
