#include "weights/formats/listed_modules.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <re2/re2.h>
#include <re2/set.h>

namespace sluice {

namespace {

/// What stands before the names of layers, the longest first.
constexpr std::array<std::string_view, 5> prefixes{"model.language_model.", "language_model.model.", "language_model.",
                                                   "model.", ""};

struct Fusion {
  std::string_view whole;
  std::array<std::string_view, 3> parts;
};
constexpr std::array fusions{
    Fusion{"gate_up_proj", {"gate_proj", "up_proj"}}, Fusion{"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
    Fusion{"in_proj_qkvz", {"in_proj_qkv", "in_proj_z"}}, Fusion{"in_proj_ba", {"in_proj_b", "in_proj_a"}}};

/// Modules that quantizers leave alone unasked: tables, heads, norms, convolutions and routers.
constexpr std::array<std::string_view, 5> never_quantized{"embed_tokens", "lm_head", "pos_embed", "conv1d", "gate"};

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : prefixes) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::string with_last_part(std::string_view name, std::string_view part) {
  return fmt::format("{}{}", name.substr(0, name.size() - last_part(name).size()), part);
}

/// An entry with `*` and `?` as an expression for the whole name.
std::string expression_of(std::string_view wildcard) {
  std::string expression;
  for (const char c : wildcard) {
    if (c == '*') {
      expression += ".*";
    } else if (c == '?') {
      expression += '.';
    } else {
      expression += RE2::QuoteMeta(re2::StringPiece(&c, 1));
    }
  }
  return expression + "$";
}

/// Without messages of its own: what it does not understand is reported with the differences.
RE2::Options quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

/// Names and patterns of modules. Patterns begin where names do, as with Python's re.match.
class ModuleList {
 public:
  bool empty() const { return names_.empty() && patterns_ == 0; }
  std::vector<std::string> take_not_understood() { return std::move(not_understood_); }

  void add_name(std::string_view name) { names_.emplace(without_prefix(name)); }
  void add_regex(std::string_view entry, std::string_view text) {
    const bool known = set_.Add(re2::StringPiece(text.data(), text.size()), nullptr) >= 0;
    if (known) ++patterns_;
    if (!known) not_understood_.emplace_back(entry.substr(0, 80));
  }
  /// "re:" and an expression, a name with wildcards, or a name.
  void add(std::string_view entry) {
    if (entry.starts_with("re:")) return add_regex(entry, entry.substr(3));
    if (entry.find_first_of("*?") != std::string_view::npos) return add_regex(entry, expression_of(entry));
    add_name(entry);
  }
  /// After the last entry.
  void compile() {
    if (patterns_ > 0 && !set_.Compile()) give_patterns_up();
  }

  /// Whether it holds the module, one above it, the matrix that it is fused into, or all parts that it is fused of.
  bool holds(std::string_view module) {
    if (holds_itself(module)) return true;
    for (const Fusion& fusion : fusions) {
      const auto is_held = [&](std::string_view part) {
        return part.empty() || holds_itself(with_last_part(module, part));
      };
      if (last_part(module) == fusion.whole) return std::ranges::all_of(fusion.parts, is_held);
      const bool is_part = std::ranges::find(fusion.parts, last_part(module)) != fusion.parts.end();
      if (is_part && holds_itself(with_last_part(module, fusion.whole))) return true;
    }
    return false;
  }

 private:
  void give_patterns_up() {
    patterns_ = 0;
    not_understood_.emplace_back("(patterns that take too much memory)");
  }

  bool holds_itself(std::string_view module) {
    const std::string_view name = without_prefix(module);
    for (std::size_t begin = 0; begin < name.size();) {  // every run of its components
      for (std::size_t end = name.find('.', begin);; end = name.find('.', end + 1)) {
        if (names_.contains(std::string(name.substr(begin, end == std::string_view::npos ? end : end - begin))))
          return true;
        if (end == std::string_view::npos) break;
      }
      const std::size_t dot = name.find('.', begin);
      begin = dot == std::string_view::npos ? name.size() : dot + 1;
    }
    if (matches(std::string(module))) return true;
    return std::ranges::any_of(prefixes, [&](std::string_view prefix) {  // as another writer would name it
      return matches(fmt::format("{}{}", prefix, name));
    });
  }

  bool matches(const std::string& spelling) {
    if (patterns_ == 0) return false;
    RE2::Set::ErrorInfo error{};
    if (set_.Match(spelling, nullptr, &error)) return true;
    if (error.kind == RE2::Set::kOutOfMemory) give_patterns_up();
    return false;
  }

  std::unordered_set<std::string> names_;
  RE2::Set set_{quiet(), RE2::ANCHOR_START};
  std::size_t patterns_ = 0;
  std::vector<std::string> not_understood_;
};

/// Calls `take` with every string below a value, a few levels deep.
template <class Take>
void for_each_string(const Json& value, Take&& take, int depth = 0) {
  if (value.is_string()) return take(value.get<std::string>());
  if (!value.is_array() || depth > 4) return;
  for (const Json& element : value) for_each_string(element, take, depth + 1);
}

/// What a config says of modules.
class Rules {
 public:
  explicit Rules(const Json& config) {
    for (const char* key : {"ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules", "exclude"}) {
      for_each_string(member(config, key), [&](const std::string& entry) { left_out_.add(entry); });
    }
    for_each_string(member(config, "modules_in_block_to_quantize"),
                    [&](const std::string& entry) { chosen_.add(entry); });
    const Json& dynamic = member(config, "dynamic");
    for (auto entry = dynamic.begin(); dynamic.is_object() && entry != dynamic.end(); ++entry) {
      if (entry.key().starts_with("-:")) left_out_.add_regex(entry.key(), std::string_view(entry.key()).substr(2));
    }
    const Json& layers = member(config, "quantized_layers");
    for (auto entry = layers.begin(); layers.is_object() && entry != layers.end(); ++entry) chosen_.add(entry.key());
    read_targets(member(config, "config_groups"));
    const Json& method = member(config, "quant_method");
    left_out_.compile();
    chosen_.compile();
    in_layers_only_ = method == "gptq" || method == "awq" || method == "auto-round";
  }

  bool quantizes(std::string_view module) {
    if (left_out_.holds(module)) return false;
    return chosen_.empty() || chosen_.holds(module);
  }
  /// Whether a module that the lists do not name is quantized at all.
  bool may_quantize(std::string_view module) const {
    if (std::ranges::find(never_quantized, last_part(module)) != never_quantized.end()) return false;
    return !in_layers_only_ || without_prefix(module).starts_with("layers.");
  }
  std::vector<std::string> not_understood() {
    std::vector<std::string> all = left_out_.take_not_understood();
    for (std::string& entry : chosen_.take_not_understood()) all.push_back(std::move(entry));
    return all;
  }

 private:
  static const Json& member(const Json& config, const char* key) {
    static const Json none;
    const auto found = config.find(key);
    return found == config.end() ? none : *found;
  }
  /// Kinds of modules ("Linear") choose all matrices.
  void read_targets(const Json& groups) {
    ModuleList named;
    bool all = false;
    for (auto group = groups.begin(); groups.is_object() && group != groups.end(); ++group) {
      if (!group->is_object()) continue;
      for_each_string(member(*group, "targets"), [&](const std::string& entry) {
        const bool kind = entry.find_first_of(".:*_") == std::string::npos && entry[0] >= 'A' && entry[0] <= 'Z';
        if (kind) all = true;
        if (!kind) named.add(entry);
      });
    }
    if (!all && !named.empty()) chosen_ = std::move(named);
  }

  ModuleList left_out_, chosen_;
  bool in_layers_only_ = false;
};

/// The module whose values a tensor holds; empty if it is something else, a vector or a convolution.
std::string module_of(const StoredTensor& tensor) {
  const std::string& name = tensor.name;
  if (tensor.shape.size() == 2) {
    for (const std::string_view suffix : {".weight", ".weight_packed", ".qweight"}) {
      if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
    }
  }
  if (tensor.shape.size() < 3 || name.find(".experts.") == std::string::npos) return "";
  for (const std::string_view suffix :
       {"_proj", "_proj.weight", "_proj_packed", "_proj.weight_packed", "_proj_blocks", "_proj_qweight"}) {
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size() + 5);
  }
  return "";
}

}  // namespace

QuantizationDifferences quantization_differences(const Json& quantization_config, const Checkpoint& checkpoint) {
  QuantizationDifferences differences;
  if (!quantization_config.is_object()) return differences;
  Rules rules(quantization_config);
  std::map<std::string, ModuleDifference> found;
  for (const std::string& name : checkpoint.names()) {
    const StoredTensor& tensor = *checkpoint.find(name);
    const std::string module = module_of(tensor);
    if (module.empty()) continue;
    const bool quantized = tensor.block_type != nullptr || !is_plain_float(tensor.dtype);
    if (!quantized && !rules.may_quantize(module)) continue;
    if (rules.quantizes(module) == quantized) continue;
    const std::string modules = without_numbers(module);
    ModuleDifference& difference = found[fmt::format("{} {}", modules, tensor.type_name())];
    if (difference.count++ == 0) difference = {modules, 1, !quantized, std::string(tensor.type_name())};
  }
  for (auto& [key, difference] : found) differences.modules.push_back(std::move(difference));
  differences.not_understood = rules.not_understood();
  return differences;
}

std::string QuantizationDifferences::summary() const {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < modules.size() && i < most; ++i) {
    text +=
        fmt::format("{}{} ({}) is stored as {} and listed as {}", i == 0 ? "" : ", ", modules[i].modules,
                    modules[i].count, modules[i].stored, modules[i].listed_quantized ? "quantized" : "not quantized");
  }
  if (modules.size() > most) text += fmt::format(", and {} more", modules.size() - most);
  for (std::size_t i = 0; i < not_understood.size() && i < most; ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? (text.empty() ? "not understood: " : "; not understood: ") : ", ",
                        not_understood[i]);
  }
  if (not_understood.size() > most) text += fmt::format(", and {} more", not_understood.size() - most);
  return text;
}

}  // namespace sluice
