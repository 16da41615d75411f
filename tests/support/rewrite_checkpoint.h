#pragma once
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mmap.h"
#include "weights/safetensors.h"

namespace sluice::test {

/// A tensor in memory, under a name.
struct NamedTensor {
  std::string name;
  DType dtype = DType::bf16;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  Tensor view() {
    Shape sizes;
    switch (shape.size()) {
      case 1: sizes = {shape[0]}; break;
      case 2: sizes = {shape[0], shape[1]}; break;
      case 3: sizes = {shape[0], shape[1], shape[2]}; break;
      default: sizes = {shape[0], shape[1], shape[2], shape[3] * (shape.size() > 4 ? shape[4] : 1)}; break;
    }
    return Tensor(bytes.data(), dtype, sizes);
  }
  /// Rows begin .. begin + count - 1 of the outermost dimension, which is dropped when count is 0 (one row, unstacked).
  NamedTensor rows(const std::string& new_name, std::int64_t begin, std::int64_t count) const {
    NamedTensor part{new_name, dtype, shape, {}};
    const std::size_t row_bytes = bytes.size() / static_cast<std::size_t>(shape[0]);
    const std::int64_t kept = count == 0 ? 1 : count;
    if (count == 0) {
      part.shape.erase(part.shape.begin());
    } else {
      part.shape[0] = count;
    }
    const auto* first = bytes.data() + static_cast<std::size_t>(begin) * row_bytes;
    part.bytes.assign(first, first + static_cast<std::size_t>(kept) * row_bytes);
    return part;
  }
};

/// Text tensors only: the vision tower's five-dimensional patch weight has no place in the writer.
using Rewrite = std::function<std::vector<NamedTensor>(NamedTensor)>;

inline std::vector<NamedTensor> read_tensors(const std::filesystem::path& directory) {
  const auto checkpoint = open_safetensors(directory);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : checkpoint->names()) {
    const StoredTensor& stored = *checkpoint->find(name);
    const auto bytes = checkpoint->bytes(stored);
    tensors.push_back({name, stored.dtype, stored.shape, {bytes.begin(), bytes.end()}});
  }
  return tensors;
}

/// The text part of a checkpoint, every tensor passed through `rewrite`, with a changed config, in a new directory.
inline void rewrite_checkpoint(const std::filesystem::path& source, const std::filesystem::path& target,
                               const Rewrite& rewrite, const std::function<void(Json&)>& change_config) {
  std::vector<NamedTensor> kept;
  for (NamedTensor& tensor : read_tensors(source)) {
    if (tensor.name.starts_with("model.visual.")) continue;
    for (NamedTensor& changed : rewrite(std::move(tensor))) kept.push_back(std::move(changed));
  }
  std::vector<std::pair<std::string, Tensor>> views;
  for (NamedTensor& tensor : kept) views.emplace_back(tensor.name, tensor.view());
  std::filesystem::create_directories(target);
  write_safetensors(target / "model.safetensors", views);
  Json config = parse_json(read_text_file(source / "config.json"), "config.json");
  config.erase("vision_config");
  change_config(config);
  std::ofstream(target / "config.json") << config.dump();
}

inline std::vector<NamedTensor> unchanged(NamedTensor tensor) { return {std::move(tensor)}; }

}  // namespace sluice::test
