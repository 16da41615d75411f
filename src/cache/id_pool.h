#pragma once
#include <cstdint>
#include <vector>

namespace sluice {

/// A fixed number of ids, 0 .. total - 1, each taken or free: KV blocks or state slots. Low ids and ids that were just
/// given back go out first, so that memory nobody needed yet stays untouched.
class IdPool {
 public:
  explicit IdPool(std::int64_t total);

  std::int64_t total() const { return static_cast<std::int64_t>(taken_.size()); }
  std::int64_t available() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t used() const { return total() - available(); }
  bool is_taken(std::int32_t id) const;
  /// One must be available.
  std::int32_t take();
  /// The id must be taken.
  void give_back(std::int32_t id);

 private:
  std::vector<std::int32_t> free_;  // the next one to go out is last
  std::vector<bool> taken_;
};

}  // namespace sluice
