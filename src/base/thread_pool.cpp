#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "base/check.h"
#include "base/processors.h"

namespace sluice {

namespace {

/// How long a thread looks for a change before it parks: longer than the gaps between the operations of a step.
constexpr auto spin_time = std::chrono::microseconds(50);

thread_local bool inside_loop = false;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Returns when `value` is no longer `old`.
void await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old, bool spin) {
  if (spin) {
    const auto end = std::chrono::steady_clock::now() + spin_time;
    do {
      for (int i = 0; i < 32; ++i) {
        if (value.load(std::memory_order_acquire) != old) return;
        relax();
      }
    } while (std::chrono::steady_clock::now() < end);
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

/// A pool works as well without: a refusal is no error.
void pin(pthread_t thread, int processor) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(processor, &mask);
  pthread_setaffinity_np(thread, sizeof mask, &mask);
}

}  // namespace

struct ThreadPool::Team {
  int size = 1;
  bool spin = true;
  int caller_core = -1;  // kept free for the caller; -1: none
  std::vector<std::thread> workers;
  const std::function<void(int)>* body = nullptr;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  std::atomic<bool> busy = false, stop = false;
  // Apart, so that the caller's wait for the last worker does not disturb those that wait for the next loop.
  alignas(64) std::atomic<std::uint32_t> loops = 0;
  alignas(64) std::atomic<std::uint32_t> working = 0;

  void call(int thread) {
    inside_loop = true;
    try {
      (*body)(thread);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
    inside_loop = false;
  }

  void work(int thread) {
    for (std::uint32_t seen = 0;; ++seen) {
      await_change(loops, seen, spin);
      if (stop.load(std::memory_order_relaxed)) return;
      call(thread);
      if (working.fetch_sub(1, std::memory_order_acq_rel) == 1) working.notify_one();
    }
  }

  void start_loop() {
    loops.fetch_add(1, std::memory_order_acq_rel);
    loops.notify_all();
  }

  void await_workers() {
    for (std::uint32_t left; (left = working.load(std::memory_order_acquire)) != 0;) await_change(working, left, spin);
  }

  void finish() {
    stop.store(true, std::memory_order_relaxed);
    start_loop();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int threads) : team_(std::make_unique<Team>()) {
  CHECK(threads >= 1, "{} threads", threads);
  team_->size = threads;
  const std::vector<int> cores = allowed_cores();
  const bool own_core_each = threads <= static_cast<int>(cores.size());
  // More threads than cores would spin in each other's way.
  team_->spin = own_core_each;
  if (own_core_each) team_->caller_core = cores.front();
  try {
    for (int thread = 1; thread < threads; ++thread) {
      team_->workers.emplace_back([team = team_.get(), thread] { team->work(thread); });
      if (own_core_each) pin(team_->workers.back().native_handle(), cores[static_cast<std::size_t>(thread)]);
    }
  } catch (...) {
    team_->finish();
    throw;
  }
}

ThreadPool::~ThreadPool() { team_->finish(); }

int ThreadPool::size() const { return team_->size; }

void ThreadPool::pin_caller() {
  if (size() > 1 && team_->caller_core >= 0) pin(pthread_self(), team_->caller_core);
}

void ThreadPool::run(const std::function<void(int)>& body) {
  CHECK(!inside_loop, "a parallel loop inside a parallel loop");
  CHECK(!team_->busy.exchange(true, std::memory_order_acquire), "two threads use one pool at once");
  team_->body = &body;
  team_->working.store(static_cast<std::uint32_t>(team_->size - 1), std::memory_order_relaxed);
  if (team_->size > 1) team_->start_loop();
  team_->call(0);
  team_->await_workers();
  const std::exception_ptr failure = std::exchange(team_->failure, nullptr);
  team_->busy.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain,
                              const std::function<void(std::int64_t, std::int64_t)>& body) {
  CHECK(!inside_loop, "a parallel loop inside a parallel loop");
  CHECK(grain >= 1, "grain {}", grain);
  if (count <= 0) return;
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t parts = std::min<std::int64_t>(grains, size());
  if (parts == 1) return body(0, count);
  run([&](int thread) {
    if (thread >= parts) return;
    body(grains * thread / parts * grain, std::min(count, grains * (thread + 1) / parts * grain));
  });
}

void ThreadPool::parallel_items(std::int64_t count, const std::function<void(std::int64_t, int)>& body) {
  CHECK(!inside_loop, "a parallel loop inside a parallel loop");
  if (count <= 0) return;
  if (count == 1) return body(0, 0);
  std::atomic<std::int64_t> next = 0;
  run([&](int thread) {
    for (std::int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(item, thread);
  });
}

int usable_processors() {
  const double cores = static_cast<double>(allowed_cores().size());
  return std::max(1, static_cast<int>(std::min(cores, processor_quota())));
}

}  // namespace sluice
