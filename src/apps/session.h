#pragma once
#include <memory>
#include <vector>

#include "apps/command_options.h"
#include "apps/model_files.h"
#include "apps/options.h"
#include "base/json.h"
#include "engine/engine.h"
#include "models/model.h"
#include "ops/ops.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace sluice {

/// A model with its weights on a device. The checkpoint stays open as long as the model lives.
struct LoadedModel {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Model> model;
};

/// The device that the flags ask for; they must have passed refuse_unsupported().
std::unique_ptr<Ops> make_device(const EngineFlags& flags);

/// Loads the weights, with a progress bar on a terminal.
LoadedModel load_weights(const Json& config, std::unique_ptr<Checkpoint> checkpoint, const EngineFlags& flags,
                         const Environment& environment);

/// All that a command needs to generate from a model.
struct Session {
  std::shared_ptr<const ModelFiles> files;     // null: a shape
  Json generation_config;                      // null: there is none
  std::shared_ptr<const Tokenizer> tokenizer;  // null: there is none
  std::vector<TokenId> stop_tokens;            // the union over generation_config, config and tokenizer
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Engine> engine;
};

/// How many requests the engine of a command is for.
struct EngineLoad {
  int num_seqs = 1;    // at once, unless a flag says otherwise; 0: as many as fit
  int max_queued = 0;  // 0: no limit
};

/// With `needs_text`, throws LoadError before loading anything for a model without tokenizer.
Session open_session(std::shared_ptr<const ModelFiles> files, const EngineFlags& flags, const Environment& environment,
                     bool needs_text, const EngineLoad& load = {});

/// The same with random weights of a published shape: no tokenizer, no stop tokens.
Session open_shape_session(const std::string& shape, const EngineFlags& flags, const Environment& environment,
                           const EngineLoad& load);

}  // namespace sluice
