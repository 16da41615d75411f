#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// What a request's callback was told.
struct Record {
  std::vector<TokenId> tokens;
  std::vector<TokenEvent> events;
  const TokenEvent& last() const { return events.back(); }
  bool ended() const { return !events.empty() && last().finish_reason != FinishReason::none; }
};

/// Collects the events of many requests. Must outlive the engine that calls it.
class Recorder {
 public:
  /// A callback that records under `key`; `also` is called afterwards, without a lock.
  TokenCallback callback(int key, TokenCallback also = nullptr) {
    return [this, key, also](const TokenEvent& event) {
      {
        const std::lock_guard lock(mutex_);
        Record& record = records_[key];
        late_ += record.ended() ? 1 : 0;
        if (event.token.has_value()) record.tokens.push_back(*event.token);
        record.events.push_back(event);
        changed_.notify_all();
      }
      if (also) also(event);
    };
  }
  /// Waits until the request has ended.
  Record wait(int key) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return records_[key].ended(); });
    return records_[key];
  }
  /// Waits until the request has this many events, or has ended.
  void wait_events(int key, std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return records_[key].ended() || records_[key].events.size() >= count; });
  }
  Record now(int key) {
    const std::lock_guard lock(mutex_);
    return records_[key];
  }
  /// Events that came after the last one of their request.
  int late_events() {
    const std::lock_guard lock(mutex_);
    return late_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Record> records_;
  int late_ = 0;
};

}  // namespace sluice
