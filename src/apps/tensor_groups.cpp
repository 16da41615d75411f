#include "apps/tensor_groups.h"

#include <algorithm>
#include <map>

#include "weights/format.h"
#include "weights/fused_experts.h"

namespace sluice {

namespace {

/// The format whose matrix the tensor is part of, with its values or its scales.
std::string format_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const std::size_t dot = tensor.name.rfind('.');
  const std::string_view base = std::string_view(tensor.name).substr(0, dot == std::string::npos ? 0 : dot);
  for (const Format* format : formats()) {
    const std::vector<std::string> names = format->detect(checkpoint, base);
    if (std::ranges::find(names, tensor.name) != names.end()) return std::string(format->name);
  }
  const std::string_view fused = form_of_fused(checkpoint, tensor);
  if (!fused.empty()) return std::string(fused);
  if (tensor.block_type != nullptr) return "ggml";
  return is_plain_float(tensor.dtype) ? "plain" : "unknown";
}

}  // namespace

std::vector<TensorGroup> group_tensors(const Checkpoint& checkpoint) {
  std::map<std::vector<std::string>, TensorGroup> groups;
  for (const std::string& name : checkpoint.names()) {
    const StoredTensor& tensor = *checkpoint.find(name);
    const std::vector<std::string> key{without_numbers(name), std::string(tensor.type_name()), tensor.shape_text()};
    TensorGroup& group = groups[key];
    if (group.count == 0) group = {key[0], format_of(checkpoint, tensor), key[1], key[2], 0, 0};
    ++group.count;
    group.bytes += tensor.byte_size();
  }
  std::vector<TensorGroup> list;
  for (const auto& [key, group] : groups) list.push_back(group);
  return list;
}

std::string gibibytes(std::uint64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / 1048576.0;
  return mebibytes < 1024.0 ? fmt::format("{:.1f} MiB", mebibytes) : fmt::format("{:.2f} GiB", mebibytes / 1024.0);
}

}  // namespace sluice
