#include "apps/quantize_plan.h"

#include <algorithm>
#include <charconv>

#include <fnmatch.h>

#include "apps/tensor_groups.h"
#include "base/error.h"
#include "weights/encode/forms.h"
#include "weights/formats/ggml.h"
#include "weights/formats/plain.h"

namespace sluice {

namespace {

constexpr QuantizeFormat all_formats[] = {
    {"q8_0", true, "q8_0", 7}, {"q4_k_m", true, "q4_k", 15}, {"q6_k", true, "q6_k", 18},
    {"fp8", false, "fp8", 0},  {"nvfp4", false, "nvfp4", 0}, {"int4", false, "int4", 0},
};

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [name](std::string_view end) { return name.ends_with(end); });
}

/// Matrices that decide much and weigh little.
bool is_small(std::string_view name) {
  return ends_with_any(name, {"linear_attn.in_proj_a", "linear_attn.in_proj_b", "mlp.gate", "mlp.shared_expert_gate"});
}

bool is_draft_head(std::string_view name) { return name.find("mtp.") != std::string_view::npos; }
bool joins_draft_head(std::string_view name) { return name.ends_with("mtp.fc"); }
bool is_embedding(std::string_view name) { return name.ends_with("embed_tokens"); }
bool is_head(std::string_view name) { return name.ends_with("lm_head"); }

/// "model.visual.blocks.3.norm1.bias" as "model.visual.*".
std::string vision_group(std::string_view name) {
  return fmt::format("{}.*", name.substr(0, name.find('.', name.find("vis"))));
}

/// Layers to which llama.cpp's mixes give more bits: the first and last eighth, and every third between.
bool gets_more_bits(std::int64_t block, std::int64_t blocks) {
  return block < blocks / 8 || block >= 7 * blocks / 8 || (block - blocks / 8) % 3 == 2;
}

bool fits_file(const Encoder& encoder, bool is_gguf) {
  return encoder.format == &plain_format || (encoder.format == &ggml_format) == is_gguf;
}

std::string names_of_encoders(bool is_gguf) {
  std::vector<std::string_view> names;
  for (const Encoder* encoder : encoders()) {
    if (fits_file(*encoder, is_gguf)) names.push_back(encoder->name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

const Encoder& QuantizeFormat::main_encoder() const {
  const Encoder* found = find_encoder(encoder);
  CHECK(found != nullptr, "{}", encoder);
  return *found;
}

const QuantizeFormat& find_quantize_format(const std::string& name) {
  const auto* found = std::ranges::find(all_formats, name, &QuantizeFormat::name);
  if (found != std::end(all_formats)) return *found;
  std::vector<std::string_view> names;
  for (const QuantizeFormat& format : all_formats) names.push_back(format.name);
  fail<UsageError>("--format: \"{}\" is unknown, expected {}", name, fmt::join(names, ", "));
}

bool KeepRule::matches(std::string_view name) const {
  for (std::size_t begin = 0; begin < name.size();) {
    if (fnmatch(pattern.c_str(), std::string(name.substr(begin)).c_str(), 0) == 0) return true;
    const std::size_t dot = name.find('.', begin);
    if (dot == std::string_view::npos) return false;
    begin = dot + 1;
  }
  return false;
}

std::vector<KeepRule> parse_keep_rules(const std::vector<std::string>& texts, const QuantizeFormat& format) {
  std::vector<KeepRule> rules;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      fail<UsageError>("--keep: \"{}\" is not NAME=FORMAT, as in lm_head=bf16", text);
    }
    const Encoder* encoder = find_encoder(text.substr(equals + 1));
    if (encoder == nullptr || !fits_file(*encoder, format.is_gguf)) {
      fail<UsageError>("--keep {}: \"{}\" is no form of matrices in {}, expected {}", text, text.substr(equals + 1),
                       format.is_gguf ? "GGUF files" : "safetensors files", names_of_encoders(format.is_gguf));
    }
    rules.push_back({text, text.substr(0, equals), encoder});
  }
  return rules;
}

QuantizePlanner::QuantizePlanner(const QuantizeFormat& format, const Qwen3_5Config& config, GgufQwenBlocks blocks,
                                 std::vector<KeepRule> rules)
    : format_(format),
      config_(config),
      blocks_(std::move(blocks)),
      rules_(std::move(rules)),
      matched_(rules_.size(), false) {}

void QuantizePlanner::note(std::string_view name, std::string reason) {
  ++notes_[{std::move(reason), without_numbers(name)}];
}

std::int64_t QuantizePlanner::block_of(std::string_view name) const {
  constexpr std::string_view layers = "layers.";
  const std::size_t at = name.find(layers);
  std::int64_t index = 0;
  if (at == std::string_view::npos) return index;
  std::from_chars(name.data() + at + layers.size(), name.data() + name.size(), index);
  return is_draft_head(name) ? blocks_.layers + index : index;
}

const Encoder& QuantizePlanner::kept(const MatrixRows& matrix) const {
  return plain_encoder(matrix.plain_type().value_or(DType::bf16));
}

const Encoder& QuantizePlanner::choose_for_gguf(const MatrixRows& matrix) const {
  const std::string_view name = matrix.name;
  if (is_small(name)) return f32_encoder;
  if (joins_draft_head(name)) return kept(matrix);
  if (&format_.main_encoder() != &q4_k_encoder) return format_.main_encoder();
  if (is_head(name) || (is_embedding(name) && config_.tie_word_embeddings)) return q6_k_encoder;
  const bool matters = ends_with_any(name, {"v_proj", "in_proj_qkv", "down_proj"});
  return matters && gets_more_bits(block_of(name), blocks_.layers + blocks_.drafts) ? q6_k_encoder : q4_k_encoder;
}

const Encoder& QuantizePlanner::choose_by_default(const MatrixRows& matrix) {
  const std::string_view name = matrix.name;
  const bool stays = !format_.is_gguf && (is_small(name) || joins_draft_head(name) || is_embedding(name) ||
                                          is_head(name) || (is_draft_head(name) && format_.name != "fp8"));
  const Encoder& wanted = stays ? kept(matrix) : format_.is_gguf ? choose_for_gguf(matrix) : format_.main_encoder();
  if (wanted.fits(matrix.in)) return wanted;
  const Encoder& instead = format_.is_gguf && q8_0_encoder.fits(matrix.in) ? q8_0_encoder : kept(matrix);
  note(name, fmt::format("rows of {} are no multiple of {}, so not {} but {}", matrix.in, wanted.column_multiple,
                         wanted.name, instead.name));
  return instead;
}

const Encoder& QuantizePlanner::choose(const MatrixRows& matrix) {
  const Encoder* chosen = nullptr;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (!rules_[i].matches(matrix.name)) continue;
    matched_[i] = true;
    chosen = rules_[i].encoder;
    if (chosen->fits(matrix.in)) continue;
    fail<UsageError>("--keep {}: {} has rows of {}, no multiple of {}", rules_[i].text, matrix.name, matrix.in,
                     chosen->column_multiple);
  }
  return chosen != nullptr ? *chosen : choose_by_default(matrix);
}

void QuantizePlanner::add_matrix(QuantizePlan& plan, const MatrixRows& matrix) {
  const Encoder& encoder = choose(matrix);
  PlannedItem& item = plan.items.emplace_back();
  item.matrix = &matrix;
  item.encoder = &encoder;
  item.parts = encoder.parts(matrix.out, matrix.in);
  for (const EncodedPart& part : item.parts) {
    StoredTensor& tensor = plan.tensors.emplace_back(part.tensor);
    const std::string published = fmt::format("{}.{}", matrix.name, part.tensor.name);
    tensor.name = published;
    if (!format_.is_gguf) continue;
    // Fused experts have no ".weight" where they are published.
    const auto name = gguf_qwen_name(matrix.experts > 0 ? matrix.name : published, blocks_);
    if (!name) fail<LoadError>("tensor \"{}\" has no place in a GGUF file of this architecture", published);
    tensor.name = *name;
    if (matrix.experts > 0) tensor.shape = {matrix.experts, matrix.out / matrix.experts, matrix.in};
  }
}

void QuantizePlanner::add_other(QuantizePlan& plan, const OtherTensor& tensor, bool as_stored) {
  const auto leave_out = [&](const char* why) { note(tensor.name, fmt::format("left out: {}", why)); };
  StoredTensor written = *tensor.stored;
  written.name = tensor.name;
  if (format_.is_gguf) {
    if (tensor.is_vision) return note(vision_group(tensor.name), "left out: pictures have a GGUF file of their own");
    if (is_head(tensor.name.substr(0, tensor.name.rfind('.')))) return leave_out("tied to the embedding");
    const auto name = gguf_qwen_name(tensor.name, blocks_);
    if (!name || !is_plain_float(written.dtype))
      return leave_out("GGUF files of this architecture have no such tensor");
    written.name = *name;
    std::erase(written.shape, 1);
    if (written.shape.empty()) written.shape = {1};
    as_stored = false;
  }
  if (!as_stored) written.dtype = DType::f32;
  plan.tensors.push_back(std::move(written));
  PlannedItem& item = plan.items.emplace_back();
  item.other = &tensor;
  item.as_stored = as_stored;
}

void QuantizePlanner::check_rules() const {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (matched_[i]) continue;
    fail<UsageError>("--keep {}: no matrix of the model has a name like that; `sluice inspect` lists them",
                     rules_[i].text);
  }
}

QuantizePlan QuantizePlanner::plan(const QuantizeSource& source, const Checkpoint& checkpoint, const SourceView& view) {
  QuantizePlan plan;
  for (const MatrixRows& matrix : source.matrices) add_matrix(plan, matrix);
  for (const OtherTensor& tensor : source.others) {
    add_other(plan, tensor, is_as_stored(tensor, config_, checkpoint, view));
  }
  check_rules();
  for (const auto& [what, count] : notes_) {
    plan.notes.push_back(fmt::format("{} ({} tensor{}): {}", what.second, count, count == 1 ? "" : "s", what.first));
  }
  return plan;
}

}  // namespace sluice
