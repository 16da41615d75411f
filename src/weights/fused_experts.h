#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weights/format.h"

namespace sluice {

/// The matrices of a layer's experts, stored one behind another in tensors with a leading dimension of experts.
struct FusedExperts {
  std::vector<std::vector<SourceMatrix>> matrices;  // of each expert, stacked by rows
  std::vector<const StoredTensor*> tensors;         // all that they are made of
  /// One expert's share of each, which the matrices point to.
  std::vector<std::unique_ptr<const StoredTensor>> slices;
};

/// The experts stored as BASE (or BASE.weight) [experts, sum of rows, in] in any form, what the form needs beside it
/// [experts, ...] or one number for all: BASE.weight_scale, BASE_weight_scale or BASE_scale, and so on for the other
/// names that a form has. Scales [experts, parts], a number for each run of `rows`, are taken too. None if there is no
/// such tensor. Throws LoadError as find_matrix does, and for a leading dimension of another size.
std::optional<FusedExperts> find_fused_experts(const Checkpoint& checkpoint, std::string_view base,
                                               std::int64_t experts, std::span<const std::int64_t> rows,
                                               std::int64_t in, const StorageHints& hints);

/// Name of the form in which a tensor is one of those of a layer's experts; empty if it is none, or in no known form.
std::string_view form_of_fused(const Checkpoint& checkpoint, const StoredTensor& tensor);

}  // namespace sluice
