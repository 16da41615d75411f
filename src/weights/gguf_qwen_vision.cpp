#include "weights/gguf_qwen_vision.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "weights/gguf_block_name.h"

namespace sluice {

namespace {

constexpr std::string_view projector = "qwen3vl_merger", published_prefix = "model.visual.";
constexpr std::string_view patch_slices[] = {"v.patch_embd.weight", "v.patch_embd.weight.1"};
constexpr std::string_view block_prefix = "v.blk.", whole_patches = "v.patch_embed.weight";
constexpr double norm_epsilon = 1e-6;

struct Renaming {
  std::string_view stored, published;  // without ".weight" and ".bias"
};
using Renamings = std::span<const Renaming>;

constexpr Renaming of_mmproj_tower[] = {{"v.patch_embd", "patch_embed.proj"},
                                        {"v.position_embd", "pos_embed"},
                                        {"v.post_ln", "merger.norm"},
                                        {"mm.0", "merger.linear_fc1"},
                                        {"mm.2", "merger.linear_fc2"}};
constexpr Renaming of_mmproj_block[] = {{"ln1", "norm1"},
                                        {"ln2", "norm2"},
                                        {"attn_qkv", "attn.qkv"},
                                        {"attn_out", "attn.proj"},
                                        {"ffn_up", "mlp.linear_fc1"},
                                        {"ffn_down", "mlp.linear_fc2"}};
constexpr Renaming of_bundled_tower[] = {{"v.patch_embed", "patch_embed.proj"},
                                         {"v.pos_embed", "pos_embed"},
                                         {"v.merger.norm", "merger.norm"},
                                         {"v.merger.linear_fc1", "merger.linear_fc1"},
                                         {"v.merger.linear_fc2", "merger.linear_fc2"}};
constexpr Renaming of_bundled_block[] = {{"norm1", "norm1"},
                                         {"norm2", "norm2"},
                                         {"attn_out", "attn.proj"},
                                         {"mlp.linear_fc1", "mlp.linear_fc1"},
                                         {"mlp.linear_fc2", "mlp.linear_fc2"}};

/// "mm.0.bias" as "merger.linear_fc1.bias"; empty for what the table does not have.
std::string renamed(Renamings table, std::string_view name) {
  for (const std::string_view kind : {".weight", ".bias"}) {
    if (!name.ends_with(kind)) continue;
    const auto row = std::ranges::find(table, name.substr(0, name.size() - kind.size()), &Renaming::stored);
    return row == table.end() ? "" : fmt::format("{}{}", row->published, kind);
  }
  return "";
}

std::string renamed(Renamings of_tower, Renamings of_block, std::string_view stored) {
  const auto [block, rest] = parse_gguf_block_name(stored, block_prefix);
  if (block < 0) return renamed(of_tower, stored);
  const std::string name = renamed(of_block, rest);
  return name.empty() ? "" : fmt::format("blocks.{}.{}", block, name);
}

std::string mmproj_name(std::string_view stored) { return renamed(of_mmproj_tower, of_mmproj_block, stored); }
std::string bundled_name(std::string_view stored) { return renamed(of_bundled_tower, of_bundled_block, stored); }

[[noreturn]] void fail_unknown(const StoredTensor& tensor) {
  const bool deepstack = tensor.name.find("deepstack") != std::string::npos;
  fail<LoadError>("{}: tensor \"{}\" {} is none of this family's picture tower{}; --mmproj none runs the text alone",
                  tensor.source, tensor.name, tensor.shape_text(), deepstack ? " (deepstack is not supported)" : "");
}

bool is_float(const StoredTensor& tensor) { return tensor.block_type == nullptr && is_plain_float(tensor.dtype); }

}  // namespace

std::unique_ptr<GgufQwenVision> GgufQwenVision::of_mmproj(std::shared_ptr<const GgufCheckpoint> file) {
  std::unique_ptr<GgufQwenVision> tower(new GgufQwenVision(std::move(file)));
  tower->keys_ = "clip.vision";
  tower->check_projector();
  for (const std::string& name : tower->file_->names()) {
    if (std::ranges::find(patch_slices, name) == std::end(patch_slices)) tower->add_renamed(name, mmproj_name);
  }
  tower->add_patch_slices();
  return tower;
}

std::unique_ptr<GgufQwenVision> GgufQwenVision::of_text(std::shared_ptr<const GgufCheckpoint> file) {
  if (file->find(whole_patches) == nullptr) return nullptr;
  std::unique_ptr<GgufQwenVision> tower(new GgufQwenVision(std::move(file)));
  tower->keys_ = fmt::format("{}.vision", tower->file_->metadata().string("general.architecture").value_or(""));
  for (const std::string& name : tower->file_->names()) {
    if (!name.starts_with("v.")) continue;
    const auto [block, rest] = parse_gguf_block_name(name, block_prefix);
    if (rest == "attn_q.weight") tower->add_joined_qkv(block);
    const bool of_qkv = rest.starts_with("attn_q.") || rest.starts_with("attn_k.") || rest.starts_with("attn_v.");
    if (!of_qkv) tower->add_renamed(name, bundled_name);
  }
  return tower;
}

void GgufQwenVision::check_projector() const {
  const GgufMetadata& metadata = file_->metadata();
  const auto architecture = metadata.string("general.architecture");
  if (architecture != "clip") {
    fail<LoadError>(
        "{}: \"general.architecture\" is \"{}\", expected clip, as files with a picture tower (mmproj) have",
        metadata.source(), architecture.value_or("missing"));
  }
  auto found = metadata.string("clip.vision.projector_type");
  if (!found) found = metadata.string("clip.projector_type");
  if (found != projector) {
    fail<LoadError>("{}: \"clip.projector_type\" is \"{}\", expected {}: it belongs to another family of models",
                    metadata.source(), found.value_or("missing"), projector);
  }
  if (!metadata.boolean("clip.has_vision_encoder").value_or(true)) {
    fail<LoadError>("{}: \"clip.has_vision_encoder\" is false: there is no picture tower", metadata.source());
  }
  if (metadata.boolean("clip.has_audio_encoder").value_or(false)) {
    fail<LoadError>("{}: \"clip.has_audio_encoder\" is true; sound is not supported", metadata.source());
  }
  if (!metadata.boolean("clip.use_gelu").value_or(true) || metadata.boolean("clip.use_silu").value_or(false)) {
    fail<LoadError>("{}: \"clip.use_gelu\" or \"clip.use_silu\" asks for another activation than GELU",
                    metadata.source());
  }
}

void GgufQwenVision::add(std::string_view published, std::vector<const StoredTensor*> parts,
                         std::vector<std::int64_t> shape, std::size_t chunk) {
  StoredTensor presented = *parts.front();
  presented.name = fmt::format("{}{}", published_prefix, published);
  presented.shape = std::move(shape);
  total_ += presented.byte_size();
  std::string name = presented.name;
  entries_.emplace(std::move(name), Entry{std::move(presented), std::move(parts), chunk});
}

void GgufQwenVision::add_renamed(const std::string& stored, std::string (*published_name)(std::string_view)) {
  const StoredTensor* tensor = file_->find(stored);
  const std::string published = published_name(stored);
  if (published.empty()) fail_unknown(*tensor);
  std::vector<std::int64_t> shape = tensor->shape;
  if (stored == whole_patches) {
    // [hidden x channels, 2, height, width]
    const std::int64_t channels = file_->metadata().integer(keys_ + ".num_channels").value_or(3);
    if (shape.size() != 4 || channels < 1 || shape[0] % channels != 0 || !is_float(*tensor)) {
      fail<LoadError>("{}: tensor \"{}\" is {} {}, expected float numbers [hidden x {} channels, 2, height, width]",
                      tensor->source, stored, tensor->type_name(), tensor->shape_text(), channels);
    }
    shape[0] /= channels;
    shape.insert(shape.begin() + 1, channels);
  }
  add(published, {tensor}, std::move(shape), 0);
}

std::vector<const StoredTensor*> GgufQwenVision::alike(const std::vector<std::string>& stored) const {
  std::vector<const StoredTensor*> parts;
  for (const std::string& name : stored) {
    const StoredTensor* part = file_->find(name);
    if (part == nullptr) {
      fail<LoadError>("{}: tensor \"{}\" is missing, which \"{}\" needs beside it", file_->describe(), name,
                      name == stored.front() ? stored.back() : stored.front());
    }
    parts.push_back(part);
  }
  const StoredTensor& first = *parts.front();
  for (const StoredTensor* part : parts) {
    if (part->shape == first.shape && part->dtype == first.dtype && part->block_type == first.block_type) continue;
    fail<LoadError>("{}: tensor \"{}\" is {} {}, expected {} {} as \"{}\"", part->source, part->name, part->type_name(),
                    part->shape_text(), first.type_name(), first.shape_text(), first.name);
  }
  return parts;
}

/// Two of [hidden, channels, height, width] become [hidden, channels, 2, height, width].
void GgufQwenVision::add_patch_slices() {
  const auto slices = alike({std::string(patch_slices[0]), std::string(patch_slices[1])});
  const StoredTensor& first = *slices.front();
  if (first.shape.size() != 4 || !is_float(first)) {
    fail<LoadError>("{}: tensor \"{}\" is {} {}, expected float numbers [hidden, channels, height, width]",
                    first.source, first.name, first.type_name(), first.shape_text());
  }
  const std::size_t plane = static_cast<std::size_t>(first.shape[2] * first.shape[3]) * sluice::size_of(first.dtype);
  std::vector<std::int64_t> shape = first.shape;
  shape.insert(shape.begin() + 2, 2);
  add("patch_embed.proj.weight", slices, std::move(shape), plane);
}

void GgufQwenVision::add_joined_qkv(std::int64_t block) {
  for (const char* kind : {"weight", "bias"}) {
    const auto name = [&](char part) { return fmt::format("{}{}.attn_{}.{}", block_prefix, block, part, kind); };
    auto parts = alike({name('q'), name('k'), name('v')});
    std::vector<std::int64_t> shape = parts.front()->shape;
    if (shape.empty()) fail_unknown(*parts.front());
    shape.front() *= 3;
    const auto whole = static_cast<std::size_t>(parts.front()->byte_size());
    add(fmt::format("blocks.{}.attn.qkv.{}", block, kind), std::move(parts), std::move(shape), whole);
  }
}

std::int64_t GgufQwenVision::size_of(std::string_view published, std::size_t axis) const {
  const StoredTensor* tensor = find(fmt::format("{}{}", published_prefix, published));
  if (tensor == nullptr || tensor->shape.size() <= axis) {
    fail<LoadError>("{}: the picture tower lacks {}, or it has too few dimensions", file_->describe(), published);
  }
  return tensor->shape[axis];
}

Json GgufQwenVision::config() const {
  const GgufMetadata& metadata = file_->metadata();
  const auto key = [this](std::string_view name) { return fmt::format("{}.{}", keys_, name); };
  const auto refuse = [&](std::string_view name, const std::string& why) {
    fail<LoadError>("{}: \"{}\" {}", metadata.source(), key(name), why);
  };
  const auto required = [&](std::string_view name) {
    const auto value = metadata.integer(key(name));
    if (!value) refuse(name, "is missing");
    return *value;
  };
  const double epsilon = metadata.number(key("attention.layer_norm_epsilon")).value_or(norm_epsilon);
  if (!(std::abs(epsilon - norm_epsilon) <= 1e-3 * norm_epsilon)) {
    refuse("attention.layer_norm_epsilon", fmt::format("is {}, expected {}", epsilon, norm_epsilon));
  }
  const auto flags = metadata.integers(key("is_deepstack_layers")).value_or(std::vector<std::int64_t>{});
  if (std::ranges::any_of(flags, [](std::int64_t layer) { return layer != 0; })) {
    refuse("is_deepstack_layers", "names layers; deepstack is not supported");
  }
  if (!metadata.integers(key("deepstack_visual_indexes")).value_or(std::vector<std::int64_t>{}).empty()) {
    refuse("deepstack_visual_indexes", "names layers; deepstack is not supported");
  }
  const std::int64_t patch = required("patch_size"), positions = size_of("pos_embed.weight", 0);
  if (const auto image = metadata.integer(key("image_size"))) {
    const double side = patch > 0 ? static_cast<double>(*image) / static_cast<double>(patch) : 0.0;
    if (side * side != static_cast<double>(positions)) {
      refuse("image_size", fmt::format("is {} with patches of {}, which does not fit the {} positions of the tower",
                                       *image, patch, positions));
    }
  }
  const auto stored = [&](std::string_view name, std::string_view published, std::size_t axis) {
    const auto value = metadata.integer(key(name));
    return value ? *value : size_of(published, axis);
  };
  return {{"depth", required("block_count")},
          {"hidden_size", required("embedding_length")},
          {"intermediate_size", stored("feed_forward_length", "blocks.0.mlp.linear_fc1.weight", 0)},
          {"num_heads", required("attention.head_count")},
          {"out_hidden_size", stored("projection_dim", "merger.linear_fc2.weight", 0)},
          {"in_channels", size_of("patch_embed.proj.weight", 1)},
          {"patch_size", patch},
          {"temporal_patch_size", size_of("patch_embed.proj.weight", 2)},
          {"spatial_merge_size", metadata.integer(key("spatial_merge_size")).value_or(2)},
          {"num_position_embeddings", positions}};
}

const StoredTensor* GgufQwenVision::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.presented;
}

std::vector<std::string> GgufQwenVision::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  return all;
}

const GgufQwenVision::Entry& GgufQwenVision::entry_of(const StoredTensor& presented) const {
  const auto found = entries_.find(presented.name);
  CHECK(found != entries_.end(), "{} is no tensor of {}", presented.name, describe());
  return found->second;
}

std::span<const std::byte> GgufQwenVision::bytes(const StoredTensor& tensor) const {
  const Entry& entry = entry_of(tensor);
  if (entry.parts.size() == 1) return file_->bytes(*entry.parts.front());
  const std::scoped_lock lock(mutex_);
  std::vector<std::byte>& joined = joined_[entry.presented.name];
  if (!joined.empty() || entry.chunk == 0) return joined;
  joined.resize(entry.presented.byte_size());
  for (std::size_t i = 0; i < entry.parts.size(); ++i) {
    const auto from = file_->bytes(*entry.parts[i]);
    for (std::size_t at = 0; at < from.size(); at += entry.chunk) {
      std::memcpy(joined.data() + at * entry.parts.size() + i * entry.chunk, from.data() + at, entry.chunk);
    }
  }
  return joined;
}

void GgufQwenVision::release(const StoredTensor& tensor) const {
  const Entry& entry = entry_of(tensor);
  for (const StoredTensor* part : entry.parts) file_->release(*part);
  const std::scoped_lock lock(mutex_);
  joined_.erase(entry.presented.name);
}

}  // namespace sluice
