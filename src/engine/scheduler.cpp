#include "engine/scheduler.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "cache/kv_pool.h"

namespace sluice {

namespace {
/// The most rows of a piece that reports all of them.
constexpr std::int64_t most_reporting_rows = kv_block_size;

/// Where a piece that starts at `first` ends when it may have this many rows: at a multiple of the block size before
/// the last known token, unless the rows do not reach one.
std::int64_t piece_end(std::int64_t first, std::int64_t known, std::int64_t rows) {
  if (known - first <= rows) return known;
  const std::int64_t aligned = (first + rows) / kv_block_size * kv_block_size;
  return aligned > first ? aligned : first + rows;
}

/// The fewest rows with which a prefill gets to the next multiple of the block size.
std::int64_t fewest_rows(std::int64_t remaining) { return std::min(remaining, kv_block_size); }
}  // namespace

Scheduler::Scheduler(std::int64_t blocks, std::int64_t slots, std::int64_t max_batched_tokens)
    : pools_(blocks, slots), max_batched_tokens_(max_batched_tokens) {
  CHECK(slots >= 1 && max_batched_tokens >= slots, "{} rows for {} sequences", max_batched_tokens, slots);
}

void Scheduler::add(RequestId id, int priority, std::int64_t tokens, std::int64_t longest, std::int64_t reported) {
  CHECK(tokens >= 1 && tokens <= longest, "{} tokens of {}", tokens, longest);
  CHECK(reported >= 0 && reported < tokens, "{} rows of {} tokens", reported, tokens);
  CHECK(kv_blocks_for(longest) <= pools_.blocks.total(), "{} tokens in {} blocks", longest, pools_.blocks.total());
  const Order order{priority, arrivals_++};
  CHECK(index_.emplace(id, order).second, "sequence {} exists already", id);
  waiting_.try_emplace(order, id, tokens, reported, pools_);
}

bool Scheduler::cancel(RequestId id) {
  CHECK(!step_open_, "sequence {} was cancelled within a step", id);
  const auto found = index_.find(id);
  if (found == index_.end()) return false;
  if (running_.erase(found->second) == 0) waiting_.erase(found->second);
  index_.erase(found);
  return true;
}

void Scheduler::clear() {
  running_.clear();
  waiting_.clear();
  index_.clear();
  planned_.clear();
  step_open_ = false;
}

Scheduler::Sequence& Scheduler::find(RequestId id) {
  const auto found = running_.find(index_.at(id));
  CHECK(found != running_.end(), "sequence {} does not run", id);
  return found->second;
}

StepPlan Scheduler::plan() {
  CHECK(!step_open_, "the last plan was not applied");
  make_room_for_running();
  make_room_by_priority();
  std::vector<Piece> pieces;
  for (auto& [order, sequence] : running_) {
    if (sequence.decodes()) pieces.push_back({&sequence, 1, 1});
  }
  const std::int64_t rows = max_batched_tokens_ - static_cast<std::int64_t>(pieces.size());
  admit(rows);
  const std::vector<Piece> prefills = choose_prefills(rows);
  pieces.insert(pieces.end(), prefills.begin(), prefills.end());

  StepPlan plan;
  for (const Piece& piece : pieces) plan.items.push_back(item_of(piece));
  CHECK(!plan.items.empty() || idle(), "{} running and {} waiting, but nothing to do", running(), waiting());
  planned_ = plan.items;
  step_open_ = true;
  return plan;
}

StepItem Scheduler::item_of(const Piece& piece) {
  const Sequence& sequence = *piece.sequence;
  const std::int64_t end = sequence.computed + piece.count;
  const bool score = end == sequence.known;
  // Rows that were reported before the sequence had to be computed anew are not reported again.
  const std::int64_t first_scored =
      sequence.reports() ? std::clamp(sequence.reported, sequence.computed, end) : end - (score ? 1 : 0);
  return {sequence.id, sequence.computed, piece.count, score, end - first_scored, &sequence.cache};
}

void Scheduler::apply(std::span<const StepResult> results) {
  CHECK(step_open_, "there is no plan to apply");
  step_open_ = false;
  std::size_t scored = 0;
  for (const StepItem& item : planned_) {
    Sequence& sequence = find(item.sequence);
    sequence.computed = item.first + item.count;
    sequence.reported = std::max(sequence.reported, std::min(sequence.computed, sequence.to_report));
    scored += item.score ? 1 : 0;
  }
  CHECK(scored == results.size(), "{} results for {} scored sequences", results.size(), scored);
  for (const StepResult& result : results) {
    Sequence& sequence = find(result.sequence);
    CHECK(sequence.remaining() == 0, "sequence {} was not scored", result.sequence);
    if (result.finished) {
      cancel(result.sequence);
    } else {
      ++sequence.known;
    }
  }
}

/// Running sequences hold room for all they know; after this, those still running do.
void Scheduler::make_room_for_running() {
  for (auto it = running_.begin(); it != running_.end();) {
    if (it->second.cache.grow_to(it->second.known)) {
      ++it;
      continue;
    }
    const auto last = std::prev(running_.end());
    const bool itself = last == it;
    preempt(last);
    if (itself) return;
  }
}

/// The first that waits may take the place of running ones of worse priority, if that is enough for it.
void Scheduler::make_room_by_priority() {
  if (waiting_.empty()) return;
  const auto& [order, head] = *waiting_.begin();
  std::int64_t blocks = pools_.blocks.available(), slots = pools_.slots.available(), others = running();
  auto keep = running_.end();
  auto enough = [&] { return slots > 0 && blocks >= kv_blocks_for(head.known) + others; };
  while (!enough() && keep != running_.begin() && std::prev(keep)->first.first > order.first) {
    --keep;
    blocks += static_cast<std::int64_t>(keep->second.cache.blocks().size());
    ++slots;
    --others;
  }
  if (!enough()) return;
  const auto count = std::distance(keep, running_.end());
  for (std::ptrdiff_t i = 0; i < count; ++i) preempt(std::prev(running_.end()));
}

/// Whether a waiting sequence can start: beside what it needs itself, each running one keeps a block to grow into.
bool Scheduler::fits(const Sequence& sequence) const {
  return pools_.slots.available() > 0 &&
         pools_.blocks.available() >= kv_blocks_for(sequence.known) + static_cast<std::int64_t>(running_.size());
}

void Scheduler::preempt(Sequences::iterator running) {
  running->second.cache.release();
  running->second.computed = 0;
  waiting_.insert(running_.extract(running));
  ++preemptions_;
}

/// Starts waiting sequences, strictly in order, while they fit and rows are left for them beside the prefills that go
/// before them.
void Scheduler::admit(std::int64_t rows) {
  while (!waiting_.empty() && rows > 0) {
    const auto head = waiting_.begin();
    std::int64_t wanted = 0;
    for (const auto& [order, sequence] : running_) {
      if (order > head->first) break;
      if (!sequence.decodes()) wanted += fewest_rows(sequence.remaining());
    }
    if (wanted > 0 && wanted + fewest_rows(head->second.known) > rows) return;
    if (!fits(head->second)) return;
    CHECK(head->second.cache.grow_to(head->second.known));
    running_.insert(waiting_.extract(head));
  }
}

std::vector<Scheduler::Piece> Scheduler::choose_prefills(std::int64_t rows) {
  std::vector<Piece> pieces;
  std::int64_t wanted = 0;
  bool one_reports = false;
  for (auto& [order, sequence] : running_) {
    if (sequence.decodes() || (one_reports && sequence.reports())) continue;
    const std::int64_t fewest = fewest_rows(sequence.remaining());
    if (wanted > 0 && wanted + fewest > rows) break;
    wanted += fewest;
    one_reports = one_reports || sequence.reports();
    pieces.push_back({&sequence, 0, sequence.reports() ? std::min(rows, most_reporting_rows) : rows});
  }
  if (rows > 0) share_rows(pieces, rows);
  std::erase_if(pieces, [](const Piece& piece) { return piece.count == 0; });
  return pieces;
}

/// In order, each gets half of the rows left, or more when the others cannot use them.
void Scheduler::share_rows(std::vector<Piece>& pieces, std::int64_t rows) {
  std::int64_t reserved = 0;  // for those further back
  for (const Piece& piece : pieces) reserved += fewest_rows(piece.sequence->remaining());
  for (Piece& piece : pieces) {
    const Sequence& sequence = *piece.sequence;
    const std::int64_t fewest = fewest_rows(sequence.remaining());
    reserved -= fewest;
    const std::int64_t share = reserved == 0 ? rows : std::max(fewest, std::min(rows / 2, rows - reserved));
    piece.count = piece_end(sequence.computed, sequence.known, std::min(share, piece.most)) - sequence.computed;
    rows -= piece.count;
  }
  for (Piece& piece : pieces) {
    const Sequence& sequence = *piece.sequence;
    const std::int64_t most = std::min(piece.count + rows, piece.most);
    const std::int64_t more = piece_end(sequence.computed, sequence.known, most) - sequence.computed;
    rows -= more - piece.count;
    piece.count = more;
  }
}

}  // namespace sluice
