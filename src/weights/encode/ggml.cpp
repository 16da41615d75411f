#include "weights/formats/ggml.h"

#include "base/check.h"
#include "weights/encode/forms.h"
#include "weights/ggml/quantize.h"
#include "weights/ggml_blocks.h"

namespace sluice {

namespace {

enum TypeId : std::uint32_t { q4_0 = 2, q8_0 = 8, q4_k = 12, q6_k = 14 };

template <TypeId id>
const BlockType& type() {
  static const BlockType* found = find_block_type(id);
  CHECK(found != nullptr && can_quantize(*found), "type {}", static_cast<std::uint32_t>(id));
  return *found;
}

template <TypeId id>
std::vector<EncodedPart> parts(std::int64_t out, std::int64_t in) {
  return {{{"weight", DType::u8, {out, in}, "", &type<id>()}}};
}

template <TypeId id>
void encode(const RowTile& tile, std::span<std::byte* const> parts) {
  quantize_row(type<id>(), tile.values, tile.rows * tile.in, parts[0]);
}

}  // namespace

const Encoder q4_0_encoder{"q4_0", &ggml_format, 32, false, 32, parts<q4_0>, encode<q4_0>};
const Encoder q8_0_encoder{"q8_0", &ggml_format, 32, false, 32, parts<q8_0>, encode<q8_0>};
const Encoder q4_k_encoder{"q4_k", &ggml_format, 32, false, 256, parts<q4_k>, encode<q4_k>};
const Encoder q6_k_encoder{"q6_k", &ggml_format, 32, false, 256, parts<q6_k>, encode<q6_k>};

}  // namespace sluice
