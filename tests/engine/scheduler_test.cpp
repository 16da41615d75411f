#include "engine/scheduler.h"

#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "base/check.h"
#include "cache/kv_pool.h"

namespace sluice {
namespace {

std::vector<RequestId> ids_of(const StepPlan& plan) {
  std::vector<RequestId> ids;
  for (const StepItem& item : plan.items) ids.push_back(item.sequence);
  return ids;
}

/// Answers a plan: sequences in `finished` end, the others go on.
void answer(Scheduler& scheduler, const StepPlan& plan, const std::set<RequestId>& finished = {}) {
  std::vector<StepResult> results;
  for (const StepItem& item : plan.items) {
    if (item.score) results.push_back({item.sequence, finished.contains(item.sequence)});
  }
  scheduler.apply(results);
}

/// Random traffic, with what must hold at every step.
class Traffic {
 public:
  explicit Traffic(unsigned seed)
      : random_(seed),
        block_count_(pick(2, 30)),
        slot_count_(pick(1, 12)),
        rows_(slot_count_ + pick(0, 300)),
        scheduler_(block_count_, slot_count_, rows_) {}

  void run(int sequences) {
    int left = sequences;
    for (int step = 0; left > 0 || !live_.empty(); ++step) {
      ASSERT_LT(step, 100000) << "a request does not end";
      while (left > 0 && pick(0, 3) == 0) add(), --left;
      if (!live_.empty() && pick(0, 19) == 0) cancel();
      if (!live_.empty()) run_step();
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(scheduler_.idle());
    EXPECT_EQ(scheduler_.blocks().used(), 0);
    EXPECT_EQ(scheduler_.slots().used(), 0);
  }
  std::uint64_t preemptions() const { return scheduler_.preemptions(); }

 private:
  struct Known {
    std::pair<int, RequestId> order;
    std::int64_t tokens, longest, to_report, computed = 0, reported = 0;
  };
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<unsigned>(high - low + 1));
  }

  void add() {
    const std::int64_t longest = pick(1, block_count_ * kv_block_size);
    const std::int64_t tokens = pick(1, longest);
    const auto priority = static_cast<int>(pick(0, 2));
    const std::int64_t to_report = pick(0, 3) == 0 ? pick(0, tokens - 1) : 0;
    live_[next_] = {{priority, next_}, tokens, longest, to_report};
    scheduler_.add(next_, priority, tokens, longest, to_report);
    ++next_;
  }

  void cancel() {
    const auto victim = std::next(live_.begin(), pick(0, std::ssize(live_) - 1));
    EXPECT_TRUE(scheduler_.cancel(victim->first));
    live_.erase(victim);
  }

  void run_step() {
    const StepPlan plan = scheduler_.plan();
    check(plan);
    std::vector<StepResult> results;
    for (const StepItem& item : plan.items) {
      Known& known = live_.at(item.sequence);
      known.computed = item.first + item.count;
      known.reported = std::max(known.reported, std::min(known.computed, known.to_report));
      if (!item.score) continue;
      const bool finished = known.tokens == known.longest || pick(0, 30) == 0;
      results.push_back({item.sequence, finished});
      if (finished) {
        live_.erase(item.sequence);
      } else {
        ++known.tokens;
      }
    }
    scheduler_.apply(results);
  }

  void check(const StepPlan& plan) {
    ASSERT_LE(plan.rows(), rows_);
    std::set<std::int32_t> blocks, slots;
    std::set<RequestId> planned;
    std::int64_t decoding = 0;
    for (const StepItem& item : plan.items) {
      const Known& known = live_.at(item.sequence);
      ASSERT_TRUE(planned.insert(item.sequence).second) << "twice in one step";
      ASSERT_TRUE(item.first == known.computed || item.first == 0) << "tokens left out";
      ASSERT_GE(item.count, 1);
      ASSERT_LE(item.first + item.count, known.tokens);
      ASSERT_EQ(item.score, item.first + item.count == known.tokens);
      ASSERT_GE(std::ssize(item.cache->blocks()), kv_blocks_for(item.first + item.count));
      for (const std::int32_t block : item.cache->blocks()) ASSERT_TRUE(blocks.insert(block).second) << "block shared";
      ASSERT_TRUE(slots.insert(item.cache->slot()).second) << "slot shared";
      decoding += item.first > 0 && item.count == 1 && item.score ? 1 : 0;
    }
    check_cuts(plan, decoding);
    check_scored(plan);
    auto first = live_.begin();
    for (auto it = live_.begin(); it != live_.end(); ++it) first = it->second.order < first->second.order ? it : first;
    ASSERT_TRUE(planned.contains(first->first)) << "the first in order does not run";
  }

  void check_cuts(const StepPlan& plan, std::int64_t decoding) const {
    for (const StepItem& item : plan.items) {
      const bool aligned = item.score || (item.first + item.count) % kv_block_size == 0;
      ASSERT_TRUE(aligned || rows_ - decoding < kv_block_size) << item.first << " + " << item.count;
    }
  }

  /// Rows are reported one after another, none twice, and of one sequence in a step.
  void check_scored(const StepPlan& plan) const {
    int reporting = 0;
    for (const StepItem& item : plan.items) {
      const Known& known = live_.at(item.sequence);
      const std::int64_t end = item.first + item.count, sampled = item.score ? 1 : 0;
      if (known.reported == known.to_report || end <= known.reported) {
        ASSERT_EQ(item.scored_rows, sampled);
      } else {
        ASSERT_EQ(end - item.scored_rows, known.reported);
        ASSERT_LE(item.count, kv_block_size);
        ASSERT_EQ(++reporting, 1);
      }
    }
  }

  std::mt19937 random_;
  std::int64_t block_count_, slot_count_, rows_;
  Scheduler scheduler_;
  std::map<RequestId, Known> live_;
  RequestId next_ = 1;
};

TEST(Scheduler, KeepsItsPromisesUnderRandomTraffic) {
  std::uint64_t preemptions = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    Traffic traffic(seed);
    traffic.run(30);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    preemptions += traffic.preemptions();
  }
  EXPECT_GT(preemptions, 100u) << "the traffic is too light to test preemption";
}

TEST(Scheduler, StartsInOrderOfPriorityThenArrival) {
  Scheduler scheduler(8, 1, 64);
  const std::vector<std::pair<RequestId, int>> arrivals{{1, 2}, {2, 0}, {3, 1}, {4, 0}};
  for (const auto& [id, priority] : arrivals) scheduler.add(id, priority, 10, 20);
  std::vector<RequestId> order;
  while (!scheduler.idle()) {
    const StepPlan plan = scheduler.plan();
    order.insert(order.end(), 1, plan.items.at(0).sequence);
    answer(scheduler, plan, {plan.items.at(0).sequence});
  }
  EXPECT_EQ(order, (std::vector<RequestId>{2, 4, 3, 1}));
}

TEST(Scheduler, DecodesGoBeforePrefills) {
  Scheduler scheduler(32, 4, 100);
  scheduler.add(1, 0, 10, 50);
  answer(scheduler, scheduler.plan());
  scheduler.add(2, -1, 1000, 1001);
  const StepPlan plan = scheduler.plan();
  EXPECT_EQ(ids_of(plan), (std::vector<RequestId>{1, 2}));
  EXPECT_EQ(plan.items[0].count, 1);
  EXPECT_EQ(plan.items[1].count, 64);
}

TEST(Scheduler, CutsPrefillsAtMultiplesOfTheBlockSize) {
  Scheduler scheduler(32, 1, 100);
  scheduler.add(1, 0, 300, 301);
  std::vector<std::int64_t> counts;
  for (int step = 0; step < 5; ++step) {
    const StepPlan plan = scheduler.plan();
    counts.push_back(plan.rows());
    answer(scheduler, plan);
  }
  EXPECT_EQ(counts, (std::vector<std::int64_t>{64, 64, 64, 64, 44}));
}

TEST(Scheduler, AShortPromptDoesNotWaitForALongOne) {
  Scheduler scheduler(200, 4, 512);
  scheduler.add(1, 0, 10000, 10001);
  scheduler.add(2, 0, 20, 30);
  const StepPlan plan = scheduler.plan();
  EXPECT_EQ(ids_of(plan), (std::vector<RequestId>{1, 2}));
  EXPECT_EQ(plan.items[0].count, 448) << "what the short one leaves goes to the long one";
  EXPECT_TRUE(plan.items[1].score);
}

TEST(Scheduler, PreemptsTheLastInOrderWhenBlocksRunOut) {
  Scheduler scheduler(4, 2, 200);
  scheduler.add(1, 0, 64, 200);
  scheduler.add(2, 0, 63, 200);
  answer(scheduler, scheduler.plan());
  for (int step = 0; step < 70 && scheduler.preemptions() == 0; ++step) answer(scheduler, scheduler.plan());
  EXPECT_EQ(scheduler.preemptions(), 1u);
  EXPECT_EQ(ids_of(scheduler.plan()), std::vector<RequestId>{1});
}

TEST(Scheduler, APreemptedSequenceIsRunAgainFromItsFirstToken) {
  Scheduler scheduler(4, 2, 200);
  scheduler.add(1, 0, 64, 200);
  scheduler.add(2, 0, 63, 200);
  while (scheduler.preemptions() == 0) answer(scheduler, scheduler.plan());
  scheduler.cancel(1);
  const StepPlan plan = scheduler.plan();
  ASSERT_EQ(ids_of(plan), std::vector<RequestId>{2});
  EXPECT_EQ(plan.items[0].first, 0);
  EXPECT_GT(plan.items[0].count, 64) << "its output is part of the prompt now";
  EXPECT_TRUE(plan.items[0].score);
}

TEST(Scheduler, BetterPriorityTakesTheSlotOfAWorse) {
  Scheduler scheduler(8, 1, 64);
  scheduler.add(1, 5, 10, 100);
  answer(scheduler, scheduler.plan());
  scheduler.add(2, 5, 10, 100);
  EXPECT_EQ(ids_of(scheduler.plan()), std::vector<RequestId>{1}) << "equals wait";
  scheduler.apply(std::vector<StepResult>{{1, false}});
  scheduler.add(3, 4, 10, 100);
  EXPECT_EQ(ids_of(scheduler.plan()), std::vector<RequestId>{3});
}

TEST(Scheduler, ALargePromptAtTheHeadIsNotOvertaken) {
  Scheduler scheduler(4, 4, 300);
  scheduler.add(1, 0, 100, 110);
  answer(scheduler, scheduler.plan());
  scheduler.add(2, 0, 200, 210);
  scheduler.add(3, 0, 10, 20);
  EXPECT_EQ(ids_of(scheduler.plan()), std::vector<RequestId>{1});
}

TEST(Scheduler, AStartLeavesABlockForEachRunningSequenceToGrowInto) {
  Scheduler scheduler(4, 2, 300);
  scheduler.add(1, 0, 60, 200);
  answer(scheduler, scheduler.plan());
  scheduler.add(2, 0, 129, 200);
  EXPECT_EQ(ids_of(scheduler.plan()), std::vector<RequestId>{1});
}

TEST(Scheduler, TellsWhichSlotsChangedHands) {
  Scheduler scheduler(4, 2, 64);
  scheduler.add(1, 0, 65, 100);
  answer(scheduler, scheduler.plan());
  EXPECT_EQ(scheduler.take_changes().taken_slots, std::vector<std::int32_t>{0});
  scheduler.cancel(1);
  const CacheChanges changes = scheduler.take_changes();
  EXPECT_EQ(changes.released_slots, std::vector<std::int32_t>{0});
  EXPECT_EQ(changes.released_blocks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_TRUE(changes.taken_slots.empty());
}

TEST(Scheduler, RefusesWhatCanNeverFitAndStepsOutOfTurn) {
  Scheduler scheduler(2, 1, 64);
  EXPECT_THROW(scheduler.add(1, 0, 10, 129), InternalError);
  scheduler.add(1, 0, 10, 128);
  EXPECT_THROW(scheduler.add(1, 0, 10, 20), InternalError);
  EXPECT_THROW(scheduler.apply({}), InternalError);
  const StepPlan plan = scheduler.plan();
  EXPECT_THROW(scheduler.plan(), InternalError);
  EXPECT_THROW(scheduler.cancel(1), InternalError);
}

}  // namespace
}  // namespace sluice
