#include "server/token_inbox.h"

#include <utility>

namespace sluice {

namespace {
/// Other tasks of the event thread get their turn after so many.
constexpr std::size_t entries_at_once = 256;
}  // namespace

void TokenInbox::push(Entry entry) {
  {
    const std::lock_guard lock(mutex_);
    arrived_.push_back(std::move(entry));
    if (std::exchange(scheduled_, true)) return;
  }
  post_([self = shared_from_this()] { self->drain(); });
}

void TokenInbox::drain() {
  for (std::size_t done = 0; done < entries_at_once; ++done) {
    if (ready_.empty()) {
      const std::lock_guard lock(mutex_);
      ready_.swap(arrived_);
      if (ready_.empty()) {
        scheduled_ = false;
        return;
      }
    }
    Entry entry = std::move(ready_.front());
    ready_.pop_front();
    deliver_(entry);
  }
  post_([self = shared_from_this()] { self->drain(); });
}

}  // namespace sluice
