#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "cpu/batch_rows.h"
#include "cpu/cpu_ops.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

namespace {

// Softmax restarts at multiples of so many tokens, and the parts are merged in their order: parts of one long context
// can run on several threads, and the result is the same as if they had not.
constexpr std::int64_t segment = 8 * attention_tile;
constexpr std::int64_t most_queries = 64;

struct Attention {
  HeadRows q, out;
  const KvView& cache;
  const BatchView& batch;
  const RowKernels& kernels;
  float scale;
  std::int64_t group;  // query heads of a key head
};

/// Running softmax sums of some queries, all heads of a group for one row after another.
struct Sums {
  float* maxima;        // [queries]
  float* totals;        // [queries]
  float* accumulators;  // [queries, head_dim]

  static std::int64_t floats(std::int64_t queries, std::int64_t head_dim) { return queries * (head_dim + 2); }
  Sums(float* memory, std::int64_t queries)
      : maxima(memory), totals(memory + queries), accumulators(memory + 2 * queries) {}
  void clear(std::int64_t queries, std::int64_t head_dim) const {
    std::fill_n(maxima, queries, -std::numeric_limits<float>::infinity());
    std::fill_n(totals, queries * (head_dim + 1), 0.0f);
  }
};

/// Rows of one sequence, for the query heads of one key head, over segments first_segment .. last_segment - 1.
struct AttentionItem {
  std::int64_t sequence, kv_head, first_row, rows, first_segment, last_segment;
  float* partial;  // where the sums of a lone segment go; null: the item sees all segments and writes the result
};

/// Memory of one thread.
struct AttentionScratch {
  float *keys, *values, *q, *scores;
  Sums part, whole;

  static std::int64_t floats(std::int64_t queries, std::int64_t head_dim) {
    return 2 * attention_tile * head_dim + queries * (head_dim + attention_tile) + 2 * Sums::floats(queries, head_dim);
  }
  AttentionScratch(float* memory, std::int64_t queries, std::int64_t head_dim)
      : keys(memory),
        values(keys + attention_tile * head_dim),
        q(values + attention_tile * head_dim),
        scores(q + queries * head_dim),
        part(scores + queries * attention_tile, queries),
        whole(scores + queries * attention_tile + Sums::floats(queries, head_dim), queries) {}
};

/// Copies a head's entries of tokens begin .. end - 1 to `out`, as float32.
void load_tokens(const Attention& call, const SequenceBlocks& blocks, const Tensor& cache, std::int64_t kv_head,
                 std::int64_t begin, std::int64_t end, float* out) {
  const std::int64_t n = call.q.n;
  for (std::int64_t token = begin; token < end;) {
    const std::int64_t run = std::min(blocks.block_size() - token % blocks.block_size(), end - token);
    const std::int64_t offset = blocks.offset(token, kv_head);
    if (cache.dtype() == DType::f32) {
      std::memcpy(out, cache.as<float>() + offset, static_cast<std::size_t>(run * n) * sizeof(float));
    } else {
      call.kernels.from_bf16(out, cache.as<std::uint16_t>() + offset, run * n);
    }
    out += run * n;
    token += run;
  }
}

void load_queries(const Attention& call, const AttentionItem& item, std::int64_t first_row, float* out) {
  for (std::int64_t row = 0; row < item.rows; ++row) {
    for (std::int64_t head = 0; head < call.group; ++head, out += call.q.n) {
      const float* q = call.q.at(first_row + row, item.kv_head * call.group + head);
      for (std::int64_t d = 0; d < call.q.n; ++d) out[d] = q[d] * call.scale;
    }
  }
}

/// Attention over tokens begin .. end - 1, of one segment. `position` is that of the item's first row.
void attend_segment(const Attention& call, const AttentionItem& item, const AttentionScratch& scratch, const Sums& sums,
                    std::int64_t position, std::int64_t begin, std::int64_t end) {
  const SequenceBlocks blocks(call.cache, call.batch, item.sequence);
  const std::int64_t queries = item.rows * call.group;
  int visible[most_queries];
  for (std::int64_t first = begin; first < end; first += attention_tile) {
    const std::int64_t last = std::min(end, first + attention_tile);
    load_tokens(call, blocks, call.cache.keys, item.kv_head, first, last, scratch.keys);
    load_tokens(call, blocks, call.cache.values, item.kv_head, first, last, scratch.values);
    for (std::int64_t query = 0; query < queries; ++query) {
      const std::int64_t seen = position + query / call.group + 1 - first;
      visible[query] = static_cast<int>(std::clamp<std::int64_t>(seen, 0, attention_tile));
    }
    call.kernels.attend({call.q.n, queries, scratch.q, scratch.keys, scratch.values, visible, scratch.scores,
                         sums.maxima, sums.totals, sums.accumulators});
  }
}

/// Adds the sums of the next segment to those of the segments before it.
void merge(const Sums& whole, const Sums& part, std::int64_t queries, std::int64_t head_dim) {
  for (std::int64_t query = 0; query < queries; ++query) {
    if (part.totals[query] == 0.0f) continue;  // the query sees nothing of this segment
    const float maximum = std::max(whole.maxima[query], part.maxima[query]);
    const float old_share = std::exp(whole.maxima[query] - maximum);
    const float new_share = std::exp(part.maxima[query] - maximum);
    whole.maxima[query] = maximum;
    whole.totals[query] = whole.totals[query] * old_share + part.totals[query] * new_share;
    float* sum = whole.accumulators + query * head_dim;
    const float* added = part.accumulators + query * head_dim;
    for (std::int64_t d = 0; d < head_dim; ++d) sum[d] = sum[d] * old_share + added[d] * new_share;
  }
}

void write_result(const Attention& call, const AttentionItem& item, std::int64_t first_row, const Sums& sums) {
  for (std::int64_t query = 0; query < item.rows * call.group; ++query) {
    float* out = call.out.at(first_row + query / call.group, item.kv_head * call.group + query % call.group);
    const float share = 1.0f / sums.totals[query];
    const float* sum = sums.accumulators + query * call.q.n;
    for (std::int64_t d = 0; d < call.q.n; ++d) out[d] = sum[d] * share;
  }
}

void run_item(const Attention& call, const AttentionItem& item, const AttentionScratch& scratch) {
  const SequenceRows sequence = sequence_rows(call.batch, item.sequence);
  const std::int64_t queries = item.rows * call.group;
  const std::int64_t position = sequence.context + item.first_row;
  const std::int64_t tokens = position + item.rows;
  const std::int64_t first_row = sequence.first + item.first_row;
  load_queries(call, item, first_row, scratch.q);
  scratch.whole.clear(queries, call.q.n);
  for (std::int64_t s = item.first_segment; s < item.last_segment; ++s) {
    const Sums part = item.partial == nullptr ? scratch.part : Sums(item.partial, queries);
    part.clear(queries, call.q.n);
    attend_segment(call, item, scratch, part, position, s * segment, std::min(tokens, (s + 1) * segment));
    if (item.partial == nullptr) merge(scratch.whole, part, queries, call.q.n);
  }
  if (item.partial == nullptr) write_result(call, item, first_row, scratch.whole);
}

/// What is to be done for a batch: items that stand alone, and lone segments with the items that merge them.
struct AttentionPlan {
  std::vector<AttentionItem> items;
  std::vector<AttentionItem> merges;  // partial: the first of their segments' sums
};

AttentionPlan plan_attention(Ops& ops, const Attention& call, std::int64_t rows_an_item) {
  AttentionPlan plan;
  const std::int64_t kv_heads = call.cache.keys.size(1);
  for (std::int64_t s = 0; s < call.batch.sequences(); ++s) {
    const SequenceRows rows = sequence_rows(call.batch, s);
    if (rows.count == 0) continue;
    const std::int64_t segments = (rows.context + rows.count + segment - 1) / segment;
    if (rows.count > rows_an_item || segments == 1) {
      // The last rows see the most: they come first, so that the short items fill the gaps at the end.
      for (std::int64_t end = rows.count; end > 0; end -= std::min(end, rows_an_item)) {
        const std::int64_t first = std::max<std::int64_t>(0, end - rows_an_item);
        const std::int64_t reach = (rows.context + end + segment - 1) / segment;
        for (std::int64_t head = 0; head < kv_heads; ++head) {
          plan.items.push_back({s, head, first, end - first, 0, reach, nullptr});
        }
      }
      continue;
    }
    const std::int64_t floats = Sums::floats(rows.count * call.group, call.q.n);
    for (std::int64_t head = 0; head < kv_heads; ++head) {
      auto* partials = ops.allocate(DType::f32, {segments, floats}).as<float>();
      plan.merges.push_back({s, head, 0, rows.count, 0, segments, partials});
      for (std::int64_t part = 0; part < segments; ++part) {
        plan.items.push_back({s, head, 0, rows.count, part, part + 1, partials + part * floats});
      }
    }
  }
  return plan;
}

void run_merge(const Attention& call, const AttentionItem& item, const AttentionScratch& scratch) {
  const std::int64_t queries = item.rows * call.group;
  scratch.whole.clear(queries, call.q.n);
  for (std::int64_t s = 0; s < item.last_segment; ++s) {
    merge(scratch.whole, Sums(item.partial + s * Sums::floats(queries, call.q.n), queries), queries, call.q.n);
  }
  write_result(call, item, sequence_rows(call.batch, item.sequence).first, scratch.whole);
}

}  // namespace

Tensor CpuOps::attention(const Tensor& q, const KvView& cache, const BatchView& batch, float scale) {
  const HeadRows queries(q);
  const std::int64_t heads = queries.heads, head_dim = queries.n;
  CHECK(q.rank() == 3 && queries.rows == batch.rows() && head_dim % 16 == 0, "queries {} for {} rows",
        q.shape().to_string(), batch.rows());
  check_cache(cache, cache.keys.size(1), head_dim);
  const std::int64_t group = heads / cache.keys.size(1);
  CHECK(group * cache.keys.size(1) == heads && group <= most_queries, "{} query heads for {} key heads", heads,
        cache.keys.size(1));

  const Tensor result = allocate(DType::f32, {queries.rows, heads * head_dim});
  const Attention call{
      queries, HeadRows(result.split_columns(heads, head_dim)), cache, batch, row_kernels(instruction_set_), scale,
      group};
  const Scope scope(*this);
  const std::int64_t rows_an_item = most_queries / group;
  const std::int64_t most = rows_an_item * group;
  const Tensor scratch = allocate(DType::f32, {pool_.size(), AttentionScratch::floats(most, head_dim)});
  const AttentionPlan plan = plan_attention(*this, call, rows_an_item);
  const auto scratch_of = [&](int thread) { return AttentionScratch(scratch.row<float>(thread), most, head_dim); };
  pool_.parallel_items(static_cast<std::int64_t>(plan.items.size()), [&](std::int64_t i, int thread) {
    run_item(call, plan.items[static_cast<std::size_t>(i)], scratch_of(thread));
  });
  pool_.parallel_items(static_cast<std::int64_t>(plan.merges.size()), [&](std::int64_t i, int thread) {
    run_merge(call, plan.merges[static_cast<std::size_t>(i)], scratch_of(thread));
  });
  return result;
}

}  // namespace sluice
