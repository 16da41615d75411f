#include "weights/scope.h"

#include <numeric>
#include <unordered_set>

#include "base/error.h"
#include "weights/fused_experts.h"

namespace sluice {

struct WeightScope::Shared {
  const Checkpoint& checkpoint;
  Placer& placer;
  StorageHints hints;
  std::unordered_set<std::string> claimed;
  std::vector<std::string> skipped;
  std::uint64_t placed_bytes = 0;
  std::function<void(std::uint64_t, std::uint64_t)> on_progress;
};

namespace {

std::string joined(std::string_view prefix, std::string_view name) {
  if (prefix.empty() || name.empty()) return fmt::format("{}{}", prefix, name);
  return fmt::format("{}.{}", prefix, name);
}

/// For an error: the tensors under the name, if they are there but no format knows them.
std::string what_is_beside(const Checkpoint& checkpoint, const std::string& base) {
  std::string found;
  for (const std::string& name : checkpoint.names()) {
    if (!name.starts_with(base) || name.ends_with(".bias")) continue;
    if (name.size() > base.size() && name[base.size()] != '.' && name[base.size()] != '_') continue;
    const StoredTensor& tensor = *checkpoint.find(name);
    found += fmt::format("{}{} ({} {})", found.empty() ? "" : ", ", name.substr(base.rfind('.') + 1),
                         tensor.type_name(), tensor.shape_text());
  }
  return found.empty() ? "" : fmt::format(", nor is it in a quantized form that is known: there is {}", found);
}

std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

}  // namespace

WeightScope::WeightScope(const Checkpoint& checkpoint, Placer& placer, const StorageHints& hints)
    : WeightScope(std::make_shared<Shared>(Shared{checkpoint, placer, hints, {}, {}, 0, nullptr}), "") {}

WeightScope::WeightScope(std::shared_ptr<Shared> shared, std::string prefix)
    : shared_(std::move(shared)), prefix_(std::move(prefix)) {}

WeightScope WeightScope::at(std::string_view child) const { return WeightScope(shared_, full(child)); }

const Checkpoint& WeightScope::checkpoint() const { return shared_->checkpoint; }

Placer& WeightScope::placer() const { return shared_->placer; }

std::string WeightScope::full(std::string_view name) const { return joined(prefix_, name); }

bool WeightScope::has(std::string_view name) const {
  const std::string base = full(name);
  if (shared_->checkpoint.find(base) != nullptr) return true;
  for (const Format* format : formats()) {
    if (!format->detect(shared_->checkpoint, base).empty()) return true;
  }
  return false;
}

const StoredTensor& WeightScope::plain_tensor(std::string_view name, const std::vector<std::int64_t>& shape) const {
  const StoredTensor* tensor = shared_->checkpoint.find(full(name));
  if (tensor == nullptr) {
    fail<LoadError>("{}: tensor \"{}\" [{}] is missing", shared_->checkpoint.describe(), full(name),
                    fmt::join(shape, ", "));
  }
  if (tensor->shape != shape) {
    fail<LoadError>("{}: tensor \"{}\" has shape {}, expected [{}]", tensor->source, tensor->name, tensor->shape_text(),
                    fmt::join(shape, ", "));
  }
  if (!is_plain_float(tensor->dtype)) {
    fail<LoadError>("{}: tensor \"{}\" is {}, expected bfloat16, float16 or float32", tensor->source, tensor->name,
                    tensor->type_name());
  }
  return *tensor;
}

std::vector<float> WeightScope::values(std::string_view name, const Shape& shape) const {
  const StoredTensor& tensor = plain_tensor(name, sizes_of(shape));
  std::vector<float> numbers(static_cast<std::size_t>(tensor.elements()));
  to_float(tensor.dtype, shared_->checkpoint.bytes(tensor).data(), numbers.size(), numbers.data());
  done(tensor);
  return numbers;
}

Tensor WeightScope::vector(std::string_view name, const Shape& shape, const std::function<float(float)>& map) const {
  std::vector<float> numbers = values(name, shape);
  if (map) {
    for (float& number : numbers) number = map(number);
  }
  return shared_->placer.place_vector(numbers, shape);
}

SourceMatrix WeightScope::source(std::string_view name, std::int64_t out, std::int64_t in) const {
  const Checkpoint& checkpoint = shared_->checkpoint;
  const std::string base = full(name);
  if (auto matrix = find_matrix(checkpoint, base, out, in, shared_->hints)) return *std::move(matrix);
  fail<LoadError>("{}: tensor \"{}.weight\" [{}, {}] is missing{}", checkpoint.describe(), base, out, in,
                  what_is_beside(checkpoint, base));
}

void WeightScope::done(const StoredTensor& tensor) const {
  CHECK(shared_->claimed.insert(tensor.name).second, "tensor {} is claimed twice", tensor.name);
  shared_->checkpoint.release(tensor);
  shared_->placed_bytes += tensor.byte_size();
  if (shared_->on_progress) shared_->on_progress(shared_->placed_bytes, shared_->checkpoint.total_bytes());
}

void WeightScope::done(const SourceMatrix& matrix) const {
  for (const StoredPart& part : matrix.parts) done(*part.tensor);
}

WeightPtr WeightScope::matrix(std::string_view name, std::int64_t out, std::int64_t in) const {
  return stacked({{name, out}}, in);
}

WeightPtr WeightScope::stacked(std::initializer_list<StackPart> parts, std::int64_t in) const {
  std::vector<SourceMatrix> sources;
  for (const StackPart& part : parts) sources.push_back(source(part.name, part.rows, in));
  WeightPtr weight = shared_->placer.place(sources);
  for (const SourceMatrix& matrix : sources) done(matrix);
  return weight;
}

ExpertWeightsPtr WeightScope::experts(std::string_view fused, std::initializer_list<StackPart> parts,
                                      std::int64_t experts, std::int64_t in) const {
  std::vector<std::int64_t> rows;
  for (const StackPart& part : parts) rows.push_back(part.rows);
  std::vector<FusedExperts> found;
  if (auto all = find_fused_experts(shared_->checkpoint, full(fused), experts, rows, in, shared_->hints)) {
    found.push_back(*std::move(all));
  } else {
    for (const StackPart& part : parts) {
      auto own = find_fused_experts(shared_->checkpoint, full(part.name), experts, {&part.rows, 1}, in, shared_->hints);
      if (own) found.push_back(*std::move(own));
    }
  }
  if (found.empty()) return separate_experts(fused, parts, experts, in);
  std::vector<std::vector<SourceMatrix>> sources(static_cast<std::size_t>(experts));
  std::int64_t out = 0;
  for (const FusedExperts& some : found) {
    for (std::size_t e = 0; e < sources.size(); ++e) {
      sources[e].insert(sources[e].end(), some.matrices[e].begin(), some.matrices[e].end());
    }
  }
  for (const SourceMatrix& matrix : sources.front()) out += matrix.out;
  if (out != std::accumulate(rows.begin(), rows.end(), std::int64_t{0})) fail_experts(fused, parts, experts, in);
  ExpertWeightsPtr weights = shared_->placer.place_experts(sources);
  for (const FusedExperts& some : found) {
    for (const StoredTensor* tensor : some.tensors) done(*tensor);
  }
  return weights;
}

ExpertWeightsPtr WeightScope::separate_experts(std::string_view fused, std::initializer_list<StackPart> parts,
                                               std::int64_t experts, std::int64_t in) const {
  if (!has(fmt::format("0.{}", parts.begin()->name))) fail_experts(fused, parts, experts, in);
  std::vector<std::vector<SourceMatrix>> sources(static_cast<std::size_t>(experts));
  for (std::int64_t e = 0; e < experts; ++e) {
    for (const StackPart& part : parts) {
      sources[static_cast<std::size_t>(e)].push_back(source(fmt::format("{}.{}", e, part.name), part.rows, in));
    }
  }
  ExpertWeightsPtr weights = shared_->placer.place_experts(sources);
  for (const auto& expert : sources) {
    for (const SourceMatrix& matrix : expert) done(matrix);
  }
  return weights;
}

void WeightScope::fail_experts(std::string_view fused, std::initializer_list<StackPart> parts, std::int64_t experts,
                               std::int64_t in) const {
  std::int64_t rows = 0;
  std::string found, names;
  for (const StackPart& part : parts) {
    rows += part.rows;
    names += fmt::format(", \"{}\" [{}, {}, {}]", full(part.name), experts, part.rows, in);
    if (part.name != fused) found += what_is_beside(shared_->checkpoint, full(part.name));
  }
  fail<LoadError>("{}: the experts \"{}\" [{}, {}, {}] (or{}, or \"{}.weight\" and so on) are missing{}{}",
                  shared_->checkpoint.describe(), full(fused), experts, rows, in, names.substr(1),
                  full(fmt::format("0.{}", parts.begin()->name)), what_is_beside(shared_->checkpoint, full(fused)),
                  found);
}

void WeightScope::reserve(std::string_view name, const std::vector<std::int64_t>& shape) const {
  done(plain_tensor(name, shape));
}

void WeightScope::skip(std::string_view name, std::string_view reason) const {
  const std::string base = full(name);
  std::size_t count = 0;
  for (const std::string& candidate : shared_->checkpoint.names()) {
    if (candidate != base && !candidate.starts_with(base + ".")) continue;
    if (shared_->claimed.insert(candidate).second) ++count;
  }
  if (count > 0) shared_->skipped.push_back(fmt::format("{} ({} tensors): {}", base, count, reason));
}

void WeightScope::finish() const {
  std::vector<std::string> left;
  for (const std::string& name : shared_->checkpoint.names()) {
    if (!shared_->claimed.contains(name)) left.push_back(name);
  }
  if (left.empty()) return;
  std::string listed;
  for (std::size_t i = 0; i < left.size() && i < 5; ++i) listed += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", left[i]);
  fail<LoadError>("{}: {} tensor{} that this architecture does not have: {}{}", shared_->checkpoint.describe(),
                  left.size(), left.size() == 1 ? "" : "s", listed, left.size() > 5 ? ", ..." : "");
}

std::vector<std::string> WeightScope::skipped() const { return shared_->skipped; }

void WeightScope::on_progress(std::function<void(std::uint64_t, std::uint64_t)> callback) {
  shared_->on_progress = std::move(callback);
}

}  // namespace sluice
