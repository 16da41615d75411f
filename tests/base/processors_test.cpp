#include "base/processors.h"

#include <cmath>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>

#include "support/temporary_directory.h"

namespace sluice {
namespace {

/// A system of files that a test writes.
class Processors : public testing::Test {
 protected:
  void write(const std::filesystem::path& path, const std::string& text) {
    const auto full = directory_.path() / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text << "\n";
  }
  SystemFiles files() const { return {directory_.path() / "proc", directory_.path() / "sys"}; }

  test::TemporaryDirectory directory_;
};

TEST_F(Processors, HaveNoQuotaWhereNoControlGroupSetsOne) {
  EXPECT_TRUE(std::isinf(processor_quota(files())));
  write("proc/self/cgroup", "0::/a");
  write("sys/fs/cgroup/a/cpu.max", "max 100000");
  EXPECT_TRUE(std::isinf(processor_quota(files())));
}

TEST_F(Processors, ObeyTheTightestQuotaOfAllGroupsAbove) {
  write("proc/self/cgroup", "0::/a/b");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000");
  write("sys/fs/cgroup/a/b/cpu.max", "400000 100000");
  EXPECT_DOUBLE_EQ(processor_quota(files()), 1.5);
}

TEST_F(Processors, ObeyQuotasOfVersionOne) {
  write("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/a\n2:cpuset:/c");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(processor_quota(files()), 3.0);
}

TEST_F(Processors, SeeTheQuotaOfAContainerAtTheRootOfItsView) {
  write("proc/self/cgroup", "0::/not/visible/here");
  write("sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_DOUBLE_EQ(processor_quota(files()), 2.0);
}

TEST_F(Processors, CountSiblingsOfOneCoreOnce) {
  for (const int processor : allowed_cores(files())) {
    write("sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/thread_siblings_list", "0-1023");
  }
  EXPECT_EQ(allowed_cores(files()).size(), 1u);
}

TEST_F(Processors, AreThoseOfTheAffinityMaskWhereCoresAreUnknown) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const std::vector<int> cores = allowed_cores(files());
  EXPECT_EQ(static_cast<int>(cores.size()), CPU_COUNT(&mask));
  for (const int core : cores) EXPECT_TRUE(CPU_ISSET(core, &mask));
}

TEST_F(Processors, HaveTheMemoryThatTheMachineSays) {
  write("proc/meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:    50 kB");
  EXPECT_EQ(available_memory(files()), 50u * 1024);
}

TEST_F(Processors, HaveTheMemoryThatTheTightestControlGroupLeaves) {
  write("proc/meminfo", "MemAvailable: 5000 kB");
  write("proc/self/cgroup", "0::/a/b");
  write("sys/fs/cgroup/a/b/memory.max", "max");
  write("sys/fs/cgroup/a/b/memory.current", "1000");
  write("sys/fs/cgroup/a/memory.max", "9000");
  write("sys/fs/cgroup/a/memory.current", "2000");
  EXPECT_EQ(available_memory(files()), 7000u);
}

TEST_F(Processors, CountCachedFilesOfAGroupAsMemoryThatItMayTake) {
  write("proc/meminfo", "MemAvailable: 5000 kB");
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/memory.max", "9000");
  write("sys/fs/cgroup/memory.current", "8000");
  write("sys/fs/cgroup/memory.stat", "anon 2000\nfile 6000\ninactive_file 5500");
  EXPECT_EQ(available_memory(files()), 6500u);
}

TEST_F(Processors, HaveNoMemoryInAGroupThatIsOverItsLimit) {
  write("proc/meminfo", "MemAvailable: 5000 kB");
  write("proc/self/cgroup", "7:memory:/a");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1200");
  EXPECT_EQ(available_memory(files()), 0u);
}

}  // namespace
}  // namespace sluice
