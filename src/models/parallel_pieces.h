#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/parallel_plan.h"

namespace sluice {

/// A way to share out one dimension.
struct Cut {
  Split split = Split::rows;
  RankRuns runs;
  std::string reason;
  int copies = 1;
};

/// Which dimension of a matrix is cut; of a stack of experts [experts, out, in] also the first.
enum class Along : std::uint8_t { rows, columns, experts };

/// A matrix (with its scales) or another tensor, seen along the dimension that is to be cut.
struct Piece {
  struct Part {
    const StoredTensor* tensor;
    int axis;            // of its shape; -1: it does not have that dimension
    std::int64_t share;  // how many of the dimension's elements share one of the tensor's
  };
  std::string name;
  Along along = Along::rows;
  std::int64_t size = 0, edge = 1;  // of the dimension; cuts lie at multiples of `edge`
  std::vector<Part> parts;
  std::string obstacle;  // why no cut can be made; empty: none

  /// "layers.0.mlp.down_proj has 3584 columns, of which 448 a rank would cut blocks of 128"; empty: the cut can be
  /// made.
  std::string problem(const RankRuns& runs) const;
  std::uint64_t bytes() const;
};

/// The matrix NAME.weight, in whatever form it is stored. Throws LoadError where it is missing.
Piece matrix_piece(const Checkpoint& checkpoint, const std::string& name, std::int64_t out, std::int64_t in,
                   Along along);
/// The tensor NAME, along its first dimension. Throws LoadError where it is missing.
Piece tensor_piece(const Checkpoint& checkpoint, const std::string& name);
/// The tensor NAME [experts, out, in] of all experts.
Piece expert_piece(const StoredTensor& tensor, Along along);

/// Appends what the cut makes of the piece's tensors.
void add_cut(std::vector<PlannedTensor>& plan, const Piece& piece, const Cut& cut);
/// Appends the piece's tensors whole: for all ranks, or for one.
void add_whole(std::vector<PlannedTensor>& plan, const Piece& piece, int ranks, std::string_view reason);
void add_owned(std::vector<PlannedTensor>& plan, const Piece& piece, int owner, std::string_view reason);

}  // namespace sluice
