// Every stored form against its definition, written out element by element.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/quantized_matrices.h"
#include "support/temporary_directory.h"
#include "weights/format.h"

namespace sluice::test {
namespace {

constexpr std::int64_t out = 136, in = 192;

/// One form's tensors, with readers for the definitions.
class Stored {
 public:
  explicit Stored(const std::string& form) {
    const auto forms = quantized_forms();
    std::ranges::find(forms, form, &QuantizedForm::name)->write(checkpoint_, random_, out, in);
  }
  MemoryCheckpoint& checkpoint() { return checkpoint_; }
  std::uint8_t byte(const std::string& name, std::int64_t index) {
    return std::to_integer<std::uint8_t>(checkpoint_.data("m." + name).at(static_cast<std::size_t>(index)));
  }
  std::uint32_t word(const std::string& name, std::int64_t index) {
    std::uint32_t value;
    std::memcpy(&value, checkpoint_.data("m." + name).data() + 4 * index, 4);
    return value;
  }
  float number(const std::string& name, std::int64_t index) {
    const StoredTensor& tensor = checkpoint_.tensor("m." + name);
    return load_float(tensor.dtype, checkpoint_.data(tensor.name).data(), static_cast<std::size_t>(index));
  }
  void expect(const std::function<double(std::int64_t row, std::int64_t column)>& definition) {
    const SourceMatrix matrix = checkpoint_.matrix("m", out, in);
    ASSERT_NE(matrix.format, nullptr);
    std::vector<float> values(static_cast<std::size_t>(out * in));
    matrix.dequantize(0, out, values.data());
    for (std::int64_t row = 0; row < out; ++row) {
      for (std::int64_t column = 0; column < in; ++column) {
        const double wanted = definition(row, column);
        ASSERT_NEAR(values[static_cast<std::size_t>(row * in + column)], wanted, 1e-6 * std::abs(wanted) + 1e-30)
            << row << " " << column;
      }
    }
  }

 private:
  MemoryCheckpoint checkpoint_;
  RandomTensors random_{3};
};

double e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double magnitude =
      exponent == 0 ? mantissa / 8.0 * std::pow(2.0, -6) : (1.0 + mantissa / 8.0) * std::pow(2.0, exponent - 7);
  return bits >= 128 ? -magnitude : magnitude;
}

double e2m1(int code) {
  constexpr double magnitudes[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  return code >= 8 ? -magnitudes[code - 8] : magnitudes[code];
}

TEST(Formats, Fp8HasAFactorForEachBlockOf128) {
  Stored m("fp8_block");
  m.expect([&](std::int64_t row, std::int64_t column) {
    return e4m3(m.byte("weight", row * in + column)) * m.number("weight_scale_inv", row / 128 * 2 + column / 128);
  });
}

TEST(Formats, Fp8HasOneFactor) {
  Stored m("fp8_tensor");
  m.expect([&](std::int64_t row, std::int64_t column) {
    return e4m3(m.byte("weight", row * in + column)) * m.number("weight_scale", 0);
  });
}

TEST(Formats, Fp8HasAFactorForEachRow) {
  Stored m("fp8_row");
  m.expect([&](std::int64_t row, std::int64_t column) {
    return e4m3(m.byte("weight", row * in + column)) * m.number("weight_scale", row);
  });
}

TEST(Formats, Int8HasAFactorForEachRow) {
  Stored m("int8_row");
  m.expect([&](std::int64_t row, std::int64_t column) {
    return static_cast<std::int8_t>(m.byte("weight", row * in + column)) * double{m.number("weight_scale", row)};
  });
}

TEST(Formats, Nvfp4OfModelOptMultipliesByItsGlobalScale) {
  Stored m("nvfp4_modelopt");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const int code = m.byte("weight", (row * in + column) / 2) >> (column % 2 * 4) & 15;
    return e2m1(code) * e4m3(m.byte("weight_scale", (row * in + column) / 16)) * m.number("weight_scale_2", 0);
  });
}

TEST(Formats, Nvfp4OfCompressedTensorsDividesByItsGlobalScale) {
  Stored m("nvfp4_packed");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const int code = m.byte("weight_packed", (row * in + column) / 2) >> (column % 2 * 4) & 15;
    return e2m1(code) * e4m3(m.byte("weight_scale", (row * in + column) / 16)) / m.number("weight_global_scale", 0);
  });
}

TEST(Formats, Mxfp4HasAPowerOfTwoForEach32) {
  Stored m("mxfp4");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const int code = m.byte("weight", (row * in + column) / 2) >> (column % 2 * 4) & 15;
    return e2m1(code) * std::pow(2.0, m.byte("weight_scale", (row * in + column) / 32) - 127);
  });
}

TEST(Formats, Mxfp4MayHaveAPowerOfTwoByItsType) {
  Stored m("mxfp4_typed");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const int code = m.byte("weight_packed", (row * in + column) / 2) >> (column % 2 * 4) & 15;
    return e2m1(code) * std::pow(2.0, m.byte("weight_scale", (row * in + column) / 32) - 127);
  });
}

TEST(Formats, Fp8MayHaveAPowerOfTwoForEachBlock) {
  Stored m("fp8_block");
  m.checkpoint().add_values("m.weight_scale_inv", DType::f8_e8m0, {2, 2}, std::vector<std::uint8_t>{127, 120, 130, 0});
  m.expect([&](std::int64_t row, std::int64_t column) {
    return e4m3(m.byte("weight", row * in + column)) *
           std::pow(2.0, m.byte("weight_scale_inv", row / 128 * 2 + column / 128) - 127);
  });
}

TEST(Formats, PackedInt4IsLessEight) {
  Stored m("packed_int4");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const auto code = static_cast<int>(m.word("weight_packed", (row * in + column) / 8) >> (column % 8 * 4) & 15);
    return (code - 8) * double{m.number("weight_scale", (row * in + column) / 32)};
  });
}

TEST(Formats, PackedInt4HasZeroPointsAlongTheRows) {
  Stored m("packed_int4_zero_points");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const auto code = static_cast<int>(m.word("weight_packed", (row * in + column) / 8) >> (column % 8 * 4) & 15);
    const std::int64_t group = column / 32, groups = in / 32;
    const auto zero = static_cast<int>(m.word("weight_zero_point", row / 8 * groups + group) >> (row % 8 * 4) & 15);
    return (code - zero) * double{m.number("weight_scale", row * groups + group)};
  });
}

TEST(Formats, PackedInt8IsLess128) {
  Stored m("packed_int8");
  m.expect([&](std::int64_t row, std::int64_t column) {
    return (int{m.byte("weight_packed", row * in + column)} - 128) * double{m.number("weight_scale", row)};
  });
}

TEST(Formats, GptqPacksAlongTheColumnsWithZeroPointsOneTooSmall) {
  Stored m("gptq4");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const auto code = static_cast<int>(m.word("qweight", column / 8 * out + row) >> (column % 8 * 4) & 15);
    const auto zero = static_cast<int>(m.word("qzeros", column / 32 * (out / 8) + row / 8) >> (row % 8 * 4) & 15);
    return (code - (zero + 1) % 16) * double{m.number("scales", column / 32 * out + row)};
  });
}

TEST(Formats, GptqNamesTheGroupOfEachColumn) {
  Stored m("gptq4_act_order");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const std::int64_t group = m.word("g_idx", column);
    const auto code = static_cast<int>(m.word("qweight", column / 8 * out + row) >> (column % 8 * 4) & 15);
    const auto zero = static_cast<int>(m.word("qzeros", group * (out / 8) + row / 8) >> (row % 8 * 4) & 15);
    return (code - (zero + 1) % 16) * double{m.number("scales", group * out + row)};
  });
}

TEST(Formats, PackedIntNamesTheGroupOfEachColumn) {
  Stored m("packed_int8_act_order");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const std::int64_t group = m.word("weight_g_idx", column);
    return (int{m.byte("weight_packed", row * in + column)} - 128) *
           double{m.number("weight_scale", row * in / 64 + group)};
  });
}

TEST(Formats, GptqHasEightBits) {
  Stored m("gptq8");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const auto code = static_cast<int>(m.word("qweight", column / 4 * out + row) >> (column % 4 * 8) & 255);
    const auto zero = static_cast<int>(m.word("qzeros", row / 4) >> (row % 4 * 8) & 255);
    return (code - (zero + 1) % 256) * double{m.number("scales", row)};
  });
}

TEST(Formats, AwqPacksAlongTheRowsInAnOrderOfItsOwn) {
  constexpr int row_of_nibble[] = {0, 2, 4, 6, 1, 3, 5, 7};
  Stored m("awq");
  m.expect([&](std::int64_t row, std::int64_t column) {
    const auto nibble = static_cast<int>(std::ranges::find(row_of_nibble, row % 8) - row_of_nibble);
    const auto code = static_cast<int>(m.word("qweight", column * (out / 8) + row / 8) >> (nibble * 4) & 15);
    const auto zero = static_cast<int>(m.word("qzeros", column / 64 * (out / 8) + row / 8) >> (nibble * 4) & 15);
    return (code - zero) * double{m.number("scales", column / 64 * out + row)};
  });
}

/// The codes and factors of ggml's blocks stand for the numbers that the blocks themselves do.
TEST(Formats, CodingsOfBlocksGiveTheNumbersOfTheBlocks) {
  int found = 0;
  for (const QuantizedForm& form : quantized_forms()) {
    MemoryCheckpoint checkpoint;
    RandomTensors random(9);
    form.write(checkpoint, random, 16, 768);
    SourceMatrix matrix = checkpoint.matrix("m", 16, 768);
    if (form.format != "ggml" || !matrix.coding()) continue;
    ++found;
    std::vector<float> blocks(16 * 768), codes(16 * 768);
    matrix.dequantize(0, 16, blocks.data());
    Format coded = *matrix.format;
    coded.dequantize = nullptr;
    matrix.format = &coded;
    matrix.dequantize(0, 16, codes.data());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_NEAR(codes[i], blocks[i], 1e-5f * std::abs(blocks[i]) + 1e-5f) << form.name << " " << i;
    }
  }
  EXPECT_EQ(found, 7);
}

std::string format_error(const std::string& form, const std::function<void(MemoryCheckpoint&)>& change) {
  Stored m(form);
  change(m.checkpoint());
  return message_of<LoadError>([&] {
    const SourceMatrix matrix = m.checkpoint().matrix("m", out, in);
    if (matrix.format == nullptr) throw LoadError("no format");
    std::vector<float> values(static_cast<std::size_t>(out * in));
    matrix.dequantize(0, out, values.data());
  });
}

TEST(Formats, RefuseWhatDoesNotAddUp) {
  const auto set_nan = [](const std::string& name, std::size_t at) {
    return [=](MemoryCheckpoint& m) {
      const float nan = NAN;
      std::memcpy(m.data("m." + name).data() + 4 * at, &nan, 4);
    };
  };
  const auto without = [](const std::string& name) { return [=](MemoryCheckpoint& m) { m.remove("m." + name); }; };
  const auto shaped = [](const std::string& name, std::vector<std::int64_t> shape) {
    return [=](MemoryCheckpoint& m) { m.tensor("m." + name).shape = shape; };
  };
  struct Row {
    std::string form;
    std::function<void(MemoryCheckpoint&)> change;
    std::string message;
  };
  const std::vector<Row> rows{
      {"fp8_block", without("weight_scale_inv"), "is float8_e4m3, expected bfloat16, float16 or float32"},
      {"fp8_block", set_nan("weight_scale_inv", 3), "\"m.weight_scale_inv\" holds nan at element 3"},
      {"fp8_block", shaped("weight_scale_inv", {4, 1}), "\"m.weight_scale_inv\" has shape [4, 1], expected one number"},
      {"fp8_block", shaped("weight", {in, out}), "\"m.weight\" has shape [192, 136], expected [136, 192]"},
      {"fp8_block", [](MemoryCheckpoint& m) { m.data("m.weight")[200] = std::byte{0xff}; }, "holds NaN in row 1"},
      {"fp8_row", shaped("weight_scale", {68, 2}), "\"m.weight_scale\" has shape [68, 2]"},
      {"nvfp4_modelopt", without("weight_scale_2"), "is uint8, expected bfloat16"},
      {"nvfp4_modelopt", set_nan("weight_scale_2", 0), "\"m.weight_scale_2\" holds nan"},
      {"nvfp4_modelopt", [](MemoryCheckpoint& m) { m.data("m.weight_scale")[5] = std::byte{0x7f}; },
       "\"m.weight_scale\" holds nan at element 5"},
      {"nvfp4_modelopt", shaped("weight_scale", {68, 24}), "has shape [68, 24], expected [136, 12]"},
      {"nvfp4_packed", without("weight_global_scale"), "no format"},
      {"nvfp4_packed", [](MemoryCheckpoint& m) { std::memset(m.data("m.weight_global_scale").data(), 0, 4); },
       "\"m.weight_global_scale\" is 0"},
      {"mxfp4", [](MemoryCheckpoint& m) { m.data("m.weight_scale")[9] = std::byte{255}; }, "holds NaN in row 1"},
      {"packed_int4", without("weight_scale"), "no format"},
      {"packed_int4", shaped("weight_packed", {out * 2, in / 16}), "of 4-bit or [136, 48] of 8-bit numbers"},
      {"packed_int4", shaped("weight_scale", {out / 2, in / 16}), "expected [136, groups of 192]"},
      {"packed_int4_zero_points", shaped("weight_zero_point", {in / 32, out / 8}), "expected [17, 6]"},
      {"gptq4", shaped("qzeros", {out / 8, in / 32}), "\"m.qzeros\" has shape [17, 6], expected [6, 17]"},
      {"gptq4", [](MemoryCheckpoint& m) { m.data("m.g_idx")[4] = std::byte{1}; },
       "\"m.g_idx\": group 1 has 33 columns, expected 31 as in group 0"},
      {"gptq4_act_order", [](MemoryCheckpoint& m) { std::memset(m.data("m.g_idx").data() + 20, 6, 1); },
       "\"m.g_idx\": column 5 is in group 6, and there are scales for 6 groups"},
      {"gptq4_act_order", [](MemoryCheckpoint& m) { std::memset(m.data("m.g_idx").data() + 20, 255, 4); },
       "column 5 is in group -1"},
      {"gptq4_act_order", [](MemoryCheckpoint& m) { m.tensor("m.g_idx").dtype = DType::f32; },
       "\"m.g_idx\" is float32, expected int32"},
      {"gptq4_act_order", shaped("g_idx", {in - 1}), "\"m.g_idx\" has shape [191], expected [192]"},
      {"packed_int8_act_order", [](MemoryCheckpoint& m) { std::memset(m.data("m.weight_g_idx").data(), 255, 4); },
       "\"m.weight_g_idx\": column 0 is in group -1"},
      {"awq", shaped("qzeros", {out / 8, in / 64}), "\"m.qzeros\" has shape [17, 3], expected [3, 17]"},
      {"Q4_0", [](MemoryCheckpoint& m) { m.tensor("m.weight").shape = {in, out}; }, "expected [136, 192]"},
  };
  for (const Row& row : rows) {
    const std::string message = format_error(row.form, row.change);
    EXPECT_NE(message.find(row.message), std::string::npos) << row.form << ": " << message;
  }
}

}  // namespace
}  // namespace sluice::test
