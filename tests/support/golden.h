#pragma once
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "support/model_runner.h"

namespace sluice::test {

/// What a file of expected results holds.
class Golden {
 public:
  explicit Golden(const std::filesystem::path& file) : checkpoint_(open_safetensors(file)) {}

  bool has(const std::string& name) const { return checkpoint_->find(name) != nullptr; }

  std::vector<std::int32_t> ids(const std::string& name) const {
    const StoredTensor& tensor = *checkpoint_->find(name);
    std::vector<std::int64_t> wide(static_cast<std::size_t>(tensor.elements()));
    std::memcpy(wide.data(), checkpoint_->bytes(tensor).data(), wide.size() * sizeof(std::int64_t));
    return {wide.begin(), wide.end()};
  }

  /// Leading dimensions flattened.
  Rows rows(const std::string& name) const {
    const StoredTensor& tensor = *checkpoint_->find(name);
    const auto columns = static_cast<std::size_t>(tensor.shape.back());
    Rows rows(static_cast<std::size_t>(tensor.elements()) / columns, Row(columns));
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::memcpy(rows[r].data(), checkpoint_->bytes(tensor).data() + r * columns * sizeof(float),
                  columns * sizeof(float));
    }
    return rows;
  }

  /// Lengths N for which there is `ids.N`.
  std::vector<int> lengths() const {
    std::vector<int> found;
    for (const std::string& name : checkpoint_->names()) {
      if (name.starts_with("ids.")) found.push_back(std::stoi(name.substr(4)));
    }
    return found;
  }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
};

/// ||found - expected|| / ||expected||, over all rows together; the last rows of `found` are compared.
inline double relative_error(const Rows& found, const Rows& expected) {
  if (found.size() < expected.size() || expected.empty()) return INFINITY;
  double difference = 0.0, norm = 0.0;
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const Row& row = found[found.size() - expected.size() + r];
    if (row.size() != expected[r].size()) return INFINITY;
    for (std::size_t c = 0; c < row.size(); ++c) {
      difference += std::pow(static_cast<double>(row[c]) - expected[r][c], 2);
      norm += std::pow(static_cast<double>(expected[r][c]), 2);
    }
  }
  return std::sqrt(difference / norm);
}

inline std::int32_t arg_max(const Row& row) {
  return static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace sluice::test
