#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "ops/ops.h"
#include "weights/audit_placer.h"
#include "weights/scope.h"

namespace sluice {

/// What the rest of the engine may know of a model.
struct ModelInfo {
  std::string architecture;
  std::int64_t vocabulary = 0;  // columns of the logits, padding included
  std::int64_t hidden = 0;
  std::int64_t max_context = 0;           // tokens
  std::vector<std::int32_t> stop_tokens;  // of config.json; generation_config and tokenizer add theirs
  bool has_draft_head = false;
  std::int64_t image_token = -1, video_token = -1;  // -1: no vision
};

/// Step memory of the caller's Scope.
struct ForwardResult {
  Tensor hidden;  // [rows, hidden], after the final norm
  Tensor logits;  // [score_rows, vocabulary] float32; empty without score rows
};

/// Sees the residual stream before each layer (0 .. layers - 1) and, as `layers`, the output after the final norm.
using LayerObserver = std::function<void(std::int64_t layer, const Tensor& rows)>;

/// A loaded model: weights on one device and the forward pass over them. No caches, no sequences of its own.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  virtual CacheNeeds cache_needs() const = 0;
  /// All layers over the rows of a batch; reads and extends the caches of its sequences.
  virtual ForwardResult forward(Ops& ops, const BatchView& batch, const LayerCaches& caches,
                                const LayerObserver& observe = nullptr) = 0;
  /// The draft head: hidden row t (after the final norm) together with the token at t + 1, which batch.token_ids holds
  /// at row t. Logits of the token after that for the score rows, and the head's own hidden rows for further drafts.
  virtual ForwardResult draft(Ops& ops, const BatchView& batch, const Tensor& hidden, const LayerCaches& caches) = 0;
  /// Bytes of weights that one decoded token reads at least (head included, embedding not).
  virtual std::uint64_t bytes_per_token() const = 0;
};

/// Builds the model that config.json describes. Throws LoadError for an unknown architecture or a field that is not
/// supported, by name.
std::unique_ptr<Model> load_model(const Json& config, const Checkpoint& checkpoint, Ops& ops,
                                  std::function<void(std::uint64_t placed, std::uint64_t total)> on_progress = nullptr);

/// Whether load_model would find every tensor that it needs, in shapes that it expects, and know every other one:
/// without reading a matrix (but a stored head that config.json calls tied, and the embedding). Returns "name: reason"
/// for what it would pass over. Throws LoadError as load_model would.
std::vector<std::string> audit_model(const Json& config, const Checkpoint& checkpoint);
/// The same; the placer sees every matrix.
std::vector<std::string> audit_model(const Json& config, const Checkpoint& checkpoint, AuditPlacer& placer);

/// Keys of a config.json that no page of ours knows, as dotted paths.
std::vector<std::string> unknown_config_keys(const Json& config);

}  // namespace sluice
