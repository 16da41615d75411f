// Peak memory of loading, measured in a process of its own.
#include <sstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/model_runner.h"
#include "support/rewrite_checkpoint.h"
#include "support/temporary_directory.h"

namespace sluice::test {
namespace {

constexpr std::int64_t hidden = 1024, intermediate = 3584, vocabulary = 32768;

/// The text part of dense-ratio3 with a larger hidden size, MLP and vocabulary.
void write_enlarged_checkpoint(const std::filesystem::path& target) {
  rewrite_checkpoint(
      source_dir() / "tests/data/golden/dense-ratio3", target,
      [](NamedTensor tensor) -> std::vector<NamedTensor> {
        std::int64_t elements = 1;
        for (std::int64_t& size : tensor.shape) {
          if (size == 64) size = hidden;
          if (size == 160) size = intermediate;
          if (size == 320) size = vocabulary;
          if (size == 128 && tensor.name == "mtp.fc.weight") size = 2 * hidden;
          elements *= size;
        }
        tensor.bytes.assign(static_cast<std::size_t>(elements) * size_of(tensor.dtype), std::byte{0});
        return {tensor};
      },
      [](Json& config) {
        config["text_config"]["hidden_size"] = hidden;
        config["text_config"]["intermediate_size"] = intermediate;
        config["text_config"]["vocab_size"] = vocabulary;
      });
}

/// A line of /proc/self/status, in bytes.
std::uint64_t own_memory(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

/// What loading adds to the peak of a fresh process.
std::uint64_t peak_of_loading(const std::filesystem::path& directory) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t before = own_memory("VmRSS");
    const auto ops = make_cpu_backend({.threads = 2, .compute = Compute::bf16, .instruction_set = ""});
    const auto checkpoint = open_safetensors(directory);
    const auto model = load_model(read_config(directory), *checkpoint, *ops);
    const std::uint64_t added = own_memory("VmHWM") - before;
    const bool written = write(ends[1], &added, sizeof added) == sizeof added;
    _exit(written ? 0 : 1);
  }
  std::uint64_t added = 0;
  const bool received = read(ends[0], &added, sizeof added) == sizeof added;
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  close(ends[1]);
  return received && status == 0 ? added : 0;
}

TEST(SlowLoadMemory, PeaksAtNoMoreThanTheFileAndATwentieth) {
  const TemporaryDirectory directory;
  write_enlarged_checkpoint(directory.path());
  const auto file = std::filesystem::file_size(directory.path() / "model.safetensors");
  ASSERT_GT(file, std::uintmax_t{150} << 20);
  const std::uint64_t peak = peak_of_loading(directory.path());
  EXPECT_GT(peak, file * 9 / 10) << "the measurement itself is wrong";
  EXPECT_LE(static_cast<double>(peak), 1.05 * static_cast<double>(file));
}

}  // namespace
}  // namespace sluice::test
