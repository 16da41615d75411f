#include "weights/fused_experts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "base/error.h"

namespace sluice {

namespace {

/// One expert's share of a tensor. Those of the other experts lie `step` bytes apart.
struct Share {
  const StoredTensor* whole;
  StoredTensor slice;
  std::uint64_t offset = 0, step = 0;  // bytes
};

/// The tensor of all experts that is NAME of BASE, in the spellings that files have.
const StoredTensor* find_whole(const Checkpoint& checkpoint, const std::string& base, std::string_view name) {
  constexpr std::string_view weight = "weight";
  std::vector<std::string> spellings{fmt::format("{}.{}", base, name), fmt::format("{}_{}", base, name)};
  if (name == weight) {
    spellings.insert(spellings.end(), {base, base + "_blocks"});
  } else if (name.starts_with("weight_")) {
    spellings.push_back(fmt::format("{}{}", base, name.substr(weight.size())));
  }
  if (name == "weight_scale" && checkpoint.find(base + "_blocks") != nullptr) spellings.push_back(base + "_scales");
  if (name == "input_scale") spellings.push_back(base + "_activation_scale");
  for (const std::string& spelling : spellings) {
    if (const StoredTensor* tensor = checkpoint.find(spelling)) return tensor;
  }
  return nullptr;
}

/// The first expert's tensors under the names of a single matrix, or run `part` of `parts` equal runs of their rows.
class FirstExpert final : public Checkpoint {
 public:
  FirstExpert(const Checkpoint& checkpoint, std::string base, std::int64_t experts, std::int64_t part,
              std::int64_t parts)
      : checkpoint_(checkpoint), base_(std::move(base)), experts_(experts), part_(part), parts_(parts) {}

  const StoredTensor* find(std::string_view name) const override {
    if (!name.starts_with(base_) || name.size() <= base_.size() + 1) return nullptr;
    const auto known = shares_.find(name);
    if (known != shares_.end()) return &known->second.slice;
    const StoredTensor* whole = find_whole(checkpoint_, base_, name.substr(base_.size() + 1));
    if (whole == nullptr) return nullptr;
    return &shares_.emplace(name, share_of(*whole, std::string(name))).first->second.slice;
  }
  std::vector<std::string> names() const override { return {}; }
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    const Share& share = this->share(tensor);
    const std::span<const std::byte> bytes = checkpoint_.bytes(*share.whole);
    return bytes.empty() ? bytes : bytes.subspan(share.offset, tensor.byte_size());  // headers alone have none
  }
  void release(const StoredTensor&) const override {}
  std::uint64_t total_bytes() const override { return checkpoint_.total_bytes(); }
  std::string describe() const override { return checkpoint_.describe(); }

  const Share& share(const StoredTensor& slice) const { return shares_.find(slice.name)->second; }

 private:
  Share share_of(const StoredTensor& whole, std::string name) const {
    Share share{&whole, whole, 0, 0};
    share.slice.name = std::move(name);
    auto& shape = share.slice.shape;
    const bool of_all = whole.elements() == 1 && experts_ > 1;
    if (!of_all) {
      if (shape.empty() || shape.front() != experts_) {
        fail<LoadError>("{}: tensor \"{}\" has shape {}, expected one of {} experts: [{}, ...]", whole.source,
                        whole.name, whole.shape_text(), experts_, experts_);
      }
      shape.erase(shape.begin());
      share.step = whole.byte_size() / static_cast<std::uint64_t>(experts_);
    }
    if (whole.name == base_ + "_blocks" && shape.size() == 3) {  // [rows, groups, bytes of a group]
      shape = {shape[0], shape[1] * shape[2]};
    }
    if (parts_ > 1 && share.slice.elements() > 1) cut_rows(share);
    return share;
  }

  void cut_rows(Share& share) const {
    auto& shape = share.slice.shape;
    if (shape.front() % parts_ != 0) {
      fail<LoadError>("{}: tensor \"{}\" has shape {}, expected rows of {} equal parts", share.whole->source,
                      share.whole->name, share.whole->shape_text(), parts_);
    }
    share.offset = share.slice.byte_size() / static_cast<std::uint64_t>(parts_) * static_cast<std::uint64_t>(part_);
    shape.front() /= parts_;
  }

  const Checkpoint& checkpoint_;
  std::string base_;
  std::int64_t experts_, part_, parts_;
  mutable std::map<std::string, Share, std::less<>> shares_;  // by the name of the single matrix
};

/// Whether some scale has a number for each of the equal parts of each expert's rows.
bool scaled_by_parts(const Checkpoint& checkpoint, const std::string& base, std::int64_t experts,
                     std::span<const std::int64_t> rows) {
  const auto parts = static_cast<std::int64_t>(rows.size());
  if (parts == 1 || std::ranges::adjacent_find(rows, std::not_equal_to<>()) != rows.end()) return false;
  for (const std::string_view name : {"weight_scale_2", "weight_global_scale", "weight_scale_inv", "weight_scale"}) {
    const StoredTensor* scale = find_whole(checkpoint, base, name);
    if (scale != nullptr && rows.front() > 1 && scale->shape == std::vector{experts, parts}) return true;
  }
  return false;
}

/// The matrix of another expert, of the first expert's form.
SourceMatrix matrix_of(std::int64_t expert, const SourceMatrix& first, const FirstExpert& view,
                       std::vector<std::unique_ptr<const StoredTensor>>& slices) {
  SourceMatrix matrix = first;
  for (StoredPart& part : matrix.parts) {
    const Share& share = view.share(*part.tensor);
    StoredTensor slice = share.slice;
    slice.source = fmt::format("{}: \"{}\" of expert {}", share.whole->source, share.whole->name, expert);
    slices.push_back(std::make_unique<const StoredTensor>(std::move(slice)));
    if (part.bytes != nullptr) part.bytes += static_cast<std::uint64_t>(expert) * share.step;
    part.tensor = slices.back().get();
    part.whole = share.whole;
  }
  return matrix;
}

}  // namespace

std::optional<FusedExperts> find_fused_experts(const Checkpoint& checkpoint, std::string_view base,
                                               std::int64_t experts, std::span<const std::int64_t> rows,
                                               std::int64_t in, const StorageHints& hints) {
  const std::string name(base);
  const bool cut = scaled_by_parts(checkpoint, name, experts, rows);
  const std::int64_t parts = cut ? static_cast<std::int64_t>(rows.size()) : 1;
  const std::int64_t out = std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) / parts;
  FusedExperts found;
  found.matrices.resize(static_cast<std::size_t>(experts));
  for (std::int64_t part = 0; part < parts; ++part) {
    const FirstExpert view(checkpoint, name, experts, part, parts);
    const auto first = find_matrix(view, base, out, in, hints);
    if (!first) return std::nullopt;
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      found.matrices[static_cast<std::size_t>(expert)].push_back(matrix_of(expert, *first, view, found.slices));
    }
    for (const StoredPart& stored : first->parts) {
      const StoredTensor* whole = view.share(*stored.tensor).whole;
      if (part == 0) found.tensors.push_back(whole);
    }
  }
  return found;
}

std::string_view form_of_fused(const Checkpoint& checkpoint, const StoredTensor& tensor) try {
  const std::size_t experts = tensor.name.find(".experts."), end = tensor.name.find("_proj", experts);
  if (experts == std::string::npos || end == std::string::npos) return {};
  const std::string base = tensor.name.substr(0, end + 5);
  for (const std::string_view name : {"weight", "weight_packed", "qweight"}) {
    const StoredTensor* values = find_whole(checkpoint, base, name);
    if (values == nullptr || values->shape.size() < 3) continue;
    const FirstExpert view(checkpoint, base, values->shape.front(), 0, 1);
    for (const Format* format : formats()) {
      for (const std::string& found : format->detect(view, base)) {
        if (view.share(*view.find(found)).whole == &tensor) return format->name;
      }
    }
  }
  return {};
} catch (const LoadError&) {  // tensors that belong together and have not the same experts
  return {};
}

}  // namespace sluice
