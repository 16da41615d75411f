#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/sequence_cache.h"
#include "engine/step_plan.h"

namespace sluice {

/// Decides what runs in each step: a state machine without device, clock or thread. It counts tokens and never sees
/// one.
///
/// Every sequence that decodes is in every step. What is left of the step's rows goes to prefills, half of it at most
/// to one while others can use the rest, cut at multiples of kv_block_size where possible. Waiting sequences start in
/// order of priority, then arrival, as soon as all they know so far fits. When blocks run out, the last in that order
/// gives its caches back and waits again: it is prefilled anew, its own output included. The first in order always
/// makes progress, so every sequence ends.
///
/// A sequence may ask for the logits of its first rows as well. Each is reported once, in order; until that is done,
/// its pieces are short and no other such sequence is in the step, which bounds the memory of the logits.
class Scheduler {
 public:
  /// A step has at most max_batched_tokens rows; at least one for each slot.
  Scheduler(std::int64_t blocks, std::int64_t slots, std::int64_t max_batched_tokens);

  /// A sequence of `tokens` tokens that grows to `longest` at most, which must fit when it is alone. Lower priority
  /// values run first. The logits of the first `reported` rows are wanted beside those that a token is sampled from.
  void add(RequestId id, int priority, std::int64_t tokens, std::int64_t longest, std::int64_t reported = 0);
  /// Forgets a sequence, not between plan() and apply(). False when there is none of this id.
  bool cancel(RequestId id);

  /// Forgets all of them, also within a step that failed.
  void clear();

  /// The next step; not empty unless idle. Every plan is answered by apply().
  StepPlan plan();
  /// The step ran. One result for each item that was scored.
  void apply(std::span<const StepResult> results);

  /// Slots and blocks that changed hands since the last call: to be poisoned and zeroed before the next step runs.
  CacheChanges take_changes() { return std::exchange(pools_.changes, {}); }

  bool idle() const { return index_.empty(); }
  std::int64_t running() const { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::uint64_t preemptions() const { return preemptions_; }
  const IdPool& blocks() const { return pools_.blocks; }
  const IdPool& slots() const { return pools_.slots; }

 private:
  using Order = std::pair<int, std::uint64_t>;  // priority, arrival
  struct Sequence {
    Sequence(RequestId sequence_id, std::int64_t tokens, std::int64_t first_rows, CachePools& pools)
        : id(sequence_id), known(tokens), to_report(first_rows), cache(pools) {}
    std::int64_t remaining() const { return known - computed; }
    bool decodes() const { return remaining() == 1 && computed > 0; }
    bool reports() const { return reported < to_report; }
    RequestId id;
    std::int64_t known;                    // tokens that exist
    std::int64_t computed = 0;             // of these, in the caches
    std::int64_t to_report, reported = 0;  // first rows whose logits are wanted; of these, had in some step
    SequenceCache cache;
  };
  using Sequences = std::map<Order, Sequence>;
  struct Piece {
    Sequence* sequence;
    std::int64_t count, most;  // rows; at most so many
  };

  void make_room_for_running();
  void make_room_by_priority();
  bool fits(const Sequence& sequence) const;
  void preempt(Sequences::iterator running);
  void admit(std::int64_t rows);
  std::vector<Piece> choose_prefills(std::int64_t rows);
  static void share_rows(std::vector<Piece>& pieces, std::int64_t rows);
  static StepItem item_of(const Piece& piece);
  Sequence& find(RequestId id);

  CachePools pools_;  // outlives the sequences' caches
  std::int64_t max_batched_tokens_;
  Sequences running_, waiting_;
  std::unordered_map<RequestId, Order> index_;
  std::vector<StepItem> planned_;
  bool step_open_ = false;  // between plan() and apply()
  std::uint64_t arrivals_ = 0, preemptions_ = 0;
};

}  // namespace sluice
