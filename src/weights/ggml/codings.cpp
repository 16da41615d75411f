#include "weights/ggml/codings.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "weights/ggml/blocks.h"
#include "weights/ggml/i_quant_tables.h"
#include "weights/ggml/k_scales.h"

namespace sluice::ggml {
namespace {

/// Where the parts of one block go.
struct Parts {
  std::uint8_t* codes;
  std::byte *scales, *supers, *offsets, *super_offsets;
};

/// Byte i holds value i and value i + half.
void split_nibbles(const Byte* bytes, int half, std::uint8_t* codes) {
  for (int i = 0; i < half; ++i) {
    codes[i] = bytes[i] & 15;
    codes[i + half] = bytes[i] >> 4;
  }
}

void put(Half half, std::byte* to) { std::memcpy(to, &half, sizeof half); }

void take_apart(const Q4_0& block, const Parts& to) {
  split_nibbles(block.qs, 16, to.codes);
  put(block.d, to.scales);
}

void take_apart(const IQ4_NL& block, const Parts& to) {
  split_nibbles(block.qs, 16, to.codes);
  put(block.d, to.scales);
}

void take_apart(const Q8_0& block, const Parts& to) {
  std::memcpy(to.codes, block.qs, sizeof block.qs);
  put(block.d, to.scales);
}

void take_apart(const MXFP4& block, const Parts& to) {
  split_nibbles(block.qs, 16, to.codes);
  *to.scales = std::byte{block.e};
}

void take_apart(const Q4_K& block, const Parts& to) {
  for (int group = 0; group < 8; ++group) {
    if (group % 2 == 0) split_nibbles(block.qs + 16 * group, 32, to.codes + 32 * group);
    const ScaleMin packed = unpack_scale_min(block.scales, group);
    to.scales[group] = static_cast<std::byte>(packed.scale);
    to.offsets[group] = static_cast<std::byte>(packed.minimum);
  }
  put(block.d, to.supers);
  put(block.dmin, to.super_offsets);
}

void take_apart(const Q6_K& block, const Parts& to) {
  for (int half = 0; half < 2; ++half) {
    std::uint8_t* codes = to.codes + 128 * half;
    const Byte* low = block.ql + 64 * half;
    split_nibbles(low, 64, codes);
    for (int i = 0; i < 128; ++i) {
      const int high = block.qh[32 * half + i % 32] >> (2 * (i / 32)) & 3;
      codes[i] = static_cast<std::uint8_t>(codes[i] | high << 4);
    }
  }
  std::memcpy(to.scales, block.scales, sizeof block.scales);
  put(block.d, to.supers);
}

void take_apart(const IQ4_XS& block, const Parts& to) {
  for (int group = 0; group < 8; ++group) {
    split_nibbles(block.qs + 16 * group, 16, to.codes + 32 * group);
    const int low = block.scales_l[group / 2] >> (4 * (group % 2)) & 15;
    const int high = block.scales_h >> (2 * group) & 3;
    to.scales[group] = static_cast<std::byte>((low | high << 4) - 32);
  }
  put(block.d, to.supers);
}

template <class Block>
void read_blocks(const std::byte* row, std::int64_t in, const Coding& coding, const CodedRow& out) {
  const std::int64_t groups = Block::values / coding.group;
  Parts to{out.codes, out.scales, out.supers, out.offsets, out.super_offsets};
  const bool supers = coding.super_group == Block::values;
  for (std::int64_t i = 0; i < in / Block::values; ++i, row += sizeof(Block)) {
    Block block;
    std::memcpy(&block, row, sizeof block);
    take_apart(block, to);
    to.codes += Block::values;
    to.scales += static_cast<std::size_t>(groups) * size_of(coding.scales);
    if (coding.offsets != FactorType::none) to.offsets += static_cast<std::size_t>(groups) * size_of(coding.offsets);
    if (!supers) continue;
    to.supers += size_of(coding.supers);
    if (coding.super_offsets != FactorType::none) to.super_offsets += size_of(coding.super_offsets);
  }
}

Coding simple(CodeKind codes, const std::array<std::int8_t, 16>& table, FactorType scales, std::int64_t group) {
  Coding coding;
  coding.codes = codes;
  coding.table = table;
  coding.scales = scales;
  coding.group = group;
  return coding;
}

Coding in_super_blocks(Coding coding) {
  coding.supers = FactorType::f16;
  coding.super_group = 256;
  return coding;
}

struct Row {
  std::string_view name;
  Coding coding;
  void (*read)(const std::byte* row, std::int64_t in, const Coding& coding, const CodedRow& out);
};

const std::array<Row, 7>& rows() {
  static const std::array<Row, 7> table = [] {
    Coding q4_k = in_super_blocks(simple(CodeKind::table, unsigned_nibbles, FactorType::u8, 32));
    q4_k.offsets = FactorType::u8;
    q4_k.super_offsets = FactorType::f16;
    Coding mxfp4 = simple(CodeKind::table, e2m1_halves, FactorType::f8_e8m0, 32);
    mxfp4.supers = FactorType::f32;
    return std::array<Row, 7>{
        Row{"Q4_0", simple(CodeKind::table, signed_nibbles, FactorType::f16, 32), read_blocks<Q4_0>},
        Row{"IQ4_NL", simple(CodeKind::table, iq4_levels, FactorType::f16, 32), read_blocks<IQ4_NL>},
        Row{"Q8_0", simple(CodeKind::int8, {}, FactorType::f16, 32), read_blocks<Q8_0>},
        Row{"MXFP4", mxfp4, read_blocks<MXFP4>},
        Row{"Q4_K", q4_k, read_blocks<Q4_K>},
        Row{"Q6_K", in_super_blocks(simple(CodeKind::six_bit, {}, FactorType::i8, 16)), read_blocks<Q6_K>},
        Row{"IQ4_XS", in_super_blocks(simple(CodeKind::table, iq4_levels, FactorType::i8, 32)), read_blocks<IQ4_XS>},
    };
  }();
  return table;
}

const Row* row_of(const BlockType& type) {
  const auto found = std::ranges::find(rows(), type.name, &Row::name);
  return found == rows().end() ? nullptr : &*found;
}

}  // namespace

std::optional<Coding> coding_of(const BlockType& type, std::int64_t in) {
  const Row* row = row_of(type);
  if (row == nullptr) return std::nullopt;
  Coding coding = row->coding;
  if (coding.supers != FactorType::none && coding.super_group == 0) coding.super_group = in;
  return coding;
}

void read_row(const BlockType& type, const std::byte* row, std::int64_t in, const CodedRow& out) {
  const Row* own = row_of(type);
  CHECK(own != nullptr, "{} has no coding", type.name);
  own->read(row, in, own->coding, out);
  if (own->coding.supers == FactorType::f32) {
    const float halves = 0.5f;  // the table of MXFP4 counts in them
    std::memcpy(out.supers, &halves, sizeof halves);
  }
}

}  // namespace sluice::ggml
