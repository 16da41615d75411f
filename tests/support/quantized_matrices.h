#pragma once
#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "support/memory_checkpoint.h"
#include "weights/ggml_blocks.h"

namespace sluice::test {

/// Random numbers that tests write into tensors.
class RandomTensors {
 public:
  explicit RandomTensors(unsigned seed) : random_(seed) {}

  std::vector<std::uint8_t> bytes(std::int64_t count, int below = 256) {
    std::vector<std::uint8_t> all(static_cast<std::size_t>(count));
    for (std::uint8_t& byte : all) byte = static_cast<std::uint8_t>(random_() % static_cast<unsigned>(below));
    return all;
  }
  std::vector<std::uint32_t> words(std::int64_t count) {
    std::vector<std::uint32_t> all(static_cast<std::size_t>(count));
    for (std::uint32_t& word : all) word = static_cast<std::uint32_t>(random_());
    return all;
  }
  /// e4m3, no NaN.
  std::vector<std::uint8_t> e4m3(std::int64_t count) {
    std::vector<std::uint8_t> all = bytes(count);
    for (std::uint8_t& byte : all) byte = (byte & 0x7f) == 0x7f ? 0x38 : byte;
    return all;
  }
  /// The group of each column, of `length` columns each (the last one of fewer), in disorder.
  std::vector<std::int32_t> column_groups(std::int64_t in, std::int64_t length) {
    std::vector<std::int32_t> groups;
    for (std::int64_t column = 0; column < in; ++column) groups.push_back(static_cast<std::int32_t>(column / length));
    std::shuffle(groups.begin(), groups.end(), random_);
    return groups;
  }
  /// From -1 to 1, not near 0.
  float scale() {
    const float magnitude = 0.25f + 0.75f * static_cast<float>(random_() % 1000) / 1000.0f;
    return random_() % 2 == 0 ? magnitude : -magnitude;
  }
  std::vector<float> floats(std::int64_t count) {
    std::vector<float> all(static_cast<std::size_t>(count));
    for (float& number : all) number = scale();
    return all;
  }
  std::vector<std::uint16_t> halves(std::int64_t count) {
    std::vector<std::uint16_t> all(static_cast<std::size_t>(count));
    for (std::uint16_t& half : all) half = float_to_f16(scale());
    return all;
  }
  std::vector<std::uint16_t> bfloats(std::int64_t count) {
    std::vector<std::uint16_t> all(static_cast<std::size_t>(count));
    for (std::uint16_t& half : all) half = float_to_bf16(scale());
    return all;
  }

 private:
  std::mt19937 random_;
};

/// A stored form: how to write a random matrix "m" [out, in] of it, and what shapes it can have.
struct QuantizedForm {
  std::string name, format;
  std::int64_t out_step, in_step;
  std::function<void(MemoryCheckpoint&, RandomTensors&, std::int64_t out, std::int64_t in)> write;
};

/// Blocks of random codes with float16 scales that are numbers, at these places of a block.
inline QuantizedForm block_form(std::string_view type_name, std::vector<std::size_t> halves_at) {
  const BlockType& type = *std::ranges::find(block_types(), type_name, &BlockType::name);
  return {std::string(type_name), "ggml", 1, type.values,
          [&type, halves_at](MemoryCheckpoint& to, RandomTensors& random, std::int64_t out, std::int64_t in) {
            const std::int64_t blocks = out * in / type.values;
            const std::vector<std::uint8_t> codes = random.bytes(blocks * type.bytes);
            std::vector<std::byte> bytes(codes.size());
            std::memcpy(bytes.data(), codes.data(), codes.size());
            for (std::int64_t block = 0; block < blocks; ++block) {
              std::byte* start = bytes.data() + block * type.bytes;
              if (type.name == "MXFP4") *start = static_cast<std::byte>(120 + block % 9);
              for (const std::size_t at : halves_at) std::memcpy(start + at, random.halves(1).data(), 2);
            }
            to.add("m.weight", DType::u8, {out, in}, std::move(bytes), &type);
          }};
}

inline std::vector<QuantizedForm> quantized_forms() {
  using C = MemoryCheckpoint;
  using R = RandomTensors;
  using N = std::int64_t;
  const auto blocks = [](N n) { return (n + 127) / 128; };
  std::vector<QuantizedForm> forms;
  forms.push_back({"fp8_block", "fp8", 1, 1, [=](C& to, R& random, N out, N in) {
                     to.add_values("m.weight", DType::f8_e4m3, {out, in}, random.e4m3(out * in));
                     to.add_values("m.weight_scale_inv", DType::f32, {blocks(out), blocks(in)},
                                   random.floats(blocks(out) * blocks(in)));
                   }});
  forms.push_back({"fp8_tensor", "fp8", 1, 1, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight", DType::f8_e4m3, {out, in}, random.e4m3(out * in));
                     to.add_values("m.weight_scale", DType::f32, {}, random.floats(1));
                     to.add_values("m.input_scale", DType::f32, {}, random.floats(1));
                   }});
  forms.push_back({"fp8_row", "fp8", 1, 1, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight", DType::f8_e4m3, {out, in}, random.e4m3(out * in));
                     to.add_values("m.weight_scale", DType::bf16, {out, 1}, random.bfloats(out));
                   }});
  forms.push_back({"int8_odd_groups", "int8", 1, 3, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight", DType::i8, {out, in}, random.bytes(out * in));
                     to.add_values("m.weight_scale", DType::f32, {out, in / 3}, random.floats(out * in / 3));
                   }});
  forms.push_back({"int8_row", "int8", 1, 1, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight", DType::i8, {out, in}, random.bytes(out * in));
                     to.add_values("m.weight_scale", DType::f32, {out, 1}, random.floats(out));
                   }});
  forms.push_back({"nvfp4_modelopt", "nvfp4", 1, 16, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight", DType::u8, {out, in / 2}, random.bytes(out * in / 2));
                     to.add_values("m.weight_scale", DType::f8_e4m3, {out, in / 16}, random.e4m3(out * in / 16));
                     to.add_values("m.weight_scale_2", DType::f32, {}, random.floats(1));
                   }});
  forms.push_back({"nvfp4_packed", "nvfp4", 1, 16, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight_packed", DType::u8, {out, in / 2}, random.bytes(out * in / 2));
                     to.add_values("m.weight_scale", DType::f8_e4m3, {out, in / 16}, random.e4m3(out * in / 16));
                     to.add_values("m.weight_global_scale", DType::f32, {1}, random.floats(1));
                     to.add_values("m.input_global_scale", DType::f32, {1}, random.floats(1));
                   }});
  forms.push_back({"mxfp4", "mxfp4", 1, 32, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight", DType::u8, {out, in / 2}, random.bytes(out * in / 2));
                     to.add_values("m.weight_scale", DType::u8, {out, in / 32}, random.bytes(out * in / 32, 140));
                   }});
  forms.push_back({"mxfp4_typed", "mxfp4", 1, 32, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight_packed", DType::u8, {out, in / 2}, random.bytes(out * in / 2));
                     to.add_values("m.weight_scale", DType::f8_e8m0, {out, in / 32}, random.bytes(out * in / 32, 140));
                   }});
  forms.push_back({"packed_int4", "packed int", 1, 32, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight_packed", DType::i32, {out, in / 8}, random.words(out * in / 8));
                     to.add_values("m.weight_scale", DType::bf16, {out, in / 32}, random.bfloats(out * in / 32));
                     to.add_values("m.weight_shape", DType::i64, {2}, std::vector<std::int64_t>{out, in});
                   }});
  forms.push_back({"packed_int4_zero_points", "packed int", 8, 32, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight_packed", DType::i32, {out, in / 8}, random.words(out * in / 8));
                     to.add_values("m.weight_scale", DType::f16, {out, in / 32}, random.halves(out * in / 32));
                     to.add_values("m.weight_zero_point", DType::i32, {out / 8, in / 32},
                                   random.words(out / 8 * in / 32));
                   }});
  forms.push_back({"packed_int8", "packed int", 1, 4, [](C& to, R& random, N out, N in) {
                     to.add_values("m.weight_packed", DType::i32, {out, in / 4}, random.words(out * in / 4));
                     to.add_values("m.weight_scale", DType::f32, {out, 1}, random.floats(out));
                   }});
  forms.push_back({"gptq4", "gptq", 8, 32, [](C& to, R& random, N out, N in) {
                     to.add_values("m.qweight", DType::i32, {in / 8, out}, random.words(out * in / 8));
                     to.add_values("m.scales", DType::f16, {in / 32, out}, random.halves(out * in / 32));
                     to.add_values("m.qzeros", DType::i32, {in / 32, out / 8}, random.words(out / 8 * in / 32));
                     std::vector<std::int32_t> order;
                     for (N column = 0; column < in; ++column) order.push_back(static_cast<std::int32_t>(column / 32));
                     to.add_values("m.g_idx", DType::i32, {in}, order);
                   }});
  forms.push_back({"gptq8", "gptq", 8, 32, [](C& to, R& random, N out, N in) {
                     to.add_values("m.qweight", DType::i32, {in / 4, out}, random.words(out * in / 4));
                     to.add_values("m.scales", DType::f16, {1, out}, random.halves(out));
                     to.add_values("m.qzeros", DType::i32, {1, out / 4}, random.words(out / 4));
                   }});
  forms.push_back({"gptq4_act_order", "gptq", 8, 8, [](C& to, R& random, N out, N in) {
                     const N groups = (in + 31) / 32;
                     to.add_values("m.qweight", DType::i32, {in / 8, out}, random.words(out * in / 8));
                     to.add_values("m.scales", DType::f16, {groups, out}, random.halves(out * groups));
                     to.add_values("m.qzeros", DType::i32, {groups, out / 8}, random.words(out / 8 * groups));
                     to.add_values("m.g_idx", DType::i32, {in}, random.column_groups(in, 32));
                   }});
  forms.push_back({"packed_int8_act_order", "packed int", 1, 8, [](C& to, R& random, N out, N in) {
                     const N groups = (in + 63) / 64;
                     to.add_values("m.weight_packed", DType::i32, {out, in / 4}, random.words(out * in / 4));
                     to.add_values("m.weight_scale", DType::bf16, {out, groups}, random.bfloats(out * groups));
                     to.add_values("m.weight_g_idx", DType::i32, {in}, random.column_groups(in, 64));
                   }});
  forms.push_back({"awq", "awq", 8, 64, [](C& to, R& random, N out, N in) {
                     to.add_values("m.qweight", DType::i32, {in, out / 8}, random.words(out * in / 8));
                     to.add_values("m.scales", DType::f16, {in / 64, out}, random.halves(out * in / 64));
                     to.add_values("m.qzeros", DType::i32, {in / 64, out / 8}, random.words(out / 8 * in / 64));
                   }});
  for (const char* type : {"Q4_0", "Q8_0", "IQ4_NL"}) forms.push_back(block_form(type, {0}));
  for (const char* type : {"Q4_K", "Q5_K", "Q4_1"}) forms.push_back(block_form(type, {0, 2}));
  forms.push_back(block_form("Q6_K", {208}));
  forms.push_back(block_form("IQ4_XS", {0}));
  forms.push_back(block_form("IQ3_S", {0}));
  forms.push_back(block_form("MXFP4", {}));
  return forms;
}

}  // namespace sluice::test
