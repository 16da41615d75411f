#include <cstring>

#include "base/error.h"
#include "cpu/weight_source.h"
#include "support/quantized_matrices.h"
#include "support/temporary_directory.h"

namespace sluice {
namespace {

class PlacedWeights : public testing::Test {
 protected:
  WeightPtr place(const std::vector<SourceMatrix>& parts) { return ops_->placer().place(parts); }
  /// All rows of a placed matrix, by taking each as if it were an embedding.
  std::vector<float> rows_of(const Weight& weight) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(weight.out()));
    std::iota(ids.begin(), ids.end(), 0);
    const Tensor rows = ops_->embed(weight, source_.integers(ids));
    return {rows.as<float>(), rows.as<float>() + rows.elements()};
  }

  std::unique_ptr<Ops> ops_ = make_cpu_backend({2, Compute::bf16, ""});
  WeightSource weights_;
  Source source_;
};

TEST_F(PlacedWeights, KeepsEveryNumberOfEveryTypeAndShape) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (const std::int64_t out : {1, 15, 16, 17, 100}) {
      for (const std::int64_t in : {1, 2, 31, 32, 33, 64, 77}) {
        SCOPED_TRACE(fmt::format("{} [{}, {}]", name_of(dtype), out, in));
        const SourceMatrix matrix = weights_.matrix(dtype, out, in);
        const WeightPtr weight = place({matrix});
        EXPECT_EQ(weight->out(), out);
        EXPECT_EQ(weight->in(), in);
        EXPECT_EQ(rows_of(*weight), weights_.values(matrix));
      }
    }
  }
}

TEST_F(PlacedWeights, StacksPartsThatEndInsideAPanel) {
  const std::vector<SourceMatrix> parts = {weights_.matrix(DType::bf16, 5, 33), weights_.matrix(DType::bf16, 1, 33),
                                           weights_.matrix(DType::bf16, 40, 33), weights_.matrix(DType::bf16, 16, 33)};
  const WeightPtr weight = place(parts);
  EXPECT_EQ(rows_of(*weight), weights_.values(parts));
  EXPECT_EQ(weight->layout(), "bf16 panels");
}

TEST_F(PlacedWeights, StacksPartsOfDifferentTypesAsTheyAre) {
  const std::vector<SourceMatrix> parts = {weights_.matrix(DType::bf16, 5, 33), weights_.matrix(DType::f16, 20, 33),
                                           weights_.matrix(DType::f32, 7, 33)};
  const WeightPtr weight = place(parts);
  EXPECT_EQ(rows_of(*weight), weights_.values(parts));
  EXPECT_EQ(weight->layout(), "bf16 panels and f16 panels and f32 panels");
}

TEST_F(PlacedWeights, TakesRowsOutOfTheMiddleOfATensor) {
  const SourceMatrix matrix = weights_.matrix(DType::bf16, 18, 10, 7);
  EXPECT_EQ(rows_of(*place({matrix})), weights_.values(matrix));
}

TEST_F(PlacedWeights, DequantizesAFormatThatHasNoLayout) {
  const Format counting = {"counting", nullptr, nullptr,
                           [](const SourceMatrix& matrix, std::int64_t first, std::int64_t count, float* out) {
                             for (std::int64_t i = 0; i < count * matrix.in; ++i) {
                               out[i] = static_cast<float>(first * matrix.in + i);
                             }
                           }};
  const SourceMatrix matrix{&counting, {}, 0, 37, 5};
  std::vector<float> expected(37 * 5);
  std::iota(expected.begin(), expected.end(), 0.0f);
  EXPECT_EQ(rows_of(*place({matrix})), expected);
}

TEST_F(PlacedWeights, TakesLittleMoreMemoryThanTheNumbers) {
  const WeightPtr weight = place({weights_.matrix(DType::bf16, 1000, 1000)});
  EXPECT_GE(weight->bytes(), 2'000'000u);
  EXPECT_LE(weight->bytes(), 2'020'000u);
}

TEST_F(PlacedWeights, RefusesPartsOfDifferentWidths) {
  EXPECT_THROW(place({weights_.matrix(DType::bf16, 5, 33), weights_.matrix(DType::bf16, 5, 34)}), InternalError);
}

TEST_F(PlacedWeights, RefusesScalesThatAreNoNumbersWhereBlocksAreKept) {
  for (const char* type : {"Q5_K", "IQ3_S", "Q4_1"}) {
    test::MemoryCheckpoint checkpoint;
    test::RandomTensors random(3);
    test::block_form(type, {0, 2}).write(checkpoint, random, 20, 512);
    const SourceMatrix matrix = checkpoint.matrix("m", 20, 512);
    EXPECT_EQ(place({matrix})->layout(), "block rows");
    std::vector<std::byte>& blocks = checkpoint.data("m.weight");
    const std::uint16_t infinity = 0x7c00;
    std::memcpy(blocks.data() + blocks.size() / 20 * 17, &infinity, sizeof infinity);
    EXPECT_EQ(test::message_of<LoadError>([&] { place({matrix}); }),
              "memory: tensor \"m.weight\" has a scale that is not finite in row 17");
  }
}

TEST_F(PlacedWeights, KeepsVectorsAndIndices) {
  const std::vector<float> values = {1.5f, -2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  const std::vector<std::int32_t> indices = {3, -1, 2};
  const Tensor vector = ops_->placer().place_vector(values, {2, 3});
  const Tensor integers = ops_->placer().place_indices(indices);
  place({weights_.matrix(DType::f32, 100, 100)});
  ASSERT_EQ(vector.shape(), (Shape{2, 3}));
  ASSERT_EQ(integers.shape(), (Shape{3}));
  EXPECT_EQ(std::memcmp(vector.as<float>(), values.data(), vector.bytes()), 0);
  EXPECT_EQ(std::memcmp(integers.as<std::int32_t>(), indices.data(), integers.bytes()), 0);
}

TEST_F(PlacedWeights, TakesExpertsOfOneShape) {
  std::vector<std::vector<SourceMatrix>> parts;
  for (int expert = 0; expert < 3; ++expert) {
    parts.push_back({weights_.matrix(DType::bf16, 5, 6), weights_.matrix(DType::bf16, 20, 6)});
  }
  const ExpertWeightsPtr experts = ops_->placer().place_experts(parts);
  EXPECT_EQ(experts->experts(), 3);
  EXPECT_EQ(experts->out(), 25);
  EXPECT_EQ(experts->in(), 6);
  EXPECT_EQ(experts->layout(), "bf16 panels");
  parts[1].pop_back();
  EXPECT_THROW(ops_->placer().place_experts(parts), LoadError);
}

TEST_F(PlacedWeights, RefusesExpertsThatAreStoredInDifferentForms) {
  EXPECT_THROW(
      ops_->placer().place_experts({{weights_.matrix(DType::bf16, 5, 6)}, {weights_.matrix(DType::f16, 5, 6)}}),
      LoadError);
}

TEST_F(PlacedWeights, EmbeddingGivesTheRowsThatWereAskedFor) {
  const SourceMatrix matrix = weights_.matrix(DType::bf16, 50, 9);
  const std::vector<float>& values = weights_.values(matrix);
  const std::vector<std::int32_t> ids = {49, 0, 17, 17, 3};
  const Tensor rows = ops_->embed(*place({matrix}), source_.integers(ids));
  ASSERT_EQ(rows.shape(), (Shape{5, 9}));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(std::memcmp(rows.row<float>(static_cast<std::int64_t>(i)), values.data() + ids[i] * 9, 9 * sizeof(float)),
              0)
        << i;
  }
}

TEST_F(PlacedWeights, EmbeddingOfAnIdOutsideTheTableIsABug) {
  const WeightPtr table = place({weights_.matrix(DType::bf16, 50, 9)});
  EXPECT_THROW(ops_->embed(*table, source_.integers({50})), InternalError);
  EXPECT_THROW(ops_->embed(*table, source_.integers({-1})), InternalError);
}

}  // namespace
}  // namespace sluice
