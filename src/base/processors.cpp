#include "base/processors.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <sched.h>

namespace sluice {

namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The first number of a file; nothing if there is none ("max").
std::optional<std::uint64_t> number_in(const std::filesystem::path& path) {
  std::istringstream words(first_line(path));
  std::uint64_t number = 0;
  if (words >> number) return number;
  return std::nullopt;
}

/// The folders of this process's control group with this controller, innermost first, up to the root of the hierarchy.
std::vector<std::filesystem::path> control_groups(const SystemFiles& files, const std::string& controller) {
  std::vector<std::filesystem::path> folders;
  std::ifstream lines(files.proc / "self" / "cgroup");
  for (std::string line; std::getline(lines, line);) {  // "4:memory,other:/path", or "0::/path" of version 2
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find("," + controller + ",") == std::string::npos) continue;
    const std::filesystem::path root = files.sys / "fs" / "cgroup" / (unified ? "" : controller);
    std::filesystem::path inside = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (; !inside.empty(); inside = inside.parent_path()) folders.push_back(root / inside);
    folders.push_back(root);
  }
  return folders;
}

double quota_of(const std::filesystem::path& folder) {
  std::istringstream words(first_line(folder / "cpu.max"));
  double quota = 0.0, period = 0.0;
  if (words >> quota >> period && quota > 0.0 && period > 0.0) return quota / period;
  std::istringstream old_words(first_line(folder / "cpu.cfs_quota_us"));
  const auto old_period = number_in(folder / "cpu.cfs_period_us");
  if (old_words >> quota && quota > 0.0 && old_period.value_or(0) > 0) {
    return quota / static_cast<double>(*old_period);
  }
  return std::numeric_limits<double>::infinity();
}

/// The number after `key` in a file of lines "key number"; nothing if it is not there.
std::optional<std::uint64_t> number_of(const std::filesystem::path& path, std::string_view key) {
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t number = 0;
    if (words >> name >> number && name == key) return number;
  }
  return std::nullopt;
}

/// What a group may still take: its limit less what it uses, of which cached pages of files that nobody needs go first.
std::uint64_t headroom(const std::filesystem::path& folder, const char* limit, const char* usage, const char* cached) {
  const auto most = number_in(folder / limit), used = number_in(folder / usage);
  if (!most || !used) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t needed = *used - std::min(*used, number_of(folder / "memory.stat", cached).value_or(0));
  return *most - std::min(*most, needed);
}

}  // namespace

std::vector<int> allowed_cores(const SystemFiles& files) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    std::set<std::string> seen;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &mask)) continue;
      const std::string folder = "cpu" + std::to_string(processor);
      std::string siblings =
          first_line(files.sys / "devices" / "system" / "cpu" / folder / "topology" / "thread_siblings_list");
      if (siblings.empty()) siblings = folder;
      if (seen.insert(siblings).second) cores.push_back(processor);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

double processor_quota(const SystemFiles& files) {
  double quota = std::numeric_limits<double>::infinity();
  for (const auto& folder : control_groups(files, "cpu")) quota = std::min(quota, quota_of(folder));
  return quota;
}

std::uint64_t available_memory(const SystemFiles& files) {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  if (const auto kibibytes = number_of(files.proc / "meminfo", "MemAvailable:")) bytes = *kibibytes * 1024;
  for (const auto& folder : control_groups(files, "memory")) {
    bytes = std::min({bytes, headroom(folder, "memory.max", "memory.current", "inactive_file"),
                      headroom(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")});
  }
  return bytes;
}

}  // namespace sluice
