#include <cmath>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "base/check.h"
#include "cache/kv_pool.h"
#include "cache/sequence_cache.h"
#include "cache/state_pool.h"

namespace sluice {
namespace {

const CacheNeeds needs{.kv_layers = 2,
                       .kv_heads = 3,
                       .head_dim = 8,
                       .state_layers = 3,
                       .conv_taps = 4,
                       .conv_channels = 5,
                       .value_heads = 2,
                       .key_dim = 4,
                       .value_dim = 6};

CacheMemory host_memory() {
  return {host_buffer, [](const Tensor& tensor, std::uint8_t value) {
            CHECK(tensor.is_contiguous());
            std::memset(tensor.data(), value, tensor.bytes());
          }};
}

bool all_nan(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (!std::isnan(tensor.as<float>()[i])) return false;
  }
  return true;
}
bool all_zero(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.as<float>()[i] != 0.0f) return false;
  }
  return true;
}

TEST(IdPool, HandsOutEveryIdOnceLowOnesFirst) {
  IdPool pool(5);
  for (std::int32_t id = 0; id < 5; ++id) EXPECT_EQ(pool.take(), id);
  EXPECT_EQ(pool.used(), 5);
  EXPECT_EQ(pool.available(), 0);
  EXPECT_THROW(pool.take(), InternalError);
}

TEST(IdPool, GivingBackTwiceOrWhatWasNeverTakenIsABug) {
  IdPool pool(3);
  const std::int32_t id = pool.take();
  pool.give_back(id);
  EXPECT_THROW(pool.give_back(id), InternalError);
  EXPECT_THROW(pool.give_back(2), InternalError);
  EXPECT_THROW(pool.give_back(3), InternalError);
  EXPECT_THROW(pool.give_back(-1), InternalError);
  EXPECT_EQ(pool.used(), 0);
}

TEST(KvPool, HasAViewOfAllBlocksForEachLayer) {
  const KvPool pool(needs, DType::bf16, 7, host_memory());
  ASSERT_EQ(pool.layers().size(), 2u);
  std::set<void*> memory;
  for (const KvView& layer : pool.layers()) {
    EXPECT_EQ(layer.keys.shape(), (Shape{7, 3, kv_block_size, 8}));
    EXPECT_EQ(layer.values.shape(), layer.keys.shape());
    EXPECT_EQ(layer.keys.dtype(), DType::bf16);
    EXPECT_EQ(layer.block_size(), kv_block_size);
    memory.insert({layer.keys.data(), layer.values.data()});
  }
  EXPECT_EQ(memory.size(), 4u);
}

TEST(KvPool, PoisonsOneBlockInEveryLayer) {
  const KvPool pool(needs, DType::f32, 3, host_memory());
  pool.poison(1);
  for (const KvView& layer : pool.layers()) {
    for (const Tensor& pages : {layer.keys, layer.values}) {
      EXPECT_TRUE(all_zero(pages.slice(0, 0, 1)));
      EXPECT_TRUE(all_nan(pages.slice(0, 1, 1)));
      EXPECT_TRUE(all_zero(pages.slice(0, 2, 1)));
    }
  }
}

TEST(StatePool, ZeroesAndPoisonsOneSlotInEveryLayer) {
  const StatePool pool(needs, 4, host_memory());
  ASSERT_EQ(pool.layers().size(), 3u);
  pool.poison(1);
  pool.poison(2);
  pool.zero(1);
  for (const StateView& layer : pool.layers()) {
    EXPECT_EQ(layer.conv.shape(), (Shape{4, 3, 5}));
    EXPECT_EQ(layer.recurrent.shape(), (Shape{4, 2, 24}));
    for (const Tensor& state : {layer.conv, layer.recurrent}) {
      EXPECT_TRUE(all_zero(state.slice(0, 0, 2)));
      EXPECT_TRUE(all_nan(state.slice(0, 2, 1)));
      EXPECT_TRUE(all_zero(state.slice(0, 3, 1)));
    }
  }
}

TEST(SequenceCache, GrowsByWholeBlocks) {
  CachePools pools(4, 2);
  SequenceCache cache(pools);
  EXPECT_EQ(cache.slot(), -1);
  EXPECT_TRUE(cache.grow_to(1));
  EXPECT_EQ(cache.blocks().size(), 1u);
  EXPECT_TRUE(cache.grow_to(kv_block_size));
  EXPECT_EQ(cache.blocks().size(), 1u);
  EXPECT_TRUE(cache.grow_to(kv_block_size + 1));
  EXPECT_EQ(cache.blocks().size(), 2u);
  EXPECT_EQ(cache.slot(), 0);
  EXPECT_EQ(pools.changes.taken_slots, std::vector<std::int32_t>{0});
}

TEST(SequenceCache, TakesNothingWhenThePoolsHaveNotEnough) {
  CachePools few_blocks(2, 2);
  SequenceCache large(few_blocks);
  EXPECT_FALSE(large.grow_to(3 * kv_block_size));
  EXPECT_EQ(few_blocks.blocks.used() + few_blocks.slots.used(), 0);

  CachePools no_slot(4, 1);
  SequenceCache first(no_slot), second(no_slot);
  EXPECT_TRUE(first.grow_to(1));
  EXPECT_FALSE(second.grow_to(1));
  EXPECT_EQ(no_slot.blocks.used(), 1);
}

TEST(SequenceCache, GivesAllBackAtItsEndAndSaysSo) {
  CachePools pools(4, 2);
  {
    SequenceCache cache(pools);
    ASSERT_TRUE(cache.grow_to(200));
    EXPECT_EQ(pools.blocks.used(), 4);
  }
  EXPECT_EQ(pools.blocks.used(), 0);
  EXPECT_EQ(pools.slots.used(), 0);
  EXPECT_EQ(pools.changes.released_blocks.size(), 4u);
  EXPECT_EQ(pools.changes.released_slots, std::vector<std::int32_t>{0});
}

}  // namespace
}  // namespace sluice
