#include "models/parallel_pieces.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/integers.h"
#include "weights/format.h"
#include "weights/ggml_blocks.h"

namespace sluice {

namespace {

std::string_view name_of(Along along) {
  if (along == Along::experts) return "experts";
  return along == Along::rows ? "rows" : "columns";
}

/// Along rows, a row's blocks stay whole; along columns, cuts lie between blocks.
std::int64_t block_of(const StoredTensor& tensor, Along along) {
  return tensor.block_type != nullptr && along == Along::columns ? tensor.block_type->values : 1;
}

}  // namespace

Piece matrix_piece(const Checkpoint& checkpoint, const std::string& name, std::int64_t out, std::int64_t in,
                   Along along) {
  const auto matrix = find_matrix(checkpoint, name, out, in);
  if (!matrix) fail<LoadError>("{}: tensor \"{}.weight\" [{}, {}] is missing", checkpoint.describe(), name, out, in);
  const bool rows = along == Along::rows;
  Piece piece{name, along, rows ? out : in, 1, {}, ""};
  if (!rows && !matrix->input_order().empty()) piece.obstacle = "columns grouped in an order of their own (act-order)";
  const std::vector<PartGrid> grids = matrix->grids();
  CHECK(grids.size() == matrix->parts.size(), "{}: {} grids of {} tensors", name, grids.size(), matrix->parts.size());
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const StoredTensor& tensor = *matrix->parts[i].tensor;
    const int axis = rows ? grids[i].row_axis : grids[i].column_axis;
    const std::int64_t share = rows ? grids[i].rows : grids[i].columns;
    piece.parts.push_back({&tensor, axis, share});
    if (axis >= 0) piece.edge = std::lcm(piece.edge, std::lcm(share, block_of(tensor, along)));
  }
  return piece;
}

Piece tensor_piece(const Checkpoint& checkpoint, const std::string& name) {
  const StoredTensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) fail<LoadError>("{}: tensor \"{}\" is missing", checkpoint.describe(), name);
  const bool scalar = tensor->shape.empty();
  return {name, Along::rows, scalar ? 1 : tensor->shape.front(), 1, {{tensor, scalar ? -1 : 0, 1}}, ""};
}

Piece expert_piece(const StoredTensor& tensor, Along along) {
  CHECK(tensor.shape.size() == 3, "{} {}", tensor.name, tensor.shape_text());
  const int axis = along == Along::experts ? 0 : along == Along::rows ? 1 : 2;
  return {tensor.name,          along, tensor.shape[static_cast<std::size_t>(axis)], block_of(tensor, along),
          {{&tensor, axis, 1}}, ""};
}

std::string Piece::problem(const RankRuns& runs) const {
  if (!obstacle.empty() && runs.size() > 1) return fmt::format("\"{}\" has {}", name, obstacle);
  const std::int64_t first = length_of(runs.front());
  for (const std::vector<Run>& of_rank : runs) {
    if (length_of(of_rank) != first) {
      return fmt::format("\"{}\" has {} {}, which {} ranks cannot share evenly", name, size, name_of(along),
                         runs.size());
    }
    for (const Run& run : of_rank) {
      const std::int64_t end = run.begin + run.count;
      if (run.begin % edge == 0 && (end % edge == 0 || end == size)) continue;
      return fmt::format("\"{}\" has {} {}, of which {} a rank would cut blocks of {}", name, size, name_of(along),
                         first, edge);
    }
  }
  return "";
}

std::uint64_t Piece::bytes() const {
  std::uint64_t total = 0;
  for (const Part& part : parts) total += part.tensor->byte_size();
  return total;
}

void add_cut(std::vector<PlannedTensor>& plan, const Piece& piece, const Cut& cut) {
  for (const Piece::Part& part : piece.parts) {
    PlannedTensor planned{part.tensor, cut.split, part.axis, {}, -1, cut.copies, cut.reason};
    if (part.axis < 0) {
      planned.copies = static_cast<int>(cut.runs.size());
      planned.split = Split::replicated;
    } else {
      planned.ranks = cut.runs;
      for (std::vector<Run>& runs : planned.ranks) {
        for (Run& run : runs) {
          const std::int64_t end = ceil_divide(run.begin + run.count, part.share);
          run = {run.begin / part.share, end - run.begin / part.share};
        }
      }
    }
    plan.push_back(std::move(planned));
  }
}

void add_whole(std::vector<PlannedTensor>& plan, const Piece& piece, int ranks, std::string_view reason) {
  for (const Piece::Part& part : piece.parts) {
    plan.push_back({part.tensor, Split::replicated, -1, {}, -1, ranks, std::string(reason)});
  }
}

void add_owned(std::vector<PlannedTensor>& plan, const Piece& piece, int owner, std::string_view reason) {
  for (const Piece::Part& part : piece.parts) {
    plan.push_back({part.tensor, Split::experts, -1, {}, owner, 1, std::string(reason)});
  }
}

}  // namespace sluice
