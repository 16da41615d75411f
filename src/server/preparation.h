#pragma once
#include <memory>
#include <string>
#include <vector>

#include "server/generation_request.h"
#include "server/served_model.h"
#include "text/grammar.h"

namespace sluice {

struct PreparedPrompt {
  std::vector<TokenId> ids;
  std::string text;                  // of a chat the rendered template; of ids nothing
  bool starts_in_reasoning = false;  // the model's first token is reasoning
};

/// A request that can be submitted.
struct PreparedRequest {
  GenerationRequest request;
  std::vector<PreparedPrompt> prompts;
  std::shared_ptr<const CompiledGrammar> grammar;  // null: none
};

/// Renders the template, tokenizes, compiles the grammar and checks that the prompt fits: what takes time, on a thread
/// for it. Throws ApiError (400).
PreparedRequest prepare(GenerationRequest request, const ServedModel& model);

/// The prompts alone, of any length that fits the model.
std::vector<PreparedPrompt> prepare_prompts(const GenerationRequest& request, const ServedModel& model);

/// Ids of a text. Throws ApiError when there is no tokenizer, or when the text cannot fit however it is split.
std::vector<TokenId> tokenize_bounded(const std::string& text, const ServedModel& model, bool recognize_special);

}  // namespace sluice
