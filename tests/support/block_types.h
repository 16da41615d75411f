#pragma once
#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weights/ggml_blocks.h"
#include "weights/safetensors.h"

namespace sluice {

inline void PrintTo(const BlockType& type, std::ostream* out) { *out << type.name; }

namespace test {

/// The type must exist.
inline const BlockType& block_type(std::string_view name) {
  return *std::ranges::find(block_types(), name, &BlockType::name);
}

/// Names the tests of a suite whose parameter is a type.
inline std::string name_of_type(const testing::TestParamInfo<BlockType>& type) { return std::string(type.param.name); }

/// What tests/data/make_ggml_blocks.py made with the package gguf.
inline const Checkpoint& ggml_reference() {
  static const auto checkpoint = open_safetensors(SLUICE_SOURCE_DIR "/tests/data/ggml_blocks.safetensors");
  return *checkpoint;
}

}  // namespace test
}  // namespace sluice
