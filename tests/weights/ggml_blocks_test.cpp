#include "weights/ggml_blocks.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/block_types.h"
#include "weights/ggml/i_quant_tables.h"

namespace sluice {
namespace {

using test::ggml_reference;

const StoredTensor* find(const BlockType& type, const char* what) {
  return ggml_reference().find(std::string(type.name) + "." + what);
}

template <class T>
std::vector<T> read(const StoredTensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
  std::memcpy(values.data(), ggml_reference().bytes(tensor).data(), values.size() * sizeof(T));
  return values;
}

class GgmlBlocks : public testing::TestWithParam<BlockType> {};

TEST_P(GgmlBlocks, AreTheFloatsOfTheReferenceBitForBit) {
  const BlockType& type = GetParam();
  const StoredTensor* blocks = find(type, "blocks");
  const StoredTensor* values = find(type, "values");
  ASSERT_TRUE(blocks != nullptr && values != nullptr) << "make_ggml_blocks.py does not know " << type.name;
  const std::int64_t count = blocks->shape.at(0);
  ASSERT_EQ(blocks->shape, (std::vector<std::int64_t>{count, type.bytes}));
  ASSERT_EQ(values->shape, (std::vector<std::int64_t>{count, type.values}));
  const auto expected = read<float>(*values);
  std::vector<float> found(expected.size());
  type.dequantize(ggml_reference().bytes(*blocks).data(), count, found.data());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << "value " << i << ": " << found[i] << ", expected " << expected[i];
  }
}

TEST_P(GgmlBlocks, WriteNothingBesideTheirValues) {
  const BlockType& type = GetParam();
  const auto block = read<std::byte>(*find(type, "blocks"));
  std::vector<float> out(static_cast<std::size_t>(type.values) * 2 + 1, 7.5f);
  type.dequantize(block.data(), 2, out.data());
  EXPECT_EQ(out.back(), 7.5f);
  std::vector<float> untouched(1, 7.5f);
  type.dequantize(block.data(), 0, untouched.data());
  EXPECT_EQ(untouched[0], 7.5f);
}

TEST_P(GgmlBlocks, AreFoundByTheirId) {
  const BlockType* found = find_block_type(GetParam().id);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(Types, GgmlBlocks, testing::ValuesIn(block_types().begin(), block_types().end()),
                         test::name_of_type);

TEST(GgmlBlockTypes, HaveTheIdsAndSizesOfGguf) {
  const struct {
    std::uint32_t id;
    const char* name;
    std::int64_t values, bytes;
  } facts[] = {{2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
               {8, "Q8_0", 32, 34},      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},
               {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
               {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
               {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {29, "IQ1_M", 256, 56},   {34, "TQ1_0", 256, 54},
               {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36}};
  EXPECT_EQ(block_types().size(), std::size(facts));
  for (const auto& fact : facts) {
    const BlockType* type = find_block_type(fact.id);
    ASSERT_NE(type, nullptr) << fact.name;
    EXPECT_EQ(type->name, fact.name);
    EXPECT_EQ(type->values, fact.values) << fact.name;
    EXPECT_EQ(type->bytes, fact.bytes) << fact.name;
  }
}

TEST(GgmlBlockTypes, DoNotIncludeWhatIsNoBlock) {
  // Plain numbers, types that ggml has removed, those that only its products use, and ids that it does not have.
  for (const std::uint32_t id : {0u, 1u, 4u, 5u, 9u, 15u, 24u, 27u, 30u, 31u, 36u, 1000u, 0xffffffffu}) {
    EXPECT_EQ(find_block_type(id), nullptr) << id;
  }
}

template <std::size_t size, int bits>
void expect_grid(const ggml::Grid<size, bits>& grid, const char* name) {
  const StoredTensor& stored = *ggml_reference().find(name);
  ASSERT_EQ(stored.shape,
            (std::vector<std::int64_t>{static_cast<std::int64_t>(grid.points.size()), static_cast<std::int64_t>(size)}))
      << name;
  const auto expected = read<std::int8_t>(stored);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(grid.point(i / size)[i % size], static_cast<float>(expected[i])) << name << " " << i;
  }
}

TEST(GgmlGrids, AreTheReferencePointForPoint) {
  expect_grid(ggml::iq1_grid, "IQ1_S.grid");
  expect_grid(ggml::iq2_xxs_grid, "IQ2_XXS.grid");
  expect_grid(ggml::iq2_xs_grid, "IQ2_XS.grid");
  expect_grid(ggml::iq2_s_grid, "IQ2_S.grid");
  expect_grid(ggml::iq3_xxs_grid, "IQ3_XXS.grid");
  expect_grid(ggml::iq3_s_grid, "IQ3_S.grid");
}

}  // namespace
}  // namespace sluice
