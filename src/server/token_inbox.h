#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/request.h"

namespace sluice {

/// Token events on their way from the engine's thread to the event thread, in order. A step of the engine, with as many
/// events as it has sequences, wakes the event thread once.
class TokenInbox : public std::enable_shared_from_this<TokenInbox> {
 public:
  struct Entry {
    std::uint64_t job = 0;
    int choice = 0;
    TokenEvent event;
  };
  using Post = std::function<void(std::function<void()>)>;

  /// post: runs a task on the event thread. deliver: called there, once an entry.
  TokenInbox(Post post, std::function<void(Entry&)> deliver) : post_(std::move(post)), deliver_(std::move(deliver)) {}
  /// From any thread.
  void push(Entry entry);

 private:
  void drain();

  Post post_;
  std::function<void(Entry&)> deliver_;
  std::deque<Entry> ready_;  // of the event thread

  std::mutex mutex_;
  std::deque<Entry> arrived_;
  bool scheduled_ = false;  // a drain() will come
};

}  // namespace sluice
