#include "cache/id_pool.h"

#include <limits>

#include "base/check.h"

namespace sluice {

IdPool::IdPool(std::int64_t total) {
  CHECK(total >= 0 && total <= std::numeric_limits<std::int32_t>::max(), "{} ids", total);
  taken_.resize(static_cast<std::size_t>(total));
  free_.reserve(static_cast<std::size_t>(total));
  for (std::int64_t id = total - 1; id >= 0; --id) free_.push_back(static_cast<std::int32_t>(id));
}

bool IdPool::is_taken(std::int32_t id) const {
  CHECK(id >= 0 && id < total(), "id {} of {}", id, total());
  return taken_[static_cast<std::size_t>(id)];
}

std::int32_t IdPool::take() {
  CHECK(!free_.empty(), "all {} ids are taken", total());
  const std::int32_t id = free_.back();
  free_.pop_back();
  taken_[static_cast<std::size_t>(id)] = true;
  return id;
}

void IdPool::give_back(std::int32_t id) {
  CHECK(is_taken(id), "id {} was given back twice", id);
  taken_[static_cast<std::size_t>(id)] = false;
  free_.push_back(id);
}

}  // namespace sluice
