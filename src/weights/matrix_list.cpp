#include "weights/matrix_list.h"

#include <string_view>

namespace sluice {

std::string ListedMatrix::name() const {
  std::string_view name = source.values().name;
  for (const std::string_view suffix : {".weight", ".weight_packed", ".qweight"}) {
    if (name.ends_with(suffix)) return std::string(name.substr(0, name.size() - suffix.size()));
  }
  return std::string(name);
}

void MatrixLister::note(std::span<const SourceMatrix> parts) {
  for (const SourceMatrix& matrix : parts) {
    matrices_.push_back({matrix, stacks_});
    for (StoredPart& part : matrices_.back().source.parts) part.tensor = keep(part);
  }
  ++stacks_;
}

const StoredTensor* MatrixLister::keep(const StoredPart& part) {
  return part.whole == nullptr ? part.tensor : &slices_.emplace_back(*part.tensor);
}

WeightPtr MatrixLister::place(std::span<const SourceMatrix> parts) {
  note(parts);
  return AuditPlacer::place(parts);
}

ExpertWeightsPtr MatrixLister::place_experts(const std::vector<std::vector<SourceMatrix>>& parts) {
  for (const auto& expert : parts) note(expert);
  return AuditPlacer::place_experts(parts);
}

}  // namespace sluice
