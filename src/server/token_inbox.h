#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// Token events on their way from the engine's thread to the event thread, in order. Waking the event thread costs the
/// engine's threads time where cores are few, so it looks by itself a short while after it had something to do, and is
/// woken only when it has been idle, or for the first and the last token of a request.
class TokenInbox : public std::enable_shared_from_this<TokenInbox> {
 public:
  struct Entry {
    std::uint64_t job = 0;
    int choice = 0;
    TokenEvent event;
  };
  /// Runs a task on the event thread, after a delay.
  using Post = std::function<void(std::chrono::milliseconds delay, std::function<void()> task)>;

  /// deliver: called on the event thread with what arrived since.
  TokenInbox(Post post, std::function<void(std::span<Entry>)> deliver)
      : post_(std::move(post)), deliver_(std::move(deliver)) {}
  /// From any thread.
  void push(Entry entry);

 private:
  enum class State : std::uint8_t {
    idle,     // nobody looks
    pausing,  // look_again() will come
    due,      // drain() will come
  };
  void drain();
  void look_again();

  Post post_;
  std::function<void(std::span<Entry>)> deliver_;
  // Of the event thread.
  std::vector<Entry> ready_;
  std::size_t delivered_ = 0;  // of ready_
  bool has_timer_ = false;     // look_again() is posted

  std::mutex mutex_;
  std::vector<Entry> arrived_;
  State state_ = State::idle;
};

}  // namespace sluice
