// The same numbers in other quantized forms, names and conventions give the same logits.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <regex>

#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/rewrite_checkpoint.h"
#include "support/temporary_directory.h"

namespace sluice::test {
namespace {

const CpuOptions reference{.threads = 1, .compute = Compute::f32, .instruction_set = ""};

std::filesystem::path golden_dir(const std::string& name) { return source_dir() / "tests/data/golden" / name; }

Rows logits_of(const std::string& source, const Rewrite& rewrite, const std::function<void(Json&)>& change_config) {
  const TemporaryDirectory directory;
  rewrite_checkpoint(golden_dir(source), directory.path(), rewrite, change_config);
  const Golden golden(golden_dir("dense-ratio3") / "expected.safetensors");
  return ModelRunner(directory.path(), reference).run(golden.ids("ids.65")).logits;
}

template <class T>
NamedTensor tensor_of(std::string name, DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  NamedTensor tensor{std::move(name), dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

enum class As { numbers, words, words_of_second_format };

/// A matrix in 4 bits, its columns shared out among groups of 32 at random; or the numbers that this stands for.
std::vector<NamedTensor> quantized(const NamedTensor& matrix, As as) {
  const auto out = static_cast<std::size_t>(matrix.shape[0]), in = static_cast<std::size_t>(matrix.shape[1]);
  const std::size_t groups = in / 32;
  std::vector<std::int32_t> group_of(in);
  for (std::size_t column = 0; column < in; ++column) group_of[column] = static_cast<std::int32_t>(column / 32);
  std::shuffle(group_of.begin(), group_of.end(), std::mt19937(static_cast<unsigned>(matrix.name.size())));
  std::vector<std::uint32_t> words(out * in / 8), zeros(groups * out / 8);
  std::vector<std::uint16_t> scales(groups * out);
  std::vector<float> numbers(out * in);
  for (std::size_t row = 0; row < out; ++row) {
    const auto zero = static_cast<unsigned>(6 + row % 3);
    for (std::size_t group = 0; group < groups; ++group) {
      float largest = 1e-3f;
      for (std::size_t i = 0; i < in; ++i) {
        const float value = std::abs(load_float(matrix.dtype, matrix.bytes.data(), row * in + i));
        if (static_cast<std::size_t>(group_of[i]) == group) largest = std::max(largest, value);
      }
      scales[group * out + row] = float_to_f16(largest / 6.0f);
      const unsigned stored = as == As::words ? zero - 1 : zero;
      zeros[group * (out / 8) + row / 8] |= stored << (row % 8 * 4);
    }
    for (std::size_t i = 0; i < in; ++i) {
      const float scale = f16_to_float(scales[static_cast<std::size_t>(group_of[i]) * out + row]);
      const float value = load_float(matrix.dtype, matrix.bytes.data(), row * in + i);
      const auto code =
          static_cast<unsigned>(std::clamp(std::lround(value / scale) + static_cast<long>(zero), 0l, 15l));
      words[i / 8 * out + row] |= code << (i % 8 * 4);
      numbers[row * in + i] = (static_cast<float>(code) - static_cast<float>(zero)) * scale;
    }
  }
  if (as == As::numbers) return {tensor_of(matrix.name, DType::f32, matrix.shape, numbers)};
  const std::string base = matrix.name.substr(0, matrix.name.rfind('.') + 1);
  const auto rows = matrix.shape[0], columns = matrix.shape[1], count = static_cast<std::int64_t>(groups);
  return {tensor_of(base + "qweight", DType::i32, {columns / 8, rows}, words),
          tensor_of(base + "scales", DType::f16, {count, rows}, scales),
          tensor_of(base + "qzeros", DType::i32, {count, rows / 8}, zeros),
          tensor_of(base + "g_idx", DType::i32, {columns}, group_of)};
}

Rows logits_as(As as, const std::string& checkpoint_format) {
  const auto rewrite = [as](NamedTensor tensor) -> std::vector<NamedTensor> {
    const bool chosen = tensor.name.ends_with("_proj.weight") && tensor.shape.size() == 2;
    return chosen ? quantized(tensor, as) : std::vector<NamedTensor>{tensor};
  };
  return logits_of("dense-ratio3", rewrite, [&](Json& config) {
    config["quantization_config"] = {{"quant_method", "gptq"}, {"checkpoint_format", checkpoint_format}};
  });
}

TEST(QuantizedVariants, BothFormatsOfWordsWithColumnsInAnOrderOfTheirOwn) {
  const Rows first = logits_as(As::words, "gptq"), numbers = logits_as(As::numbers, "gptq");
  EXPECT_LT(relative_error(first, numbers), 1e-5);
  EXPECT_EQ(logits_as(As::words_of_second_format, "gptq_v2"), first);
  EXPECT_GT(relative_error(logits_as(As::words, "gptq_v2"), first), 0.01) << "the format makes a difference";
}

/// Puts the tensors of all experts one behind another: gate and up of each, and down.
class Fuse {
 public:
  explicit Fuse(std::size_t experts) : experts_(experts) {}
  std::vector<NamedTensor> operator()(NamedTensor tensor) {
    if (tensor.shape.empty()) tensor.shape = {1};
    static const std::regex pattern(R"((.*\.experts)\.(\d+)\.(gate|up|down)_proj\.(\w+))");
    std::smatch match;
    if (!std::regex_match(tensor.name, match, pattern)) return {std::move(tensor)};
    const bool down = match[3] == "down";
    const std::string suffix = match[4] == "weight" ? "" : "_" + match[4].str();
    std::vector<NamedTensor>& parts = parts_[match[1].str() + (down ? ".down_proj" : ".gate_up_proj") + suffix];
    parts.push_back(std::move(tensor));
    const std::size_t each = down ? 1 : 2;
    if (parts.size() < each * experts_) return {};
    NamedTensor all{
        match[1].str() + (down ? ".down_proj" : ".gate_up_proj") + suffix, parts[0].dtype, parts[0].shape, {}};
    for (const NamedTensor& part : parts) all.bytes.insert(all.bytes.end(), part.bytes.begin(), part.bytes.end());
    all.shape[0] *= static_cast<std::int64_t>(each);
    if (all.shape.size() > 1 || each > 1)
      all.shape.insert(all.shape.begin(), static_cast<std::int64_t>(experts_));
    else
      all.shape[0] = static_cast<std::int64_t>(experts_);
    return {all};
  }

 private:
  std::size_t experts_;
  std::map<std::string, std::vector<NamedTensor>> parts_;
};

TEST(QuantizedVariants, ExpertsOneBehindAnother) {
  const std::string source = "moe-ratio2-modelopt-mixed";
  const Json config = read_config(golden_dir(source));
  const auto experts = config["text_config"]["num_experts"].get<std::size_t>();
  ASSERT_LE(experts, 10u) << "names must sort as numbers do";
  const auto flat = [](NamedTensor tensor) -> std::vector<NamedTensor> {
    if (tensor.shape.empty()) tensor.shape = {1};
    return {tensor};
  };
  EXPECT_EQ(logits_of(source, Fuse(experts), [](Json&) {}), logits_of(source, flat, [](Json&) {}));
}

}  // namespace
}  // namespace sluice::test
