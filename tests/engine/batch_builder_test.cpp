#include "engine/batch_builder.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "fake_ops.h"

namespace sluice {
namespace {

using Ids = std::vector<std::int32_t>;

Ids values(const Tensor& tensor) { return {tensor.as<std::int32_t>(), tensor.as<std::int32_t>() + tensor.elements()}; }

TEST(BatchBuilder, LaysSequencesOutOneAfterAnother) {
  FakeOps::Plan plan;
  FakeOps ops(plan);
  BatchBuilder builder;
  const Ids decode{7}, prefill{1, 2, 3}, first_blocks{5, 9}, second_blocks{4, 2};
  const std::vector<BatchSequence> sequences{{decode, 100, first_blocks, 3, 1}, {prefill, 0, second_blocks, 1, 0}};
  const BatchView batch = builder.build(sequences, ops);
  EXPECT_EQ(values(batch.token_ids), (Ids{7, 1, 2, 3}));
  EXPECT_EQ(batch.positions.shape(), (Shape{3, 4}));
  EXPECT_EQ(values(batch.positions), (Ids{100, 0, 1, 2, 100, 0, 1, 2, 100, 0, 1, 2}));
  EXPECT_EQ(values(batch.sequence_starts), (Ids{0, 1, 4}));
  EXPECT_EQ(values(batch.context_lengths), (Ids{100, 0}));
  EXPECT_EQ(batch.block_table.shape(), (Shape{2, 2}));
  EXPECT_EQ(values(batch.block_table), (Ids{5, 9, 4, -1})) << "blocks that hold no token yet are left out";
  EXPECT_EQ(values(batch.state_slots), (Ids{3, 1}));
  EXPECT_EQ(values(batch.score_rows), (Ids{0}));
}

TEST(BatchBuilder, ForgetsTheStepBefore) {
  FakeOps::Plan plan;
  FakeOps ops(plan);
  BatchBuilder builder;
  const Ids tokens{1, 2, 3, 4}, blocks{0};
  builder.build(std::vector<BatchSequence>{{tokens, 0, blocks, 0, 1}}, ops);
  const Ids next{5};
  const BatchView batch = builder.build(std::vector<BatchSequence>{{next, 4, blocks, 0, 1}}, ops);
  EXPECT_EQ(batch.rows(), 1);
  EXPECT_EQ(values(batch.token_ids), (Ids{5}));
  EXPECT_EQ(values(batch.context_lengths), (Ids{4}));
}

TEST(BatchBuilder, ScoresTheLastRowsThatASequenceAsksFor) {
  FakeOps::Plan plan;
  FakeOps ops(plan);
  BatchBuilder builder;
  const Ids tokens{1, 2, 3, 4}, blocks{0}, more{1};
  const std::vector<BatchSequence> sequences{
      {tokens, 0, blocks, 0, 3}, {tokens, 0, more, 1, 0}, {tokens, 0, more, 1, 4}};
  EXPECT_EQ(values(builder.build(sequences, ops).score_rows), (Ids{1, 2, 3, 8, 9, 10, 11}));
  EXPECT_THROW(builder.build(std::vector<BatchSequence>{{tokens, 0, blocks, 0, 5}}, ops), InternalError);
}

TEST(BatchBuilder, ASequenceWithoutRoomIsABug) {
  FakeOps::Plan plan;
  FakeOps ops(plan);
  BatchBuilder builder;
  const Ids tokens{1, 2}, blocks{0};
  EXPECT_THROW(builder.build(std::vector<BatchSequence>{{tokens, 63, blocks, 0, 1}}, ops), InternalError);
}

}  // namespace
}  // namespace sluice
