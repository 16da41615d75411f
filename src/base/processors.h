#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace sluice {

/// Where the kernel shows its state; tests point it at files of their own.
struct SystemFiles {
  std::filesystem::path proc = "/proc", sys = "/sys";
};

/// One processor (its number) for each physical core that this process's affinity mask allows; never empty.
std::vector<int> allowed_cores(const SystemFiles& files = {});

/// Processors worth of time that the control groups of this process grant (v1 or v2); infinite without a quota.
double processor_quota(const SystemFiles& files = {});

/// Bytes that can be allocated now without swapping: what the machine has available, and what the control groups of
/// this process still allow, whichever is less.
std::uint64_t available_memory(const SystemFiles& files = {});

}  // namespace sluice
