#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/views.h"

namespace sluice {

/// What the user asked for, and what the model allows.
struct CacheLimits {
  std::int64_t max_model_len = 0;    // tokens of one sequence; 0: to be chosen
  std::int64_t max_num_seqs = 0;     // sequences running at once; 0: to be chosen
  std::int64_t most_num_seqs = 256;  // chosen are at most these
  std::int64_t max_context = 0;      // of the model
};

/// The sizes of both pools.
struct CachePlan {
  std::int64_t max_model_len = 0;  // tokens of one sequence; one of this length always fits when it is alone
  std::int64_t slots = 0;          // sequences running at once
  std::int64_t blocks = 0;
  std::uint64_t bytes_per_slot = 0, bytes_per_block = 0;
  std::uint64_t available = 0;  // what the caches might have taken

  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(slots) * bytes_per_slot + static_cast<std::uint64_t>(blocks) * bytes_per_block;
  }
  /// The memory plan, for people.
  std::vector<std::string> describe() const;
};

/// Divides `available` bytes into state slots and KV blocks. Unless the user sets a number, there are at most
/// most_num_seqs sequences, whose state takes at most a quarter of the memory, and the context is the model's own or
/// what fits. Never plans more blocks than all sequences at their longest can fill. Throws DeviceError, naming what
/// would fit, when one sequence of the length asked for does not fit, or the sequences asked for do not; UsageError for
/// a length beyond the model's context.
CachePlan plan_caches(const CacheNeeds& needs, DType kv_dtype, std::uint64_t available, const CacheLimits& limits);

}  // namespace sluice
