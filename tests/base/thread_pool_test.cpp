#include "base/thread_pool.h"

#include <array>
#include <atomic>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

#include "base/check.h"
#include "base/processors.h"

namespace sluice {
namespace {

class EachSize : public testing::TestWithParam<int> {};

TEST_P(EachSize, RunCallsEachThreadOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  std::vector<int> calls(static_cast<std::size_t>(GetParam()));
  for (int loop = 1; loop <= 200; ++loop) {
    pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    EXPECT_EQ(calls, std::vector<int>(calls.size(), loop));
  }
}

TEST_P(EachSize, RunUsesThreadsOfItsOwnBesideTheCaller) {
  ThreadPool pool(GetParam());
  std::vector<std::thread::id> ids(static_cast<std::size_t>(GetParam()));
  pool.run([&](int thread) { ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids.front(), std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), ids.size());
}

/// The processors that the calling thread may use.
std::vector<int> own_processors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &mask)) processors.push_back(i);
  }
  return processors;
}

TEST_P(EachSize, APinnedCallerHasTheProcessorThatNoWorkerHas) {
  const std::vector<int> all = own_processors();
  const bool one_each = GetParam() > 1 && std::ssize(allowed_cores()) >= GetParam();
  ThreadPool pool(GetParam());
  std::vector<std::vector<int>> found(static_cast<std::size_t>(GetParam()));
  std::thread caller([&] {
    pool.pin_caller();
    pool.run([&](int thread) { found[static_cast<std::size_t>(thread)] = own_processors(); });
  });
  caller.join();
  std::set<int> taken;
  for (const std::vector<int>& processors : found) {
    EXPECT_EQ(processors.size(), one_each ? 1 : all.size());
    taken.insert(processors.begin(), processors.end());
  }
  EXPECT_EQ(taken.size(), one_each ? found.size() : all.size());
  EXPECT_EQ(own_processors(), all) << "other threads keep theirs";
}

TEST_P(EachSize, ParallelForCoversEveryIndexOnceInRangesOfTheGrain) {
  ThreadPool pool(GetParam());
  for (const std::int64_t count : {0, 1, 2, 7, 8, 9, 64, 1000}) {
    for (const std::int64_t grain : {1, 3, 8, 1000}) {
      SCOPED_TRACE(testing::Message() << count << " by " << grain);
      std::vector<int> visits(static_cast<std::size_t>(count));
      std::atomic<int> ranges = 0;
      std::atomic<bool> cut_well = true;
      pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        ++ranges;
        if (begin % grain != 0 || (end % grain != 0 && end != count)) cut_well = false;
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
      EXPECT_TRUE(cut_well);
      EXPECT_LE(ranges, GetParam());
    }
  }
}

TEST_P(EachSize, ParallelForBalancesItsRanges) {
  ThreadPool pool(GetParam());
  std::atomic<std::int64_t> shortest = 1000, longest = 0;
  pool.parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t length = end - begin;
    for (std::int64_t seen = shortest; length < seen && !shortest.compare_exchange_weak(seen, length);) {
    }
    for (std::int64_t seen = longest; length > seen && !longest.compare_exchange_weak(seen, length);) {
    }
  });
  EXPECT_LE(longest - shortest, 1);
}

TEST_P(EachSize, ParallelItemsTakesEveryItemOnce) {
  ThreadPool pool(GetParam());
  for (const std::int64_t count : {0, 1, 2, 1000}) {
    std::vector<int> visits(static_cast<std::size_t>(count));
    std::atomic<bool> threads_exist = true;
    pool.parallel_items(count, [&](std::int64_t item, int thread) {
      ++visits[static_cast<std::size_t>(item)];
      if (thread < 0 || thread >= GetParam()) threads_exist = false;
    });
    EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
    EXPECT_TRUE(threads_exist);
  }
}

TEST_P(EachSize, AnExceptionReachesTheCallerAfterAllThreadsAreDone) {
  ThreadPool pool(GetParam());
  for (int thrower = 0; thrower < GetParam(); ++thrower) {
    std::atomic<int> done = 0;
    const auto loop = [&] {
      pool.run([&](int thread) {
        if (thread == thrower) throw std::runtime_error("thread " + std::to_string(thread));
        ++done;
      });
    };
    try {
      loop();
      FAIL() << "nothing thrown by thread " << thrower;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "thread " + std::to_string(thrower));
    }
    EXPECT_EQ(done, GetParam() - 1);
  }
}

TEST_P(EachSize, WorksOnAfterExceptionsOfAllThreads) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.run([](int) { throw std::runtime_error("all"); }), std::runtime_error);
  std::atomic<int> calls = 0;
  pool.run([&](int) { ++calls; });
  EXPECT_EQ(calls, GetParam());
}

TEST_P(EachSize, WakesParkedThreads) {
  ThreadPool pool(GetParam());
  for (int loop = 0; loop < 5; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> calls = 0;
    pool.run([&](int) { ++calls; });
    EXPECT_EQ(calls, GetParam());
  }
}

TEST_P(EachSize, WaitsForSlowWorkers) {
  ThreadPool pool(GetParam());
  std::atomic<int> done = 0;
  pool.run([&](int thread) {
    if (thread > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ++done;
  });
  EXPECT_EQ(done, GetParam());
}

TEST_P(EachSize, ALoopInsideALoopIsABug) {
  ThreadPool pool(GetParam()), other(GetParam());
  EXPECT_THROW(pool.run([&](int) { pool.run([](int) {}); }), InternalError);
  EXPECT_THROW(pool.run([&](int) { other.parallel_for(10, 100, [](std::int64_t, std::int64_t) {}); }), InternalError);
  EXPECT_THROW(pool.run([&](int) { other.parallel_items(1, [](std::int64_t, int) {}); }), InternalError);
}

INSTANTIATE_TEST_SUITE_P(Threads, EachSize, testing::Values(1, 2, 3, 8));

TEST(ThreadPool, OfNoThreadsIsABug) { EXPECT_THROW(ThreadPool(0), InternalError); }

TEST(ThreadPool, TwoPoolsWorkAtOnce) {
  std::atomic<std::int64_t> sum = 0;
  const auto work = [&sum] {
    ThreadPool pool(2);
    for (int loop = 0; loop < 100; ++loop) {
      pool.parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(sum, 20000);
}

TEST(UsableProcessors, AreBetweenOneAndThoseThatTheSystemShows) {
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace sluice
