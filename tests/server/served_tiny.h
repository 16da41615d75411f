#pragma once
#include <memory>

#include "server/served_model.h"
#include "support/model_runner.h"

namespace sluice::test {

/// The bundled model in float32 behind an engine, as the server is given it.
inline ServedModel served_tiny(EngineOptions options = {}) {
  struct Holder {
    std::unique_ptr<Checkpoint> checkpoint;
    std::unique_ptr<Engine> engine;
  };
  const std::filesystem::path directory = source_dir() / "models/tiny";
  auto holder = std::make_shared<Holder>();
  holder->checkpoint = open_safetensors(directory);
  ServedModel model;
  model.tokenizer = Tokenizer::load(directory);
  model.chat_template = ChatTemplate::load(directory);
  auto ops = make_cpu_backend({.threads = 2, .compute = Compute::f32, .instruction_set = ""});
  auto loaded = load_model(read_config(directory), *holder->checkpoint, *ops);
  model.stop_tokens = loaded->info().stop_tokens;
  std::sort(model.stop_tokens.begin(), model.stop_tokens.end());
  if (options.max_model_len == 0) options.max_model_len = 1024;
  if (options.max_num_seqs == 0) options.max_num_seqs = 16;
  options.vocabulary_size = model.tokenizer->size();
  options.stop_tokens = model.stop_tokens;
  options.poison_freed = true;
  holder->engine = std::make_unique<Engine>(std::move(ops), std::move(loaded), options);
  model.engine = std::shared_ptr<Engine>(holder, holder->engine.get());
  model.defaults.sampling.temperature = 0.0f;
  model.defaults.max_model_len = options.max_model_len;
  model.defaults.vocabulary = model.tokenizer->size();
  model.grammars = make_grammar_compiler(model.tokenizer, model.tokenizer->size(), model.stop_tokens);
  return model;
}

}  // namespace sluice::test
