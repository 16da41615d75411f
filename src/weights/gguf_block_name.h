#pragma once
#include <cstdint>
#include <string_view>

namespace sluice {

/// "blk.12.attn_q.weight" as 12 and "attn_q.weight".
struct GgufBlockName {
  std::int64_t block = -1;  // no name of a block
  std::string_view rest;
};
GgufBlockName parse_gguf_block_name(std::string_view name, std::string_view prefix);

}  // namespace sluice
