#include "server/token_inbox.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "server/work_queue.h"

namespace sluice {
namespace {

TEST(TokenInbox, DeliversInOrderAndWakesTheEventThreadOncePerBurst) {
  std::vector<std::function<void()>> posted;
  std::vector<int> delivered;
  auto inbox = std::make_shared<TokenInbox>([&](std::function<void()> task) { posted.push_back(std::move(task)); },
                                            [&](TokenInbox::Entry& entry) { delivered.push_back(entry.choice); });
  for (int i = 0; i < 600; ++i) inbox->push({1, i, {}});
  EXPECT_EQ(posted.size(), 1u);
  // Other tasks get their turn in between.
  for (std::size_t i = 0; i < posted.size(); ++i) {
    const auto task = posted[i];  // it posts others
    task();
  }
  EXPECT_GT(posted.size(), 2u);
  ASSERT_EQ(delivered.size(), 600u);
  for (int i = 0; i < 600; ++i) EXPECT_EQ(delivered[static_cast<std::size_t>(i)], i);
  inbox->push({1, 600, {}});
  const auto last = posted.back();
  last();
  EXPECT_EQ(delivered.back(), 600);
}

TEST(WorkQueue, RunsEveryTaskOnItsThreads) {
  std::atomic<int> sum{0};
  std::mutex mutex;
  std::condition_variable done;
  int left = 100;
  WorkQueue queue(3);
  for (int i = 0; i < 100; ++i) {
    queue.push([&, i] {
      sum += i;
      const std::lock_guard lock(mutex);
      if (--left == 0) done.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  ASSERT_TRUE(done.wait_for(lock, std::chrono::seconds(30), [&] { return left == 0; }));
  EXPECT_EQ(sum, 4950);
}

}  // namespace
}  // namespace sluice
