#include "cache/cache_plan.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "cache/kv_pool.h"

namespace sluice {

namespace {
constexpr std::int64_t most_blocks = std::numeric_limits<std::int32_t>::max();

std::string size_text(std::uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < (1u << 20)) return fmt::format("{:.1f} KiB", number / 0x1p10);
  return bytes < (1u << 30) ? fmt::format("{:.1f} MiB", number / 0x1p20) : fmt::format("{:.1f} GiB", number / 0x1p30);
}

/// How many pieces of some size a number of bytes holds; pieces without bytes cost nothing.
std::int64_t pieces(std::uint64_t bytes, std::uint64_t piece) {
  return piece == 0 ? most_blocks : static_cast<std::int64_t>(std::min<std::uint64_t>(bytes / piece, most_blocks));
}

std::uint64_t times(std::int64_t count, std::uint64_t bytes) { return static_cast<std::uint64_t>(count) * bytes; }

void set_sizes(CachePlan& plan, const CacheNeeds& needs, DType kv_dtype) {
  const std::int64_t state =
      (needs.conv_taps - 1) * needs.conv_channels + needs.value_heads * needs.key_dim * needs.value_dim;
  plan.bytes_per_slot = needs.state_layers == 0 ? 0 : times(needs.state_layers * state, size_of(DType::f32));
  plan.bytes_per_block =
      times(needs.kv_layers * 2 * needs.kv_heads * kv_block_size * needs.head_dim, size_of(kv_dtype));
}

/// The longest sequence that fits beside this many slots.
std::int64_t longest_beside(const CachePlan& plan, std::int64_t slots, std::int64_t max_context) {
  const std::uint64_t state = times(slots, plan.bytes_per_slot);
  if (state > plan.available) return 0;
  return std::min(max_context, pieces(plan.available - state, plan.bytes_per_block) * kv_block_size);
}

/// Slots for the sequences asked for, or a sensible number, beside the blocks of one sequence of `tokens` tokens.
std::int64_t choose_slots(const CachePlan& plan, const CacheLimits& limits, std::int64_t tokens) {
  const std::uint64_t kv = times(kv_blocks_for(tokens), plan.bytes_per_block);
  const std::int64_t fitting = pieces(plan.available - kv, plan.bytes_per_slot);
  if (limits.max_num_seqs > fitting) {
    fail<DeviceError>(
        "max_num_seqs is {}, but the state of that many sequences ({} each) does not fit in the {} that caches may "
        "take "
        "beside a context of {} tokens; at most {} fit: lower max_num_seqs",
        limits.max_num_seqs, size_text(plan.bytes_per_slot), size_text(plan.available), tokens, fitting);
  }
  if (limits.max_num_seqs > 0) return limits.max_num_seqs;
  const std::int64_t quarter = std::max<std::int64_t>(1, pieces(plan.available / 4, plan.bytes_per_slot));
  return std::min({limits.most_num_seqs, fitting, quarter});
}
}  // namespace

CachePlan plan_caches(const CacheNeeds& needs, DType kv_dtype, std::uint64_t available, const CacheLimits& limits) {
  CHECK(limits.max_context > 0 && limits.max_model_len >= 0 && limits.max_num_seqs >= 0 && limits.most_num_seqs > 0);
  if (limits.max_model_len > limits.max_context) {
    fail<UsageError>("max_model_len is {}, but the model's context has {} tokens: lower max_model_len",
                     limits.max_model_len, limits.max_context);
  }
  CachePlan plan;
  plan.available = available;
  set_sizes(plan, needs, kv_dtype);
  const std::int64_t longest = longest_beside(plan, 1, limits.max_context);
  const std::int64_t shortest = std::max<std::int64_t>(limits.max_model_len, 1);
  if (longest < shortest) {
    const std::uint64_t needed = plan.bytes_per_slot + times(kv_blocks_for(shortest), plan.bytes_per_block);
    fail<DeviceError>("one sequence of {} tokens needs {} of caches, but they may take {}; {}", shortest,
                      size_text(needed), size_text(available),
                      longest > 0 ? fmt::format("at most {} tokens fit: lower max_model_len", longest)
                                  : std::string("not even one block fits: free memory, or use a smaller model"));
  }
  plan.slots = choose_slots(plan, limits, shortest);
  plan.max_model_len =
      limits.max_model_len > 0 ? limits.max_model_len : longest_beside(plan, plan.slots, limits.max_context);
  const std::int64_t fitting = pieces(available - times(plan.slots, plan.bytes_per_slot), plan.bytes_per_block);
  const std::int64_t per_sequence = kv_blocks_for(plan.max_model_len);
  plan.blocks = std::min(fitting, plan.slots > most_blocks / per_sequence ? most_blocks : plan.slots * per_sequence);
  return plan;
}

std::vector<std::string> CachePlan::describe() const {
  return {
      fmt::format("context      {} tokens", max_model_len),
      fmt::format("caches       at most {} of the {} they may take", size_text(bytes()), size_text(available)),
      fmt::format("  state      {} sequences at once, {} each", slots, size_text(bytes_per_slot)),
      fmt::format("  kv         {} blocks of {} tokens ({} tokens), {} each", blocks, kv_block_size,
                  blocks * kv_block_size, size_text(bytes_per_block)),
  };
}

}  // namespace sluice
