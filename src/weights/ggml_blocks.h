#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice {

/// One of ggml's block types: `values` neighbours of a row share a block of `bytes` bytes.
struct BlockType {
  std::uint32_t id;  // ggml_type, as GGUF files name it
  std::string_view name;
  std::int64_t values, bytes;
  /// `count` blocks, one after another, as count * values floats.
  void (*dequantize)(const std::byte* blocks, std::int64_t count, float* out);
  /// Whether the scales of all of them are such that no number is NaN or infinite.
  bool (*finite)(const std::byte* blocks, std::int64_t count);
};

/// Every block type that can be read.
std::span<const BlockType> block_types();
/// Null when the id is none of them.
const BlockType* find_block_type(std::uint32_t id);

}  // namespace sluice
