// Matrices of every stored form with something missing, misshapen, of another type or out of range.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/quantized_matrices.h"
#include "support/temporary_directory.h"
#include "weights/audit_placer.h"
#include "weights/ggml_blocks.h"
#include "weights/scope.h"

namespace sluice::test {
namespace {

constexpr std::int64_t out = 136, in = 768;

MemoryCheckpoint written(const QuantizedForm& form) {
  MemoryCheckpoint checkpoint;
  RandomTensors random(4);
  form.write(checkpoint, random, out, in);
  return checkpoint;
}

/// The numbers of the matrix "m", when a model has nothing but it.
std::vector<float> load(const MemoryCheckpoint& checkpoint) {
  AuditPlacer placer;
  const WeightScope root(checkpoint, placer);
  root.matrix("m", out, in);
  root.finish();
  const SourceMatrix matrix = checkpoint.matrix("m", out, in);
  std::vector<float> values(static_cast<std::size_t>(out * in));
  matrix.dequantize(0, out, values.data());
  return values;
}

std::string error_of(const MemoryCheckpoint& checkpoint) {
  return message_of<LoadError>([&] { load(checkpoint); });
}

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

/// Tensors without which the others still say all: what activations are divided by, the shape again, and what is then
/// taken to be in the middle or in order.
bool can_be_missing(const std::string& name) {
  return name.find("input") != std::string::npos || name.ends_with("weight_shape") ||
         name.ends_with("weight_zero_point") || name.ends_with("g_idx");
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// Calls `check` for every form with each of its tensors.
void for_each_tensor(const std::function<void(const QuantizedForm&, const std::string& name)>& check) {
  for (const QuantizedForm& form : quantized_forms()) {
    for (const std::string& name : written(form).names()) {
      SCOPED_TRACE(form.name + " " + name);
      check(form, name);
    }
  }
}

TEST(DamagedMatrices, AreWholeBefore) {
  for (const QuantizedForm& form : quantized_forms()) {
    EXPECT_EQ(error_of(written(form)), "") << form.name;
    EXPECT_TRUE(all_finite(load(written(form)))) << form.name;
  }
}

TEST(DamagedMatrices, ATensorThatIsMissingIsAnError) {
  for_each_tensor([](const QuantizedForm& form, const std::string& name) {
    MemoryCheckpoint checkpoint = written(form);
    checkpoint.remove(name);
    if (can_be_missing(name) && form.name != "gptq4_act_order") {
      EXPECT_EQ(error_of(checkpoint), "");
    } else if (!name.ends_with("g_idx")) {
      EXPECT_NE(error_of(checkpoint).find("\"m"), std::string::npos) << error_of(checkpoint);
    }
  });
}

TEST(DamagedMatrices, AScaleWithoutItsWeightIsAnError) {
  for_each_tensor([](const QuantizedForm& form, const std::string& name) {
    const MemoryCheckpoint source = written(form);
    MemoryCheckpoint checkpoint;
    checkpoint.add("m.weight", DType::bf16, {out, in}, std::vector<std::byte>(2 * out * in));
    if (name == "m.weight") return;
    checkpoint.add(name, source.find(name)->dtype, source.find(name)->shape,
                   std::vector<std::byte>(source.find(name)->byte_size()));
    EXPECT_NE(error_of(checkpoint).find("\"" + name + "\""), std::string::npos) << error_of(checkpoint);
  });
}

TEST(DamagedMatrices, AnotherShapeIsAnErrorThatNamesTheTensor) {
  for_each_tensor([](const QuantizedForm& form, const std::string& name) {
    if (name.find("input") != std::string::npos) return;  // not read
    const std::vector<std::int64_t> shape = written(form).find(name)->shape;
    std::vector<std::vector<std::int64_t>> wrong{{shape}, {shape}, {}};
    wrong[0].push_back(2);
    wrong[1].insert(wrong[1].begin(), 3);
    wrong[2] = {7, 5, 11};
    if (shape.size() == 2 && shape[0] != shape[1] && shape[0] * shape[1] != out) wrong.push_back({shape[1], shape[0]});
    for (const std::vector<std::int64_t>& other : wrong) {
      MemoryCheckpoint checkpoint = written(form);
      checkpoint.tensor(name).shape = other;
      checkpoint.data(name).resize(checkpoint.tensor(name).byte_size() + 64);
      const std::string message = error_of(checkpoint);
      EXPECT_NE(message.find(last_part(name)), std::string::npos) << message;
      EXPECT_NE(message.find(checkpoint.tensor(name).shape_text()), std::string::npos) << message;
    }
  });
}

TEST(DamagedMatrices, AnotherTypeIsAnErrorThatNamesTheTensor) {
  for_each_tensor([](const QuantizedForm& form, const std::string& name) {
    if (name.find("input") != std::string::npos) return;
    for (const DType dtype : {DType::boolean, DType::u16, DType::f8_e5m2, DType::f64, DType::u64}) {
      MemoryCheckpoint checkpoint = written(form);
      StoredTensor& tensor = checkpoint.tensor(name);
      if (tensor.block_type != nullptr) return;
      tensor.dtype = dtype;
      checkpoint.data(name).resize(tensor.byte_size() + 64);
      if (name == "m.weight" && dtype == DType::f64) continue;  // plain numbers, and the scales belong to nothing
      const std::string message = error_of(checkpoint);
      EXPECT_NE(message.find(last_part(name)), std::string::npos) << message;
      EXPECT_NE(message.find(std::string(name_of(dtype))), std::string::npos) << message;
    }
  });
}

/// Writes a number as a scale of this type, if it has it.
bool put(StoredTensor& tensor, std::vector<std::byte>& bytes, std::size_t index, float value) {
  std::byte* at = bytes.data() + index * size_of(tensor.dtype);
  const std::uint16_t half = tensor.dtype == DType::f16 ? float_to_f16(value) : float_to_bf16(value);
  switch (tensor.dtype) {
    case DType::f32: std::memcpy(at, &value, sizeof value); return true;
    case DType::f16:
    case DType::bf16: std::memcpy(at, &half, sizeof half); return true;
    case DType::f8_e4m3:
      *at = value == 0.0f ? std::byte{0x80} : std::byte{0x7f};
      return value == 0 || std::isnan(value);
    case DType::f8_e8m0: *at = std::byte{255}; return std::isnan(value);
    default: return false;
  }
}

TEST(DamagedMatrices, AScaleThatIsNoFiniteNumberIsAnErrorThatNamesTheTensor) {
  int found = 0;
  for_each_tensor([&](const QuantizedForm& form, const std::string& name) {
    if (name.find("scale") == std::string::npos || name.find("input") != std::string::npos) return;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const float value : {std::nanf(""), infinity, -infinity}) {
      MemoryCheckpoint checkpoint = written(form);
      const auto last = static_cast<std::size_t>(checkpoint.find(name)->elements() - 1);
      if (!put(checkpoint.tensor(name), checkpoint.data(name), last, value)) continue;
      ++found;
      EXPECT_NE(error_of(checkpoint).find("\"" + name + "\" holds"), std::string::npos) << error_of(checkpoint);
    }
  });
  EXPECT_GT(found, 40);
}

/// Large but finite scales whose products are not, and a divisor whose reciprocal is not.
TEST(DamagedMatrices, ScalesWhoseProductsAreNotFiniteAreAnError) {
  int found = 0;
  for_each_tensor([&](const QuantizedForm& form, const std::string& name) {
    if (name.find("scale") == std::string::npos || name.find("input") != std::string::npos) return;
    const bool divides = name.ends_with("global_scale");
    MemoryCheckpoint checkpoint = written(form);
    if (checkpoint.find(name)->dtype != DType::f32 && checkpoint.find(name)->dtype != DType::bf16) return;
    put(checkpoint.tensor(name), checkpoint.data(name), 0, divides ? 1e-40f : -3e38f);
    ++found;
    EXPECT_NE(error_of(checkpoint).find("row 0"), std::string::npos) << error_of(checkpoint);
  });
  EXPECT_GE(found, 8);
}

TEST(DamagedMatrices, ScalesOfZeroStandForZeros) {
  for_each_tensor([&](const QuantizedForm& form, const std::string& name) {
    if (name.find("scale") == std::string::npos || name.find("input") != std::string::npos) return;
    for (const float zero : {0.0f, -0.0f}) {
      MemoryCheckpoint checkpoint = written(form);
      if (checkpoint.find(name)->dtype == DType::u8 || checkpoint.find(name)->dtype == DType::f8_e8m0) continue;
      for (std::int64_t i = 0; i < checkpoint.find(name)->elements(); ++i) {
        put(checkpoint.tensor(name), checkpoint.data(name), static_cast<std::size_t>(i), zero);
      }
      if (name.ends_with("global_scale")) {
        EXPECT_NE(error_of(checkpoint).find("\"" + name + "\" is 0"), std::string::npos) << error_of(checkpoint);
        continue;
      }
      const std::vector<float> values = load(checkpoint);
      EXPECT_EQ(std::ranges::count(values, 0.0f), std::ssize(values));
    }
  });
}

/// Where a block has its scales: places of float16 numbers, in bytes.
struct BlockScales {
  std::string_view type;
  std::vector<std::size_t> halves;
};
const std::vector<BlockScales> block_scales{
    {"Q4_0", {0}},      {"Q4_1", {0, 2}}, {"Q5_0", {0}},    {"Q5_1", {0, 2}}, {"Q8_0", {0}},
    {"Q2_K", {80, 82}}, {"Q3_K", {108}},  {"Q4_K", {0, 2}}, {"Q5_K", {0, 2}}, {"Q6_K", {208}},
    {"IQ2_XXS", {0}},   {"IQ2_XS", {0}},  {"IQ3_XXS", {0}}, {"IQ1_S", {0}},   {"IQ4_NL", {0}},
    {"IQ3_S", {0}},     {"IQ2_S", {0}},   {"IQ4_XS", {0}},  {"TQ1_0", {52}},  {"TQ2_0", {64}},
};

std::string block_error(const BlockType& type, const std::function<void(std::byte* block)>& damage) {
  MemoryCheckpoint checkpoint;
  const auto bytes = static_cast<std::size_t>(out * in / type.values * type.bytes);
  checkpoint.add("m.weight", DType::u8, {out, in}, std::vector<std::byte>(bytes), &type);
  damage(checkpoint.data("m.weight").data() + 77 * in / type.values * type.bytes);
  return error_of(checkpoint);
}

TEST(DamagedMatrices, EveryTypeOfBlocksRefusesScalesThatAreNoNumbers) {
  const std::string expected = "memory: tensor \"m.weight\" has a scale that is not finite in row 77";
  for (const BlockType& type : block_types()) {
    SCOPED_TRACE(type.name);
    const auto row = std::ranges::find(block_scales, type.name, &BlockScales::type);
    EXPECT_EQ(block_error(type, [](std::byte*) {}), "");
    if (row == block_scales.end()) {
      EXPECT_TRUE(type.name == "MXFP4" || type.name == "NVFP4" || type.name == "IQ1_M");
      continue;
    }
    for (const std::size_t at : row->halves) {
      for (const int bits : {0x7c00, 0xfc00, 0x7e00, 0xffff, 0x7c01}) {
        const auto half = static_cast<std::uint16_t>(bits);
        EXPECT_EQ(block_error(type, [&](std::byte* block) { std::memcpy(block + at, &half, 2); }), expected) << at;
      }
    }
  }
  EXPECT_EQ(block_error(*find_block_type(29),
                        [](std::byte* block) {  // IQ1_M: high halves of four words
                          block[51] = std::byte{0xc0};
                          block[53] = std::byte{0xf0};
                          block[55] = std::byte{0x70};
                        }),
            expected);
  EXPECT_EQ(block_error(*find_block_type(39), [](std::byte* block) { *block = std::byte{255}; }), expected);
}

}  // namespace
}  // namespace sluice::test
