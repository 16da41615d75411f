// Peak memory of loading, measured in a process of its own.
#include <cstdio>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/gguf_file.h"
#include "support/model_headers.h"
#include "support/model_runner.h"
#include "support/rewrite_checkpoint.h"
#include "support/temporary_directory.h"
#include "weights/gguf_qwen.h"

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

using OpenCheckpoint = std::unique_ptr<Checkpoint> (*)(const std::filesystem::path& path);

/// What loading adds to the peak of a fresh process.
std::uint64_t peak_of_loading(const std::filesystem::path& path, OpenCheckpoint open, const Json& config) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t before = own_memory("VmRSS");
    const auto ops = make_cpu_backend({.threads = 2, .compute = Compute::bf16, .instruction_set = ""});
    const auto checkpoint = open(path);
    const auto model = load_model(config, *checkpoint, *ops);
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
  const std::uint64_t peak = peak_of_loading(directory.path(), open_safetensors, read_config(directory.path()));
  EXPECT_GT(peak, file * 9 / 10) << "the measurement itself is wrong";
  EXPECT_LE(static_cast<double>(peak), 1.05 * static_cast<double>(file));
}

/// A file that ends after `size` bytes: those given, then a hole that reads as zeros.
void write_with_hole(const std::filesystem::path& path, const std::string& begin, std::uint64_t size) {
  std::ofstream(path, std::ios::binary) << begin;
  std::filesystem::resize_file(path, size);
}

/// The tensors as zeros; global scales, which values may be divided by, as ones.
void write_as_safetensors(const HeaderCheckpoint& headers, const std::filesystem::path& path) {
  const std::map<DType, const char*> names{{DType::bf16, "BF16"},       {DType::f16, "F16"}, {DType::f32, "F32"},
                                           {DType::f8_e4m3, "F8_E4M3"}, {DType::u8, "U8"},   {DType::i32, "I32"}};
  Json header;
  std::vector<std::uint64_t> ones;
  std::uint64_t end = 0;
  for (const std::string& name : headers.names()) {
    const StoredTensor& tensor = *headers.find(name);
    if (name.ends_with("global_scale")) ones.push_back(end);
    header[name] = {
        {"dtype", names.at(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {end, end + tensor.byte_size()}}};
    end += tensor.byte_size();
  }
  const std::string text = raw_text(header.dump());
  write_with_hole(path, text, text.size() + end);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (const std::uint64_t at : ones) {
    file.seekp(static_cast<std::streamoff>(text.size() + at));
    file << raw(1.0f);
  }
}

/// The same as GGUF. Names stay as they are published, which GgufQwenCheckpoint passes through.
void write_as_gguf(const HeaderCheckpoint& headers, const std::filesystem::path& path) {
  GgufFile file;
  file.text("general.architecture", "qwen35")
      .u32("qwen35.block_count", 4)
      .boolean("qwen35.ssm.v_head_reordered", false);
  std::uint64_t end = 0;
  for (const std::string& name : headers.names()) {
    const StoredTensor& tensor = *headers.find(name);
    const std::vector<std::int64_t> sizes(tensor.shape.rbegin(), tensor.shape.rend());
    file.entry(name, sizes, tensor.block_type != nullptr ? tensor.block_type->id : 30, end);
    end += (tensor.byte_size() + 31) / 32 * 32;
  }
  std::string begin = file.bytes();
  begin.resize((begin.size() + 31) / 32 * 32);
  write_with_hole(path, begin, begin.size() + end);
}

std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path) {
  return std::make_unique<GgufQwenCheckpoint>(std::make_shared<const GgufCheckpoint>(path));
}

constexpr ModelSizes dense_sizes{2048, 8192, 0, 8, 2, 32, 2048}, sparse_sizes{2048, 512, 16, 8, 2, 32, 2048};

struct StoredForm {
  const char* name;
  AddMatrix add;
  bool is_gguf = false;
  AddMatrix add_attention = add;
  ModelSizes sizes = dense_sizes;
};

class SlowLoadMemoryOfForms : public testing::TestWithParam<StoredForm> {};

TEST_P(SlowLoadMemoryOfForms, PeaksAtNoMoreThanTheFileATwentiethAndALayersMlp) {
  const StoredForm& form = GetParam();
  const HeaderCheckpoint headers = model_headers(form.sizes, form.add, form.add_attention);
  const TemporaryDirectory directory;
  const auto path = directory.path() / "model";
  (form.is_gguf ? write_as_gguf : write_as_safetensors)(headers, path);
  const auto file = static_cast<double>(std::filesystem::file_size(path));
  ASSERT_GT(file, 100e6);
  double mlp = 0;
  for (const std::string& name : headers.names()) {
    if (name.find("layers.0.mlp.") != std::string::npos) mlp += static_cast<double>(headers.find(name)->byte_size());
  }
  const auto peak = static_cast<double>(
      peak_of_loading(path, form.is_gguf ? open_gguf : OpenCheckpoint(open_safetensors), model_config(form.sizes)));
  std::printf("%s: file %.0f MB, peak %.0f MB, %.3f times the file\n", form.name, file / 1e6, peak / 1e6, peak / file);
  EXPECT_GT(peak, 0.9 * file) << "the measurement itself is wrong";
  EXPECT_LE(peak, 1.05 * file + mlp);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, SlowLoadMemoryOfForms,
    testing::Values(StoredForm{"fp8_block", as_fp8_blocks}, StoredForm{"fp8_tensor", as_fp8_tensor},
                    StoredForm{"fp8_row", as_fp8_rows}, StoredForm{"nvfp4", as_nvfp4},
                    StoredForm{"packed_nvfp4", as_packed_nvfp4}, StoredForm{"mxfp4", as_mxfp4},
                    StoredForm{"packed_int4", as_packed_int4}, StoredForm{"gptq", as_gptq}, StoredForm{"awq", as_awq},
                    StoredForm{"experts_fp8_block", as_fp8_blocks, false, as_fp8_blocks, sparse_sizes},
                    StoredForm{"experts_nvfp4_and_fp8", as_nvfp4, false, as_fp8_tensor, sparse_sizes},
                    StoredForm{"q8_0", as_blocks<q8_0>, true}, StoredForm{"q4_k", as_blocks<q4_k>, true},
                    StoredForm{"q5_k", as_blocks<q5_k>, true}, StoredForm{"q6_k", as_blocks<q6_k>, true}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace sluice::test
