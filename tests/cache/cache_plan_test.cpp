#include "cache/cache_plan.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cache/kv_pool.h"

namespace sluice {
namespace {

// A slot: 2 layers of (3 * 100 + 4 * 10 * 10) float32 are 5,600 bytes. A block: 3 layers of keys and values, 2 heads of
// 16 in bf16 for 64 tokens, are 24,576 bytes.
const CacheNeeds three_layers{.kv_layers = 3,
                              .kv_heads = 2,
                              .head_dim = 16,
                              .state_layers = 2,
                              .conv_taps = 4,
                              .conv_channels = 100,
                              .value_heads = 4,
                              .key_dim = 10,
                              .value_dim = 10};
constexpr std::uint64_t slot_bytes = 5600, block_bytes = 24576;

CachePlan plan(std::uint64_t available, const CacheLimits& limits) {
  return plan_caches(three_layers, DType::bf16, available, limits);
}

std::string refusal(std::uint64_t available, const CacheLimits& limits) {
  try {
    plan(available, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CachePlan, KnowsTheBytesOfASlotAndABlock) {
  const CachePlan bf16 = plan(1 << 30, {.max_context = 1000});
  EXPECT_EQ(bf16.bytes_per_slot, slot_bytes);
  EXPECT_EQ(bf16.bytes_per_block, block_bytes);
  EXPECT_EQ(plan_caches(three_layers, DType::f32, 1 << 30, {.max_context = 1000}).bytes_per_block, 2 * block_bytes);
}

TEST(CachePlan, ThePublishedSizesOfTheSmallestModelComeOut) {
  const CacheNeeds small{.kv_layers = 6,
                         .kv_heads = 2,
                         .head_dim = 256,
                         .state_layers = 18,
                         .conv_taps = 4,
                         .conv_channels = 6144,
                         .value_heads = 16,
                         .key_dim = 128,
                         .value_dim = 128};
  const CachePlan sizes = plan_caches(small, DType::bf16, 8ull << 30, {.max_context = 262144});
  EXPECT_EQ(sizes.bytes_per_block, 64u * 12 * 1024);                      // 12 KiB a token
  EXPECT_EQ(sizes.bytes_per_slot, (18ull << 20) + 18ull * 3 * 6144 * 4);  // 18 MiB and the conv state
}

TEST(CachePlan, StateTakesAQuarterAtMostAndBlocksTheRest) {
  const std::uint64_t available = 100 * slot_bytes;
  const CachePlan caches = plan(available, {.max_context = 1 << 20});
  EXPECT_EQ(caches.slots, 25);
  EXPECT_EQ(caches.blocks, static_cast<std::int64_t>(75 * slot_bytes / block_bytes));
  EXPECT_LE(caches.bytes(), available);
  EXPECT_EQ(caches.max_model_len, caches.blocks * kv_block_size) << "one sequence may take every block";
}

TEST(CachePlan, PlansNoMoreThanAllSequencesCanFill) {
  const CachePlan caches = plan(1ull << 40, {.max_context = 1000});
  EXPECT_EQ(caches.slots, 256);
  EXPECT_EQ(caches.blocks, 256 * 16);
  EXPECT_EQ(caches.max_model_len, 1000);
}

TEST(CachePlan, KeepsToWhatTheUserSet) {
  const CachePlan caches = plan(1ull << 30, {.max_model_len = 100, .max_num_seqs = 7, .max_context = 1000});
  EXPECT_EQ(caches.max_model_len, 100);
  EXPECT_EQ(caches.slots, 7);
  EXPECT_EQ(caches.blocks, 7 * 2);
}

TEST(CachePlan, GivesUpSlotsForTheLengthThatTheUserSet) {
  const CachePlan caches = plan(10 * block_bytes + 3 * slot_bytes, {.max_model_len = 640, .max_context = 1000});
  EXPECT_EQ(caches.slots, 3);
  EXPECT_EQ(caches.blocks, 10);
}

TEST(CachePlan, ALengthThatDoesNotFitSaysWhatWould) {
  EXPECT_EQ(
      refusal(4 * block_bytes + slot_bytes, {.max_model_len = 1000, .max_context = 1000}),
      "one sequence of 1000 tokens needs 389.5 KiB of caches, but they may take 101.5 KiB; at most 256 tokens fit: "
      "lower max_model_len");
  EXPECT_EQ(refusal(4 * block_bytes + slot_bytes, {.max_model_len = 256, .max_context = 1000}), "accepted");
  EXPECT_EQ(refusal(4 * block_bytes + slot_bytes, {.max_model_len = 257, .max_context = 1000}).substr(0, 36),
            "one sequence of 257 tokens needs 125");
}

TEST(CachePlan, NoRoomForABlockIsADeviceError) {
  EXPECT_THROW(plan(slot_bytes + block_bytes - 1, {.max_context = 1000}), DeviceError);
  EXPECT_NO_THROW(plan(slot_bytes + block_bytes, {.max_context = 1000}));
  EXPECT_THROW(plan(0, {.max_context = 1000}), DeviceError);
}

TEST(CachePlan, SequencesThatDoNotFitSayHowManyWould) {
  EXPECT_EQ(refusal(10 * slot_bytes + block_bytes, {.max_num_seqs = 11, .max_context = 1000}),
            "max_num_seqs is 11, but the state of that many sequences (5.5 KiB each) does not fit in the 78.7 KiB that "
            "caches may take beside a context of 1 tokens; at most 10 fit: lower max_num_seqs");
}

TEST(CachePlan, ALengthBeyondTheContextIsRefused) {
  EXPECT_EQ(refusal(1ull << 40, {.max_model_len = 1001, .max_context = 1000}),
            "max_model_len is 1001, but the model's context has 1000 tokens: lower max_model_len");
}

TEST(CachePlan, AModelWithoutOneKindOfLayerPaysNothingForIt) {
  CacheNeeds no_state = three_layers;
  no_state.state_layers = 0;
  EXPECT_EQ(plan_caches(no_state, DType::bf16, 1 << 20, {.max_context = 1000}).bytes_per_slot, 0u);
  CacheNeeds no_kv = three_layers;
  no_kv.kv_layers = 0;
  const CachePlan caches = plan_caches(no_kv, DType::bf16, 1 << 20, {.max_context = 1000});
  EXPECT_EQ(caches.bytes_per_block, 0u);
  EXPECT_EQ(caches.max_model_len, 1000);
}

TEST(CachePlan, NeverTakesMoreThanItMay) {
  for (std::uint64_t available = slot_bytes + block_bytes; available < 100000000; available = available * 5 / 4 + 17) {
    for (const std::int64_t context : {1, 64, 65, 5000}) {
      const CachePlan caches = plan(available, {.max_context = context});
      EXPECT_LE(caches.bytes(), available);
      EXPECT_GE(caches.slots, 1);
      EXPECT_GE(caches.blocks, kv_blocks_for(caches.max_model_len));
      EXPECT_GE(caches.max_model_len, 1);
    }
  }
}

}  // namespace
}  // namespace sluice
