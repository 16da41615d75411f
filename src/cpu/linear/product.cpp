#include "cpu/linear/product.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/integers.h"

namespace sluice {

namespace {

/// Weights of a few panels that stay in the second-level cache while all rows pass. Columns are not cut shorter than
/// that: each cut costs a tile the latency of taking up its sums again.
constexpr std::int64_t cached_bytes = std::int64_t{384} << 10;
/// Expanded weights of a few panels, which go to the tiles through the first-level cache.
constexpr std::int64_t expanded_bytes = 16384;
/// Bytes of weights below which another thread is not worth waking.
constexpr std::int64_t grain_bytes = 32768;
/// Elements of inputs for the same.
constexpr std::int64_t grain_inputs = 16384;
/// Pieces of work for each thread where threads take them as they become free.
constexpr std::int64_t pieces_a_thread = 16;
/// Rows below which a piece spends too much of its time on fetching weights.
constexpr std::int64_t least_rows_a_piece = 64;

/// Memory of a thread for expanded weights.
std::byte* scratch(std::size_t bytes) {
  constexpr std::size_t line = 64;
  thread_local std::vector<std::byte> memory;
  if (memory.size() < bytes + line) memory.resize(bytes + line);
  void* start = memory.data();
  std::size_t space = memory.size();
  return static_cast<std::byte*>(std::align(line, bytes, start, space));
}

/// The products cut into pieces: groups of panels, and runs of rows. A piece is one group for one run.
class Pieces {
 public:
  Pieces(const LinearKernel& kernel, const Panels& panels, std::span<const Product> products, int threads)
      : kernel_(kernel),
        tiles_(*kernel.tiles),
        panels_(panels),
        products_(products),
        groups_(ceil_divide(panels.count(), tiles_.panels)) {
    std::int64_t rows = 0;
    for (const Product& product : products) {
      rows += product.rows;
      most_rows_ = std::max(most_rows_, product.rows);
    }
    const std::int64_t wanted_runs = ceil_divide(pieces_a_thread * threads, groups_);
    const std::int64_t rows_a_run = std::max(least_rows_a_piece, ceil_divide(rows, wanted_runs));
    run_rows_ = ceil_divide(rows_a_run, tiles_.rows) * tiles_.rows;
    for (const Product& product : products) {
      starts_.push_back(count_);
      count_ += groups_ * ceil_divide(product.rows, run_rows_);
    }
  }

  std::int64_t count() const { return count_; }
  /// Whether each piece reads its weights once for all rows: then it is bound by memory.
  bool few_rows() const { return most_rows_ <= tiles_.rows; }
  std::int64_t grain() const {
    const auto group_bytes = static_cast<std::int64_t>(panels_.panel_bytes()) * tiles_.panels;
    return ceil_divide(grain_bytes, group_bytes);
  }

  void multiply(std::int64_t begin, std::int64_t end) const {
    auto product =
        static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin() - 1);
    for (std::int64_t piece = begin; piece < end; ++piece) {
      while (product + 1 < starts_.size() && starts_[product + 1] <= piece) ++product;
      const std::int64_t index = piece - starts_[product];
      multiply(products_[product], index % groups_ * tiles_.panels, index / groups_ * run_rows_);
    }
  }

 private:
  /// Bytes that a pair of columns of one panel has when it is multiplied.
  std::int64_t pair_bytes() const {
    if (panels_.expands()) return 2 * panel_rows * kernel_.expanded_bytes;
    return static_cast<std::int64_t>(panels_.panel_bytes()) / (panels_.columns() / 2);
  }

  /// Pairs of columns that are multiplied at a time.
  std::int64_t block_of(std::int64_t panel_count) const {
    const std::int64_t pairs = panels_.columns() / 2;
    const std::int64_t wanted = few_rows() ? expanded_bytes : cached_bytes;
    if (few_rows() && !panels_.expands()) return pairs;
    const std::int64_t blocks = ceil_divide(pairs * pair_bytes() * panel_count, wanted);
    const std::int64_t step = panels_.expands() ? panels_.column_step() / 2 : 1;
    return ceil_divide(ceil_divide(pairs, blocks), step) * step;
  }

  void multiply(const Product& product, std::int64_t first_panel, std::int64_t first_row) const {
    const std::int64_t panel_count = std::min<std::int64_t>(tiles_.panels, panels_.count() - first_panel);
    const std::int64_t end_row = std::min(product.rows, first_row + run_rows_);
    const std::int64_t pairs = panels_.columns() / 2, block = block_of(panel_count);
    const std::int64_t row_bytes = panels_.columns() * static_cast<std::int64_t>(tiles_.input_bytes);
    const std::byte* weights = product.weights + static_cast<std::size_t>(first_panel) * panels_.panel_bytes();
    Tile tile{};
    tile.out_stride = product.out_stride;
    tile.columns = panels_.out - first_panel * panel_rows;
    for (std::int64_t pair = 0; pair < pairs; pair += block) {
      tile.pairs = std::min(block, pairs - pair);
      tile.go_on = pair > 0;
      if (panels_.expands()) {
        expand(weights, panel_count, pair, tile);
      } else {
        tile.panel_bytes = panels_.panel_bytes();
        tile.weights = weights + pair * pair_bytes();
      }
      for (std::int64_t row = first_row; row < end_row; row += tiles_.rows) {
        const std::int64_t row_count = std::min<std::int64_t>(tiles_.rows, end_row - row);
        tile.x = product.packed + row * row_bytes + pair * row_count * (row_bytes / pairs);
        tile.out = product.out + row * product.out_stride + first_panel * panel_rows;
        tiles_.tiles[(row_count - 1) * tiles_.panels + panel_count - 1](tile);
      }
    }
  }

  void expand(const std::byte* weights, std::int64_t panel_count, std::int64_t first_pair, Tile& tile) const {
    tile.panel_bytes = static_cast<std::size_t>(tile.pairs * pair_bytes());
    std::byte* expanded = scratch(static_cast<std::size_t>(panel_count) * tile.panel_bytes);
    for (std::int64_t panel = 0; panel < panel_count; ++panel) {
      expand_panel(kernel_, panels_, weights + static_cast<std::size_t>(panel) * panels_.panel_bytes(), 2 * first_pair,
                   2 * tile.pairs, expanded + static_cast<std::size_t>(panel) * tile.panel_bytes);
    }
    tile.weights = expanded;
  }

  const LinearKernel& kernel_;
  const TileKernels& tiles_;
  const Panels& panels_;
  std::span<const Product> products_;
  std::int64_t groups_, run_rows_ = 0, most_rows_ = 0, count_ = 0;
  std::vector<std::int64_t> starts_;  // first piece of each product
};

/// The rows at `inputs` with their columns in this order, in this thread's memory.
std::vector<const float*> ordered(std::span<const float* const> inputs, const std::int32_t* order, std::int64_t in) {
  std::vector<const float*> rows(inputs.begin(), inputs.end());
  auto* to = reinterpret_cast<float*>(scratch(rows.size() * static_cast<std::size_t>(in) * sizeof(float)));
  for (const float*& row : rows) {
    for (std::int64_t column = 0; column < in; ++column) to[column] = row[order[column]];
    row = to;
    to += in;
  }
  return rows;
}

/// Packs the inputs of all products, a block of rows at a time.
void pack(ThreadPool& pool, const TileKernels& tiles, const Panels& panels, std::span<const Product> products) {
  struct Block {
    const Product* product;
    std::int64_t row;
  };
  std::vector<Block> blocks;
  for (const Product& product : products) {
    for (std::int64_t row = 0; row < product.rows; row += tiles.rows) blocks.push_back({&product, row});
  }
  const std::int64_t row_bytes = panels.columns() * static_cast<std::int64_t>(tiles.input_bytes);
  const std::int64_t grain = ceil_divide(grain_inputs, panels.in * tiles.rows);
  pool.parallel_for(static_cast<std::int64_t>(blocks.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto& [product, row] = blocks[static_cast<std::size_t>(i)];
      const auto count = static_cast<int>(std::min<std::int64_t>(tiles.rows, product->rows - row));
      const std::span inputs(product->inputs + row, static_cast<std::size_t>(count));
      std::byte* packed = product->packed + row * row_bytes;
      if (product->order == nullptr) {
        tiles.pack(inputs.data(), count, panels.in, packed);
      } else {
        tiles.pack(ordered(inputs, product->order, panels.in).data(), count, panels.in, packed);
      }
    }
  });
}

}  // namespace

std::size_t packed_bytes(const LinearKernel& kernel, const Panels& panels, std::int64_t rows) {
  return static_cast<std::size_t>(rows * panels.columns()) * kernel.tiles->input_bytes;
}

void multiply(ThreadPool& pool, const LinearKernel& kernel, const Panels& panels, std::span<const Product> products) {
  const Pieces pieces(kernel, panels, products, pool.size());
  if (pieces.count() == 0) return;
  pack(pool, *kernel.tiles, panels, products);
  if (pieces.few_rows()) {
    pool.parallel_for(pieces.count(), pieces.grain(),
                      [&](std::int64_t begin, std::int64_t end) { pieces.multiply(begin, end); });
  } else {
    pool.parallel_items(pieces.count(), [&](std::int64_t piece, int) { pieces.multiply(piece, piece + 1); });
  }
}

}  // namespace sluice
