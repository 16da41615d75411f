#include "weights/ggml_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "weights/ggml/blocks.h"

namespace sluice {
namespace {

template <class Block>
void dequantize_blocks(const std::byte* blocks, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i, blocks += sizeof(Block), out += Block::values) {
    Block block;
    std::memcpy(&block, blocks, sizeof block);
    ggml::dequantize(block, out);
  }
}

bool is_number(ggml::Half half) { return (half & 0x7c00) != 0x7c00; }

template <class Block>
bool has_numbers(const Block& block) {
  if constexpr (requires { block.dmin; }) {
    return is_number(block.d) && is_number(block.dmin);
  } else if constexpr (requires { block.m; }) {
    return is_number(block.d) && is_number(block.m);
  } else {
    return is_number(block.d);
  }
}
bool has_numbers(const ggml::IQ1_M& block) { return is_number(super_scale(block)); }
bool has_numbers(const ggml::NVFP4&) { return true; }  // no code of its scales stands for NaN
/// 255 stands for NaN, and 6 * 2^126 is too large.
bool has_numbers(const ggml::MXFP4& block) { return block.e < 253; }

template <class Block>
bool blocks_have_numbers(const std::byte* blocks, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i, blocks += sizeof(Block)) {
    Block block;
    std::memcpy(&block, blocks, sizeof block);
    if (!has_numbers(block)) return false;
  }
  return true;
}

/// `bytes` says what the format has, so that a compiler's padding would not go unnoticed.
template <class Block, std::int64_t bytes>
constexpr BlockType row(std::uint32_t id, std::string_view name) {
  static_assert(sizeof(Block) == bytes);
  return {id, name, Block::values, bytes, dequantize_blocks<Block>, blocks_have_numbers<Block>};
}

constexpr std::array types{
    row<ggml::Q4_0, 18>(2, "Q4_0"),        row<ggml::Q4_1, 20>(3, "Q4_1"),        row<ggml::Q5_0, 22>(6, "Q5_0"),
    row<ggml::Q5_1, 24>(7, "Q5_1"),        row<ggml::Q8_0, 34>(8, "Q8_0"),        row<ggml::Q2_K, 84>(10, "Q2_K"),
    row<ggml::Q3_K, 110>(11, "Q3_K"),      row<ggml::Q4_K, 144>(12, "Q4_K"),      row<ggml::Q5_K, 176>(13, "Q5_K"),
    row<ggml::Q6_K, 210>(14, "Q6_K"),      row<ggml::IQ2_XXS, 66>(16, "IQ2_XXS"), row<ggml::IQ2_XS, 74>(17, "IQ2_XS"),
    row<ggml::IQ3_XXS, 98>(18, "IQ3_XXS"), row<ggml::IQ1_S, 50>(19, "IQ1_S"),     row<ggml::IQ4_NL, 18>(20, "IQ4_NL"),
    row<ggml::IQ3_S, 110>(21, "IQ3_S"),    row<ggml::IQ2_S, 82>(22, "IQ2_S"),     row<ggml::IQ4_XS, 136>(23, "IQ4_XS"),
    row<ggml::IQ1_M, 56>(29, "IQ1_M"),     row<ggml::TQ1_0, 54>(34, "TQ1_0"),     row<ggml::TQ2_0, 66>(35, "TQ2_0"),
    row<ggml::MXFP4, 17>(39, "MXFP4"),     row<ggml::NVFP4, 36>(40, "NVFP4"),
};

}  // namespace

std::span<const BlockType> block_types() { return types; }

const BlockType* find_block_type(std::uint32_t id) {
  const auto found = std::ranges::find(types, id, &BlockType::id);
  return found == types.end() ? nullptr : &*found;
}

}  // namespace sluice
