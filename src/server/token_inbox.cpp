#include "server/token_inbox.h"

#include <algorithm>
#include <utility>

namespace sluice {

namespace {
/// Other tasks of the event thread get their turn after so many.
constexpr std::size_t entries_at_once = 256;
/// Too short for a reader to notice; several steps of the smallest models.
constexpr std::chrono::milliseconds pause{2};

bool is_urgent(const TokenEvent& event) {
  return event.finish_reason != FinishReason::none || event.output_tokens <= 1;
}
}  // namespace

void TokenInbox::push(Entry entry) {
  const bool urgent = is_urgent(entry.event);
  {
    const std::lock_guard lock(mutex_);
    arrived_.push_back(std::move(entry));
    if (state_ == State::due || (state_ == State::pausing && !urgent)) return;
    state_ = State::due;
  }
  post_({}, [self = shared_from_this()] { self->drain(); });
}

void TokenInbox::drain() {
  if (delivered_ == ready_.size()) {
    ready_.clear();
    if (ready_.capacity() > 8 * entries_at_once) ready_.shrink_to_fit();
    delivered_ = 0;
    const std::lock_guard lock(mutex_);
    ready_.swap(arrived_);
  }
  const auto batch = std::span(ready_).subspan(delivered_, std::min(entries_at_once, ready_.size() - delivered_));
  delivered_ += batch.size();
  deliver_(batch);
  bool more = delivered_ < ready_.size();
  {
    const std::lock_guard lock(mutex_);
    more = more || !arrived_.empty();
    if (!more) state_ = State::pausing;
  }
  if (more) return post_({}, [self = shared_from_this()] { self->drain(); });
  if (std::exchange(has_timer_, true)) return;
  post_(pause, [self = shared_from_this()] { self->look_again(); });
}

void TokenInbox::look_again() {
  has_timer_ = false;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::due) return;
    state_ = arrived_.empty() ? State::idle : State::due;
    if (state_ == State::idle) return;
  }
  drain();
}

}  // namespace sluice
