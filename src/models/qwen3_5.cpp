#include "models/qwen3_5.h"

#include <algorithm>

#include "base/error.h"
#include "models/qwen3_5_parts.h"
#include "models/qwen3_5_rope.h"
#include "models/qwen_vision.h"

namespace sluice {

namespace {

bool same_bytes(const Checkpoint& checkpoint, const StoredTensor& a, const StoredTensor& b) {
  const auto x = checkpoint.bytes(a);
  const auto y = checkpoint.bytes(b);
  return a.dtype == b.dtype && std::equal(x.begin(), x.end(), y.begin(), y.end());
}

}  // namespace

Qwen3_5::Qwen3_5(const Qwen3_5Config& config, const WeightScope& root) : config_(config) {
  const WeightScope text = require_text(root);
  load_head(root, text);
  load_layers(text);
  final_norm_ = load_norm(text, "norm.weight", config_.hidden_size);

  const RopeTable table = make_rope_table(config_.rope, config_.rotary_frequencies());
  rope_ = {root.placer().place_vector(table.inverse_frequencies, {config_.rotary_frequencies()}),
           root.placer().place_indices(table.axes), table.scale};

  const auto mtp = find_part(root, draft_part);
  if (mtp && config_.mtp_layers.value_or(1) == 1) {
    mtp_.emplace(*mtp, config_);
  } else if (mtp) {
    mtp->skip("", "mtp_num_hidden_layers is 0");
  }
  load_vision(root);
  root.finish();

  info_ = {config_.architecture, config_.vocab_size, config_.hidden_size, config_.max_context(),
           config_.stop_tokens,  mtp_.has_value(),   config_.image_token, config_.video_token};
}

void Qwen3_5::load_head(const WeightScope& root, const WeightScope& text) {
  const auto stored_head = find_part(root, head_part);
  const Checkpoint& checkpoint = root.checkpoint();
  if (!config_.tie_word_embeddings) {
    const WeightScope scope = stored_head.value_or(root);
    head_ = scope.matrix("lm_head", config_.vocab_size, config_.hidden_size);
    embedding_ = text.matrix("embed_tokens", config_.vocab_size, config_.hidden_size);
    return;
  }
  if (stored_head) {
    const StoredTensor* head =
        checkpoint.find(stored_head->prefix().empty() ? "lm_head.weight" : stored_head->prefix() + ".lm_head.weight");
    const StoredTensor* embedding = checkpoint.find(text.prefix() + ".embed_tokens.weight");
    if (head == nullptr || embedding == nullptr || !same_bytes(checkpoint, *head, *embedding)) {
      fail<LoadError>(
          "{}: config.json has tie_word_embeddings true, but lm_head.weight differs from embed_tokens.weight",
          checkpoint.describe());
    }
    stored_head->skip("lm_head", "tied to embed_tokens");
  }
  embedding_ = text.matrix("embed_tokens", config_.vocab_size, config_.hidden_size);
  head_ = embedding_;
}

void Qwen3_5::load_layers(const WeightScope& text) {
  std::size_t kv_layers = 0, state_layers = 0;
  layers_.reserve(static_cast<std::size_t>(config_.layers));
  for (std::int64_t i = 0; i < config_.layers; ++i) {
    const WeightScope scope = text.at(fmt::format("layers.{}", i));
    const bool full = config_.full_attention[static_cast<std::size_t>(i)];
    auto mixer = full ? std::variant<FullAttention, DeltaNet>(FullAttention(scope.at("self_attn"), config_))
                      : std::variant<FullAttention, DeltaNet>(DeltaNet(scope.at("linear_attn"), config_));
    layers_.push_back({load_norm(scope, "input_layernorm.weight", config_.hidden_size),
                       load_norm(scope, "post_attention_layernorm.weight", config_.hidden_size), std::move(mixer),
                       load_mlp(scope.at("mlp"), config_, config_.dense_mlp[static_cast<std::size_t>(i)]),
                       full ? kv_layers++ : state_layers++});
  }
}

void Qwen3_5::load_vision(const WeightScope& root) {
  const auto tower = find_part(root, vision_part);
  if (!tower) {
    config_.image_token = config_.video_token = -1;
    return;
  }
  if (config_.vision) {
    reserve_vision_tower(*tower, *config_.vision);
  } else if (config_.language_model_only) {
    tower->skip("", "language_model_only is true");
  }
}

CacheNeeds Qwen3_5::cache_needs() const {
  CacheNeeds needs;
  for (const bool full : config_.full_attention) ++(full ? needs.kv_layers : needs.state_layers);
  if (mtp_) ++needs.kv_layers;
  needs.kv_heads = config_.kv_heads;
  needs.head_dim = config_.head_dim;
  needs.conv_taps = config_.conv_taps;
  needs.conv_channels = config_.conv_channels();
  needs.value_heads = config_.value_heads;
  needs.key_dim = config_.key_dim;
  needs.value_dim = config_.value_dim;
  return needs;
}

Tensor Qwen3_5::logits(Ops& ops, const Tensor& hidden, const BatchView& batch) const {
  if (batch.score_rows.empty()) return {};
  return ops.linear_f32(ops.gather_rows(hidden, batch.score_rows), *head_);
}

ForwardResult Qwen3_5::forward(Ops& ops, const BatchView& batch, const LayerCaches& caches,
                               const LayerObserver& observe) {
  const float eps = config_.rms_norm_eps;
  const Tensor residual = ops.embed(*embedding_, batch.token_ids);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    if (observe) observe(static_cast<std::int64_t>(i), residual);
    const Scope scope(ops);
    Tensor x = ops.rms_norm(residual, layer.input_norm, eps);
    Tensor mixed;
    if (const auto* attention = std::get_if<FullAttention>(&layer.mixer)) {
      mixed = (*attention)(ops, x, rope_, caches.kv.at(layer.cache), batch);
    } else {
      mixed = std::get<DeltaNet>(layer.mixer)(ops, x, caches.state.at(layer.cache), batch);
    }
    x = ops.add_rms_norm(residual, mixed, layer.mlp_norm, eps);
    ops.add_to(residual, std::visit([&](const auto& mlp) { return mlp(ops, x); }, layer.mlp));
  }
  const Tensor hidden = ops.rms_norm(residual, final_norm_, eps);
  if (observe) observe(config_.layers, hidden);
  return {hidden, logits(ops, hidden, batch)};
}

ForwardResult Qwen3_5::draft(Ops& ops, const BatchView& batch, const Tensor& hidden, const LayerCaches& caches) {
  CHECK(mtp_.has_value(), "the checkpoint has no draft head");
  const Tensor embedded = ops.embed(*embedding_, batch.token_ids);
  const Tensor drafted = (*mtp_)(ops, embedded, hidden, rope_, caches.kv.back(), batch);
  return {drafted, logits(ops, drafted, batch)};
}

std::uint64_t Qwen3_5::bytes_per_token() const {
  std::uint64_t total = head_->bytes();
  for (const Layer& layer : layers_) {
    total += std::visit([](const auto& mixer) { return mixer.bytes(); }, layer.mixer);
    total += std::visit([](const auto& mlp) { return mlp.bytes(); }, layer.mlp);
  }
  return total;
}

}  // namespace sluice
