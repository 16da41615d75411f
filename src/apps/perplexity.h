#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "apps/command_options.h"
#include "apps/model_files.h"

namespace sluice {

/// How well a model expects a text.
struct Perplexity {
  double value = 0.0;       // exp of the mean negative log-likelihood of the tokens
  std::int64_t tokens = 0;  // that counted
};

/// Loads the model and runs the text through it in windows of 2048 tokens (or the model's context, if that is less),
/// each on its own; the first token of a window does not count. Throws LoadError for a model without tokenizer,
/// RequestError for a text of less than 2 tokens. `between` is called between steps and may throw.
Perplexity measure_perplexity(const ModelFiles& files, const std::string& text, const EngineFlags& flags,
                              const Environment& environment, const std::function<void()>& between);

}  // namespace sluice
