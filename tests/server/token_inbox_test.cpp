#include "server/token_inbox.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/work_queue.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TokenEvent token_event(int output_tokens, FinishReason finish_reason = FinishReason::none) {
  TokenEvent event;
  event.output_tokens = output_tokens;
  event.finish_reason = finish_reason;
  return event;
}

/// An inbox whose tasks run when the test says so.
struct Inbox {
  struct Task {
    std::chrono::milliseconds delay;
    std::function<void()> run;
  };
  void push(int choice, const TokenEvent& event) { inbox->push({1, choice, event}); }
  /// Runs what was posted, without what that posts.
  void run_posted() {
    for (const Task& task : std::exchange(posted, {})) task.run();
  }

  std::vector<Task> posted;
  std::vector<int> delivered;
  std::vector<std::size_t> batches;
  std::shared_ptr<TokenInbox> inbox =
      std::make_shared<TokenInbox>([this](auto delay, auto task) { posted.push_back({delay, std::move(task)}); },
                                   [this](std::span<TokenInbox::Entry> entries) {
                                     batches.push_back(entries.size());
                                     for (const TokenInbox::Entry& entry : entries) delivered.push_back(entry.choice);
                                   });
};

TEST(TokenInbox, DeliversInOrderAndLetsOtherTasksHaveTheirTurn) {
  Inbox inbox;
  for (int i = 0; i < 600; ++i) inbox.push(i, token_event(2));
  EXPECT_EQ(inbox.posted.size(), 1u);
  while (inbox.delivered.size() < 600) {
    ASSERT_EQ(inbox.posted.size(), 1u);
    inbox.run_posted();
  }
  EXPECT_EQ(inbox.batches, (std::vector<std::size_t>{256, 256, 88}));
  for (int i = 0; i < 600; ++i) EXPECT_EQ(inbox.delivered[static_cast<std::size_t>(i)], i);
}

TEST(TokenInbox, LooksAgainByItselfInsteadOfBeingWokenForEveryToken) {
  Inbox inbox;
  inbox.push(0, token_event(2));
  ASSERT_EQ(inbox.posted.size(), 1u);
  EXPECT_EQ(inbox.posted[0].delay, 0ms);
  inbox.run_posted();
  ASSERT_EQ(inbox.posted.size(), 1u);
  EXPECT_GT(inbox.posted[0].delay, 0ms);
  inbox.push(1, token_event(3));
  inbox.push(2, token_event(4));
  EXPECT_EQ(inbox.posted.size(), 1u) << "woken while it will look anyway";
  EXPECT_EQ(inbox.delivered, (std::vector<int>{0}));
  inbox.run_posted();
  EXPECT_EQ(inbox.delivered, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(inbox.batches.back(), 2u);
}

TEST(TokenInbox, GoesToSleepWhenNothingComes) {
  Inbox inbox;
  inbox.push(0, token_event(2));
  inbox.run_posted();
  inbox.run_posted();
  EXPECT_TRUE(inbox.posted.empty());
  inbox.push(1, token_event(3));
  ASSERT_EQ(inbox.posted.size(), 1u);
  EXPECT_EQ(inbox.posted[0].delay, 0ms);
  inbox.run_posted();
  EXPECT_EQ(inbox.delivered, (std::vector<int>{0, 1}));
}

TEST(TokenInbox, FirstAndLastTokensDoNotWait) {
  for (const TokenEvent& urgent : {token_event(1), token_event(9, FinishReason::length)}) {
    Inbox inbox;
    inbox.push(0, token_event(2));
    inbox.run_posted();
    const auto timer = std::exchange(inbox.posted, {});
    inbox.push(1, urgent);
    ASSERT_EQ(inbox.posted.size(), 1u);
    EXPECT_EQ(inbox.posted[0].delay, 0ms);
    inbox.run_posted();
    EXPECT_EQ(inbox.delivered, (std::vector<int>{0, 1}));
    EXPECT_TRUE(inbox.posted.empty()) << "a second timer";
    timer.at(0).run();
    EXPECT_TRUE(inbox.posted.empty());
  }
}

TEST(TokenInbox, ATimerThatComesBeforeAnUrgentWakeLeavesTheWorkToIt) {
  Inbox inbox;
  inbox.push(0, token_event(2));
  inbox.run_posted();
  const auto timer = std::exchange(inbox.posted, {});
  inbox.push(1, token_event(9, FinishReason::stop));
  timer.at(0).run();
  EXPECT_EQ(inbox.delivered, (std::vector<int>{0}));
  inbox.run_posted();
  EXPECT_EQ(inbox.delivered, (std::vector<int>{0, 1}));
  inbox.run_posted();
  inbox.push(2, token_event(3));
  inbox.run_posted();
  EXPECT_EQ(inbox.delivered, (std::vector<int>{0, 1, 2}));
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
