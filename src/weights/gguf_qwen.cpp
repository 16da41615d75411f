#include "weights/gguf_qwen.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "weights/gguf_block_name.h"

namespace sluice {

namespace {

constexpr std::string_view stored_block = "blk.", published_layer = "model.language_model.layers.",
                           published_draft = "mtp.layers.";

/// What a published tensor's shape has that the file's may lack: ggml drops dimensions of 1.
enum class Form : std::uint8_t { vector, matrix, convolution, experts };

struct Renaming {
  std::string_view stored, published;
  Form form = Form::vector;
};

constexpr Renaming of_model[] = {
    {"token_embd.weight", "model.language_model.embed_tokens.weight", Form::matrix},
    {"output_norm.weight", "model.language_model.norm.weight"},
    {"output.weight", "lm_head.weight", Form::matrix},
};

constexpr Renaming of_layer[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", Form::matrix},
    {"attn_k.weight", "self_attn.k_proj.weight", Form::matrix},
    {"attn_v.weight", "self_attn.v_proj.weight", Form::matrix},
    {"attn_output.weight", "self_attn.o_proj.weight", Form::matrix},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_qkv.weight", "linear_attn.in_proj_qkv.weight", Form::matrix},
    {"attn_gate.weight", "linear_attn.in_proj_z.weight", Form::matrix},
    {"ssm_beta.weight", "linear_attn.in_proj_b.weight", Form::matrix},
    {"ssm_alpha.weight", "linear_attn.in_proj_a.weight", Form::matrix},
    {"ssm_conv1d.weight", "linear_attn.conv1d.weight", Form::convolution},
    {"ssm_a", "linear_attn.A_log"},
    {"ssm_dt.bias", "linear_attn.dt_bias"},
    {"ssm_dt", "linear_attn.dt_bias"},
    {"ssm_norm.weight", "linear_attn.norm.weight"},
    {"ssm_out.weight", "linear_attn.out_proj.weight", Form::matrix},
    {"ffn_gate.weight", "mlp.gate_proj.weight", Form::matrix},
    {"ffn_up.weight", "mlp.up_proj.weight", Form::matrix},
    {"ffn_down.weight", "mlp.down_proj.weight", Form::matrix},
    {"ffn_gate_inp.weight", "mlp.gate.weight", Form::matrix},
    {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj", Form::experts},
    {"ffn_gate_exps.weight", "mlp.experts.gate_proj", Form::experts},
    {"ffn_up_exps.weight", "mlp.experts.up_proj", Form::experts},
    {"ffn_down_exps.weight", "mlp.experts.down_proj", Form::experts},
    {"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", Form::matrix},
    {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight", Form::matrix},
    {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight", Form::matrix},
    {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight", Form::matrix},
};

constexpr Renaming of_draft_head[] = {
    {"nextn.eh_proj.weight", "mtp.fc.weight", Form::matrix},
    {"nextn.enorm.weight", "mtp.pre_fc_norm_embedding.weight"},
    {"nextn.hnorm.weight", "mtp.pre_fc_norm_hidden.weight"},
    {"nextn.shared_head_norm.weight", "mtp.norm.weight"},
};

struct LeftOut {
  std::string_view prefix, reason;
};
constexpr LeftOut left_out_of_model[] = {
    {"v.", "no part of the text"},
    {"mm.", "no part of the text"},
    {"mtp.", "a draft head beside the blocks, of which it is not known whether its norms hold 1 + w"},
    {"rope_freqs.weight", "frequencies follow from the config"},
};
constexpr LeftOut left_out_of_draft_head[] = {
    {"nextn.embed_tokens.weight", "the draft head shares the model's embedding"},
    {"nextn.shared_head_head.weight", "the draft head shares the model's head"},
};

template <std::size_t N>
const Renaming* find_in(const Renaming (&table)[N], std::string_view name) {
  const auto* found = std::ranges::find(table, name, &Renaming::stored);
  return found == std::end(table) ? nullptr : found;
}

template <std::size_t N>
const LeftOut* find_in(const LeftOut (&table)[N], std::string_view name) {
  const auto* found = std::ranges::find_if(table, [name](const LeftOut& row) { return name.starts_with(row.prefix); });
  return found == std::end(table) ? nullptr : found;
}

template <std::size_t N>
const Renaming* find_published(const Renaming (&table)[N], std::string_view name) {
  const auto* found = std::ranges::find(table, name, &Renaming::published);
  return found == std::end(table) ? nullptr : found;
}

std::vector<std::int64_t> published_shape(std::vector<std::int64_t> shape, Form form) {
  const std::size_t rank = form == Form::experts ? 3 : form == Form::vector ? 1 : 2;
  while (shape.size() < rank) shape.insert(shape.begin(), 1);
  if (form == Form::convolution && shape.size() == 2) shape.insert(shape.begin() + 1, 1);
  return shape;
}

/// The published name and its form; the name itself where the family has no such tensor.
struct Published {
  std::string name;
  std::optional<Form> form;
};

Published published(const std::string& stored, const GgufQwenBlocks& blocks) {
  const auto [block, rest] = parse_gguf_block_name(stored, stored_block);
  if (block < 0) {
    const Renaming* row = find_in(of_model, stored);
    return row == nullptr ? Published{stored, std::nullopt} : Published{std::string(row->published), row->form};
  }
  if (block == blocks.layers && blocks.drafts > 0) {
    if (const Renaming* row = find_in(of_draft_head, rest)) return {std::string(row->published), row->form};
  }
  const Renaming* row = block < blocks.layers + blocks.drafts ? find_in(of_layer, rest) : nullptr;
  if (row == nullptr) return {stored, std::nullopt};
  const bool in_model = block < blocks.layers;
  return {fmt::format("{}{}.{}", in_model ? published_layer : published_draft, in_model ? block : block - blocks.layers,
                      row->published),
          row->form};
}

const LeftOut* left_out_row(std::string_view stored, const GgufQwenBlocks& blocks) {
  const auto [block, rest] = parse_gguf_block_name(stored, stored_block);
  if (block < 0) return find_in(left_out_of_model, stored);
  return block >= blocks.layers ? find_in(left_out_of_draft_head, rest) : nullptr;
}

}  // namespace

std::optional<std::string> gguf_qwen_name(std::string_view published, const GgufQwenBlocks& blocks) {
  if (const Renaming* row = find_published(of_model, published)) return std::string(row->stored);
  if (const Renaming* row = find_published(of_draft_head, published); row != nullptr && blocks.drafts > 0) {
    return fmt::format("{}{}.{}", stored_block, blocks.layers, row->stored);
  }
  struct Run {
    std::string_view prefix;
    std::int64_t first, count;  // blocks
  };
  for (const Run& run : {Run{published_layer, 0, blocks.layers}, Run{published_draft, blocks.layers, blocks.drafts}}) {
    const auto [index, rest] = parse_gguf_block_name(published, run.prefix);
    const Renaming* row = index >= 0 && index < run.count ? find_published(of_layer, rest) : nullptr;
    if (row != nullptr) return fmt::format("{}{}.{}", stored_block, run.first + index, row->stored);
  }
  return std::nullopt;
}

GgufQwenCheckpoint::GgufQwenCheckpoint(std::shared_ptr<const GgufCheckpoint> file) : file_(std::move(file)) {
  const GgufMetadata& metadata = file_->metadata();
  const GgufQwenBlocks blocks = gguf_qwen_blocks(metadata);
  const auto key = [&](std::string_view name) { return fmt::format("{}.ssm.{}", blocks.architecture, name); };
  conventions_.norms_hold_scale = conventions_.decay_ready = true;
  conventions_.value_heads_tiled = metadata.boolean(key("v_head_reordered")).value_or(true) &&
                                   metadata.integer(key("time_step_rank")) != metadata.integer(key("group_count"));
  for (const std::string& name : file_->names()) {
    if (const LeftOut* row = left_out_row(name, blocks)) {
      leave_out(fmt::format("{}{}", row->prefix, row->prefix.ends_with('.') ? "*" : ""), row->reason);
      continue;
    }
    const StoredTensor* stored = file_->find(name);
    const Published target = published(name, blocks);
    StoredTensor presented = *stored;
    presented.name = target.name;
    if (target.form) presented.shape = published_shape(std::move(presented.shape), *target.form);
    total_ += presented.byte_size();
    const auto [other, added] = entries_.emplace(target.name, Entry{std::move(presented), stored});
    if (!added) {
      fail<LoadError>("{}: tensors \"{}\" and \"{}\" both mean {}", stored->source, other->second.stored->name, name,
                      target.name);
    }
  }
}

void GgufQwenCheckpoint::leave_out(std::string group, std::string_view reason) {
  auto& [count, why] = left_out_[std::move(group)];
  ++count;
  why = reason;
}

std::vector<std::string> GgufQwenCheckpoint::left_out() const {
  std::vector<std::string> lines;
  for (const auto& [group, entry] : left_out_) {
    const auto& [count, reason] = entry;
    lines.push_back(fmt::format("{} ({} tensor{}): {}", group, count, count == 1 ? "" : "s", reason));
  }
  return lines;
}

const StoredTensor* GgufQwenCheckpoint::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.presented;
}

std::vector<std::string> GgufQwenCheckpoint::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  return all;
}

const StoredTensor& GgufQwenCheckpoint::stored(const StoredTensor& presented) const {
  const auto found = entries_.find(presented.name);
  CHECK(found != entries_.end(), "{} is no tensor of {}", presented.name, describe());
  return *found->second.stored;
}

std::span<const std::byte> GgufQwenCheckpoint::bytes(const StoredTensor& tensor) const {
  return file_->bytes(stored(tensor));
}

void GgufQwenCheckpoint::release(const StoredTensor& tensor) const { file_->release(stored(tensor)); }

}  // namespace sluice
