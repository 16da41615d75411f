// Experts that are stored in tensors with a leading dimension, in every form, give the numbers of single matrices.
#include "weights/fused_experts.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/quantized_matrices.h"
#include "support/temporary_directory.h"
#include "weights/audit_placer.h"
#include "weights/scope.h"

namespace sluice::test {
namespace {

constexpr std::int64_t experts = 3, rows = 24, in = 768;

/// Keeps the numbers of all experts that are placed, one after another.
class NumbersPlacer final : public Placer {
 public:
  WeightPtr place(std::span<const SourceMatrix> parts) override { return shapes_.place(parts); }
  ExpertWeightsPtr place_experts(const std::vector<std::vector<SourceMatrix>>& parts) override {
    for (const auto& expert : parts) {
      for (const SourceMatrix& matrix : expert) {
        std::vector<float> own(static_cast<std::size_t>(matrix.out * matrix.in));
        matrix.dequantize(0, matrix.out, own.data());
        numbers.insert(numbers.end(), own.begin(), own.end());
      }
    }
    return shapes_.place_experts(parts);
  }
  Tensor place_vector(std::span<const float> values, const Shape& shape) override {
    return shapes_.place_vector(values, shape);
  }
  Tensor place_indices(std::span<const std::int32_t> values) override { return shapes_.place_indices(values); }

  std::vector<float> numbers;

 private:
  AuditPlacer shapes_;
};

/// Single matrices of one form, and their tensors one behind another.
struct Experts {
  std::vector<MemoryCheckpoint> singles{static_cast<std::size_t>(experts)};
  std::vector<float> numbers;

  explicit Experts(const QuantizedForm& form, unsigned seed = 1) {
    RandomTensors random(seed);
    for (MemoryCheckpoint& single : singles) {
      form.write(single, random, rows, in);
      std::vector<float> own(static_cast<std::size_t>(rows * in));
      single.matrix("m", rows, in).dequantize(0, rows, own.data());
      numbers.insert(numbers.end(), own.begin(), own.end());
    }
  }
  /// NAME_OF("weight_scale") and so on, [experts, ...].
  void fuse(MemoryCheckpoint& to, const std::function<std::string(const std::string&)>& name_of) const {
    for (const std::string& name : singles.front().names()) {
      const StoredTensor& first = *singles.front().find(name);
      std::vector<std::int64_t> shape = first.shape;
      shape.insert(shape.begin(), experts);
      std::vector<std::byte> bytes;
      for (const MemoryCheckpoint& single : singles) {
        const auto own = single.bytes(*single.find(name));
        bytes.insert(bytes.end(), own.begin(), own.end());
      }
      to.add(name_of(name.substr(2)), first.dtype, shape, std::move(bytes), first.block_type);
    }
  }
};

QuantizedForm form_of(const std::string& name) {
  const auto forms = quantized_forms();
  return *std::ranges::find(forms, name, &QuantizedForm::name);
}

std::vector<float> load(const MemoryCheckpoint& checkpoint) {
  NumbersPlacer placer;
  const WeightScope root(checkpoint, placer);
  root.at("experts").experts("both", {{"gate", rows / 2}, {"up", rows / 2}}, experts, in);
  root.finish();
  return placer.numbers;
}

std::string error_of(const MemoryCheckpoint& checkpoint) {
  return message_of<LoadError>([&] { load(checkpoint); });
}

const std::string base = "experts.both";

std::string after_a_dot(const std::string& name) { return base + "." + name; }
std::string after_a_line(const std::string& name) { return name == "weight" ? base : base + "_" + name; }
std::string without_weight(const std::string& name) {
  if (name == "weight") return base;
  return base + (name.starts_with("weight_") ? name.substr(6) : "_" + name);
}

TEST(FusedExperts, OfEveryFormAreFoundUnderEverySpelling) {
  for (const QuantizedForm& form : quantized_forms()) {
    const Experts all(form);
    for (const auto& name_of : {after_a_dot, after_a_line, without_weight}) {
      SCOPED_TRACE(form.name + " " + name_of("weight_scale"));
      MemoryCheckpoint checkpoint;
      all.fuse(checkpoint, name_of);
      EXPECT_EQ(load(checkpoint), all.numbers);
    }
  }
}

TEST(FusedExperts, NameTheFormOfEachTensor) {
  const std::string own = "layers.0.mlp.experts.gate_up_proj";
  for (const QuantizedForm& form : quantized_forms()) {
    MemoryCheckpoint checkpoint;
    Experts(form).fuse(checkpoint, [&](const std::string& name) { return name == "weight" ? own : own + "_" + name; });
    for (const std::string& name : checkpoint.names()) {
      EXPECT_EQ(form_of_fused(checkpoint, *checkpoint.find(name)), form.format) << form.name << " " << name;
    }
    checkpoint.add_values(own + "_bias", DType::f32, {experts}, std::vector<float>(3));
    EXPECT_EQ(form_of_fused(checkpoint, *checkpoint.find(own + "_bias")), "");
    StoredTensor& values = checkpoint.tensor(checkpoint.names().front());
    values.shape.front() = 2;
    EXPECT_EQ(form_of_fused(checkpoint, *checkpoint.find(own + "_bias")), "") << "of other experts";
  }
}

TEST(FusedExperts, MayBeFusedByPart) {
  for (const char* form : {"fp8_row", "nvfp4_packed", "packed_int4_zero_points", "gptq4_act_order", "Q4_K"}) {
    const Experts gate(form_of(form), 1), up(form_of(form), 2);
    MemoryCheckpoint checkpoint;
    gate.fuse(checkpoint, [](const std::string& name) { return "experts.gate." + name; });
    up.fuse(checkpoint, [](const std::string& name) { return "experts.up." + name; });
    NumbersPlacer placer;
    const WeightScope root(checkpoint, placer);
    root.at("experts").experts("both", {{"gate", rows}, {"up", rows}}, experts, in);
    root.finish();
    std::vector<float> expected;
    for (std::int64_t e = 0; e < experts; ++e) {
      for (const Experts* part : {&gate, &up}) {
        const auto first = part->numbers.begin() + e * rows * in;
        expected.insert(expected.end(), first, first + rows * in);
      }
    }
    EXPECT_EQ(placer.numbers, expected) << form;
  }
}

TEST(FusedExperts, ShareAScaleOfOneNumber) {
  const QuantizedForm form = form_of("nvfp4_modelopt");
  const Experts all(form);
  MemoryCheckpoint checkpoint;
  all.fuse(checkpoint, after_a_line);
  checkpoint.add_values(base + "_weight_scale_2", DType::f32, {}, std::vector<float>{0.5f});
  std::vector<float> expected;
  for (MemoryCheckpoint single : all.singles) {
    single.add_values("m.weight_scale_2", DType::f32, {}, std::vector<float>{0.5f});
    std::vector<float> own(static_cast<std::size_t>(rows * in));
    single.matrix("m", rows, in).dequantize(0, rows, own.data());
    expected.insert(expected.end(), own.begin(), own.end());
  }
  EXPECT_EQ(load(checkpoint), expected);
}

TEST(FusedExperts, MayHaveAScaleForEachPart) {
  const Experts all(form_of("nvfp4_modelopt"));
  MemoryCheckpoint checkpoint;
  all.fuse(checkpoint, without_weight);
  const std::vector<float> scales{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  checkpoint.add_values(base + "_scale_2", DType::f32, {experts, 2}, scales);
  const std::vector<float> found = load(checkpoint);
  MemoryCheckpoint ones;
  all.fuse(ones, without_weight);
  ones.add_values(base + "_scale_2", DType::f32, {experts}, std::vector<float>{1.0f, 1.0f, 1.0f});
  const std::vector<float> units = load(ones);
  ASSERT_EQ(found.size(), units.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i], units[i] * scales[i / static_cast<std::size_t>(rows / 2 * in)]) << i;
  }
}

TEST(FusedExperts, MayHaveBlocksInADimensionOfTheirOwn) {
  const Experts all(form_of("mxfp4"));
  MemoryCheckpoint checkpoint;
  all.fuse(checkpoint, [](const std::string& name) { return base + (name == "weight" ? "_blocks" : "_scales"); });
  checkpoint.tensor(base + "_blocks").shape = {experts, rows, in / 32, 16};
  EXPECT_EQ(load(checkpoint), all.numbers);
}

TEST(FusedExperts, RefuseWhatDoesNotAddUp) {
  MemoryCheckpoint fewer;
  Experts(form_of("fp8_row")).fuse(fewer, without_weight);
  fewer.tensor(base + "_scale").shape = {experts - 1, rows, 1};
  EXPECT_NE(error_of(fewer).find("\"experts.both_scale\" has shape [2, 24, 1], expected one of 3 experts"),
            std::string::npos)
      << error_of(fewer);

  MemoryCheckpoint misshapen;
  Experts(form_of("fp8_row")).fuse(misshapen, without_weight);
  misshapen.tensor(base).shape = {experts, in, rows};
  EXPECT_NE(error_of(misshapen).find("[768, 24], expected [24, 768]"), std::string::npos) << error_of(misshapen);

  MemoryCheckpoint nan;
  Experts(form_of("fp8_row")).fuse(nan, without_weight);
  nan.data(base + "_scale")[2 * (2 * rows + 5)] = std::byte{0xc0};
  nan.data(base + "_scale")[2 * (2 * rows + 5) + 1] = std::byte{0x7f};
  EXPECT_NE(error_of(nan).find("\"experts.both_scale\" of expert 2"), std::string::npos) << error_of(nan);

  MemoryCheckpoint alone;
  Experts(form_of("nvfp4_packed")).fuse(alone, without_weight);
  alone.remove(base + "_scale");
  EXPECT_NE(error_of(alone).find("both_packed (uint8 [3, 24, 384])"), std::string::npos) << error_of(alone);

  MemoryCheckpoint stray;
  Experts(form_of("fp8_row")).fuse(stray, without_weight);
  stray.add_values(base + "_scale_2", DType::f32, {experts}, std::vector<float>(3));
  EXPECT_NE(error_of(stray).find("\"experts.both_scale_2\""), std::string::npos) << error_of(stray);

  EXPECT_NE(error_of(MemoryCheckpoint())
                .find("the experts \"experts.both\" [3, 24, 768] (or \"experts.gate\" "
                      "[3, 12, 768], \"experts.up\" [3, 12, 768], or "
                      "\"experts.0.gate.weight\" and so on) are missing"),
            std::string::npos)
      << error_of(MemoryCheckpoint());
}

}  // namespace
}  // namespace sluice::test
