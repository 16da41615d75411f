#include "apps/quantize_source.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "models/model.h"
#include "models/qwen3_5_parts.h"
#include "weights/matrix_list.h"

namespace sluice {

namespace {

constexpr std::string_view published_text = "model.language_model.";

/// The prefixes under which a checkpoint holds the parts of a model, and those that are published.
class Names {
 public:
  explicit Names(const std::vector<ListedMatrix>& matrices) {
    constexpr std::string_view embedding = "embed_tokens";
    for (const ListedMatrix& matrix : matrices) {
      const std::string name = matrix.name();
      if (name.ends_with(embedding)) text_ = name.substr(0, name.size() - embedding.size());
    }
  }
  static bool is_vision(std::string_view name) {
    return std::ranges::any_of(vision_part.prefixes, [name](std::string_view prefix) {
      return name.starts_with(prefix) && name.substr(prefix.size()).starts_with('.');
    });
  }
  std::string published(const std::string& name) const {
    constexpr std::string_view outer = "language_model.";
    if (is_vision(name)) return name;
    if (name.starts_with(text_)) return fmt::format("{}{}", published_text, name.substr(text_.size()));
    return name.starts_with(outer) ? name.substr(outer.size()) : name;
  }

 private:
  std::string text_;
};

HeadOrder order_of(const Qwen3_5Config& config, bool to_tiled, std::int64_t first, std::int64_t per_head) {
  return {first, per_head, config.key_heads, config.value_heads, to_tiled};
}

/// Places of value heads in a stored tensor: rows from `first` on, or columns.
struct HeadPlace {
  std::string_view suffix;
  bool after_keys, whole_heads, columns;
};
constexpr HeadPlace head_places[] = {
    {"linear_attn.in_proj_qkv", true, true, false}, {"linear_attn.in_proj_z", false, true, false},
    {"linear_attn.in_proj_b", false, false, false}, {"linear_attn.in_proj_a", false, false, false},
    {"linear_attn.out_proj", false, true, true},    {"linear_attn.conv1d.weight", true, true, false},
    {"linear_attn.A_log", false, false, false},     {"linear_attn.dt_bias", false, false, false},
};

const HeadPlace* head_place(std::string_view name) {
  const auto* found =
      std::ranges::find_if(head_places, [name](const HeadPlace& place) { return name.ends_with(place.suffix); });
  return found == std::end(head_places) ? nullptr : found;
}

/// None where the order stays or the tensor has no value heads.
std::optional<HeadOrder> reordering(std::string_view name, const Qwen3_5Config& config, const Checkpoint& checkpoint,
                                    const SourceView& view, bool columns) {
  const bool to_tiled = view.conventions.value_heads_tiled;
  const HeadPlace* place = head_place(name);
  if (place == nullptr || place->columns != columns || to_tiled == checkpoint.conventions().value_heads_tiled)
    return {};
  return order_of(config, to_tiled, place->after_keys ? 2 * config.key_heads * config.key_dim : 0,
                  place->whole_heads ? config.value_dim : 1);
}

/// "a.experts.7.up_proj" as "a.experts." and "up_proj".
struct ExpertName {
  std::string_view prefix, projection;  // empty: no expert
};

ExpertName parse_expert_name(std::string_view name) {
  constexpr std::string_view folder = ".experts.";
  const std::size_t at = name.find(folder);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + folder.size(), last = name.rfind('.') + 1;
  return {name.substr(0, begin), name.substr(last)};
}

/// Rows of a listed matrix under a name of their own.
struct NamedRun {
  std::string name;
  std::int64_t first, count;
};

/// Matrices that are stored as one, taken apart.
std::vector<NamedRun> separate(const std::string& name, std::int64_t out, const Qwen3_5Config& config) {
  const auto cut = [&](std::string_view packed, std::string_view top, std::string_view rest, std::int64_t rows) {
    const std::string prefix = name.substr(0, name.size() - packed.size());
    return std::vector<NamedRun>{{fmt::format("{}{}", prefix, top), 0, rows},
                                 {fmt::format("{}{}", prefix, rest), rows, out - rows}};
  };
  if (name.ends_with("in_proj_qkvz")) return cut("in_proj_qkvz", "in_proj_qkv", "in_proj_z", config.conv_channels());
  if (name.ends_with("in_proj_ba")) return cut("in_proj_ba", "in_proj_b", "in_proj_a", out / 2);
  if (name.ends_with("experts.gate_up_proj") && out != 2 * config.moe_intermediate_size) {
    fail<LoadError>("{}: gate and up lie in one tensor with scales of their own, which cannot be quantized again",
                    name);
  }
  if (name.ends_with("experts.gate_up_proj")) return cut("gate_up_proj", "gate_proj", "up_proj", out / 2);
  return {{name, 0, out}};
}

/// Collects the matrices of a source in the order in which the model asks for them.
class Collector {
 public:
  Collector(const Qwen3_5Config& config, const Checkpoint& checkpoint, const SourceView& view)
      : config_(config), checkpoint_(checkpoint), view_(view) {}

  void add(const ListedMatrix& listed, const std::string& name) {
    for (const NamedRun& run : separate(name, listed.source.out, config_)) {
      const MatrixRows::Run rows{listed.source, run.first, run.count};
      const ExpertName expert = parse_expert_name(run.name);
      if (expert.prefix.empty()) {
        MatrixRows& matrix = add_matrix(run.name, rows, listed.stack);
        matrix.row_order = reordering(run.name, config_, checkpoint_, view_, false);
        matrix.column_order = reordering(run.name, config_, checkpoint_, view_, true);
      } else {
        add_expert(fmt::format("{}{}", expert.prefix, expert.projection), expert, rows, listed.stack);
      }
    }
  }
  std::vector<MatrixRows> take() { return std::move(matrices_); }

 private:
  MatrixRows& add_matrix(std::string name, const MatrixRows::Run& rows, std::int64_t stack) {
    MatrixRows& matrix = matrices_.emplace_back();
    matrix.name = std::move(name);
    matrix.runs = {rows};
    matrix.out = rows.count;
    matrix.in = rows.matrix.in;
    matrix.stack = stack;
    return matrix;
  }

  void add_expert(const std::string& fused, const ExpertName& expert, const MatrixRows::Run& rows, std::int64_t stack) {
    const std::int64_t index = experts_seen_[fused]++;
    if (!view_.fused_experts) {
      add_matrix(fmt::format("{}{}.{}", expert.prefix, index, expert.projection), rows, stack);
      return;
    }
    if (index == 0) {
      place_of_[fused] = matrices_.size();
      add_matrix(fused, rows, stack).experts = 1;
      return;
    }
    MatrixRows& matrix = matrices_[place_of_[fused]];
    matrix.runs.push_back(rows);
    matrix.out += rows.count;
    ++matrix.experts;
  }

  const Qwen3_5Config& config_;
  const Checkpoint& checkpoint_;
  const SourceView& view_;
  std::vector<MatrixRows> matrices_;
  std::map<std::string, std::int64_t> experts_seen_;
  std::map<std::string, std::size_t> place_of_;
};

/// What other conventions may say otherwise.
enum class Meaning : std::uint8_t { plain, norm, decay };

Meaning meaning_of(const OtherTensor& tensor) {
  const std::string_view name = tensor.name;
  if (tensor.is_vision) return Meaning::plain;
  if (name.ends_with("linear_attn.A_log")) return Meaning::decay;
  const bool norm = name.ends_with("norm.weight") || name.find("mtp.pre_fc_norm_") != std::string_view::npos;
  return norm && !name.ends_with("linear_attn.norm.weight") ? Meaning::norm : Meaning::plain;
}

float checked_log(float decay, const StoredTensor& tensor) {
  if (decay < 0.0f) return std::log(-decay);
  fail<LoadError>("{}: tensor \"{}\" holds {}, expected -exp(A_log), which is below 0", tensor.source, tensor.name,
                  decay);
}

}  // namespace

std::int64_t HeadOrder::source_of(std::int64_t place) const {
  if (place < first) return place;
  const std::int64_t head = (place - first) / per_head, ratio = value_heads / key_heads;
  const std::int64_t source =
      to_tiled ? head % key_heads * ratio + head / key_heads : head % ratio * key_heads + head / ratio;
  return first + source * per_head + (place - first) % per_head;
}

void MatrixRows::read_in_source_order(std::int64_t first, std::int64_t count, float* out_values) const {
  for (const Run& run : runs) {
    const std::int64_t part = std::min(count, run.count - first);
    if (first < run.count && part > 0) {
      run.matrix.dequantize(run.first + first, part, out_values);
      out_values += part * in;
      count -= part;
      first = 0;
    } else {
      first -= run.count;
    }
    if (count == 0) return;
  }
  CHECK(count == 0, "{}: {} rows too many", name, count);
}

void MatrixRows::read(std::int64_t first, std::int64_t count, float* out_values) const {
  std::int64_t end = 0;
  for (std::int64_t row = 0; row < count; row = end) {
    const std::int64_t source = row_order ? row_order->source_of(first + row) : first + row;
    end = row_order ? row + 1 : count;
    while (end < count && row_order->source_of(first + end) == source + end - row) ++end;
    read_in_source_order(source, end - row, out_values + row * in);
  }
  for (std::int64_t i = 0; i < count * in; ++i) {
    if (std::isfinite(out_values[i])) continue;
    const StoredTensor& values = runs.front().matrix.values();
    fail<LoadError>("{}: tensor \"{}\" (as {}) holds {} in row {}", values.source, values.name, name, out_values[i],
                    first + i / in);
  }
  if (!column_order) return;
  std::vector<float> row(static_cast<std::size_t>(in));
  for (std::int64_t r = 0; r < count; ++r) {
    float* values = out_values + r * in;
    std::copy_n(values, in, row.data());
    for (std::int64_t i = 0; i < in; ++i) values[i] = row[static_cast<std::size_t>(column_order->source_of(i))];
  }
}

std::uint64_t MatrixRows::stored_bytes() const {
  double bytes = 0.0;
  for (const Run& run : runs) {
    const StoredTensor& values = run.matrix.values();
    const bool whole_tensor = values.block_type != nullptr || is_plain_float(values.dtype);
    const std::int64_t rows = whole_tensor ? values.elements() / in : run.matrix.out;
    for (const StoredPart& part : run.matrix.parts) {
      bytes +=
          static_cast<double>(part.tensor->byte_size()) * static_cast<double>(run.count) / static_cast<double>(rows);
    }
  }
  return static_cast<std::uint64_t>(std::llround(bytes));
}

std::optional<DType> MatrixRows::plain_type() const {
  const StoredTensor& values = runs.front().matrix.values();
  if (values.block_type != nullptr || !is_plain_float(values.dtype)) return std::nullopt;
  return values.dtype;
}

QuantizeSource list_source(const Json& config, const Checkpoint& checkpoint, const SourceView& view) {
  const Qwen3_5Config parsed = parse_qwen3_5_config(config);
  MatrixLister lister;
  audit_model(config, checkpoint, lister);
  const Names names(lister.matrices());
  const auto named = [&](const std::string& name) { return view.published_names ? names.published(name) : name; };

  Collector collector(parsed, checkpoint, view);
  std::unordered_set<std::string> used;
  for (const ListedMatrix& listed : lister.matrices()) {
    for (const StoredPart& part : listed.source.parts) used.insert(part.stored().name);
    collector.add(listed, named(listed.name()));
  }
  QuantizeSource source{collector.take(), {}, lister.take_slices()};
  for (const std::string& name : checkpoint.names()) {
    if (used.contains(name)) continue;
    source.others.push_back({checkpoint.find(name), named(name), Names::is_vision(name)});
  }
  return source;
}

bool is_as_stored(const OtherTensor& tensor, const Qwen3_5Config& config, const Checkpoint& checkpoint,
                  const SourceView& view) {
  const Conventions from = checkpoint.conventions(), &to = view.conventions;
  const Meaning meaning = meaning_of(tensor);
  if (meaning == Meaning::norm && from.norms_hold_scale != to.norms_hold_scale) return false;
  if (meaning == Meaning::decay && from.decay_ready != to.decay_ready) return false;
  return tensor.is_vision || !reordering(tensor.name, config, checkpoint, view, false);
}

std::vector<float> other_values(const OtherTensor& tensor, const Qwen3_5Config& config, const Checkpoint& checkpoint,
                                const SourceView& view) {
  const StoredTensor& stored = *tensor.stored;
  const auto count = static_cast<std::size_t>(stored.elements());
  std::vector<float> values(count);
  to_float(stored.dtype, checkpoint.bytes(stored).data(), count, values.data());
  const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  if (bad != values.end()) {
    fail<LoadError>("{}: tensor \"{}\" holds {} at element {}", stored.source, stored.name, *bad, bad - values.begin());
  }
  const Conventions from = checkpoint.conventions(), &to = view.conventions;
  const Meaning meaning = meaning_of(tensor);
  for (float& value : values) {
    if (meaning == Meaning::norm) value += (to.norms_hold_scale ? 1.0f : 0.0f) - (from.norms_hold_scale ? 1.0f : 0.0f);
    if (meaning == Meaning::decay && from.decay_ready && !to.decay_ready) value = checked_log(value, stored);
    if (meaning == Meaning::decay && !from.decay_ready && to.decay_ready) value = -std::exp(value);
  }
  const auto order = tensor.is_vision ? std::nullopt : reordering(tensor.name, config, checkpoint, view, false);
  if (!order) return values;
  const auto width = static_cast<std::int64_t>(count) / stored.shape.front();
  std::vector<float> ordered(count);
  for (std::int64_t row = 0; row < stored.shape.front(); ++row) {
    std::copy_n(values.begin() + order->source_of(row) * width, width, ordered.begin() + row * width);
  }
  return ordered;
}

}  // namespace sluice
