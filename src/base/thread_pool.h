#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace sluice {

/// A fixed team of threads for data-parallel loops. One loop at a time; called from one thread at a time.
class ThreadPool {
 public:
  /// `threads` counts the caller; at least 1. Workers are pinned to the processors this process may use, spin
  /// briefly for work, then park.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;
  /// Pins the calling thread, whose the loops will be, to the processor that no worker has: elsewhere it would share
  /// one with a worker, and both would wait for each other. For a thread that starts no others; they would inherit it.
  void pin_caller();
  /// Calls body(thread) once on each thread 0 .. size() - 1 and returns when all are done. The first exception
  /// that a body throws is thrown again here.
  void run(const std::function<void(int thread)>& body);
  /// Splits 0 .. count - 1 into at most size() ranges of near-equal length, each a multiple of `grain` but the last,
  /// and calls body(begin, end) for each. Small loops (count <= grain) run on the caller alone.
  void parallel_for(std::int64_t count, std::int64_t grain,
                    const std::function<void(std::int64_t begin, std::int64_t end)>& body);
  /// Like parallel_for, but threads take items one by one as they become free: for items of unequal cost.
  void parallel_items(std::int64_t count, const std::function<void(std::int64_t item, int thread)>& body);

 private:
  struct Team;
  std::unique_ptr<Team> team_;
};

/// Processors that this process may use: affinity and cgroup quota, counted as physical cores where known.
int usable_processors();

}  // namespace sluice
