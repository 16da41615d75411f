#pragma once
#include <map>
#include <string>

#include "apps/quantize_plan.h"
#include "weights/gguf_writer.h"

namespace sluice {

/// Throws LoadError for a model that GGUF files of its architecture cannot say.
void check_fits_gguf(const Qwen3_5Config& config);
GgufQwenBlocks gguf_blocks(const Qwen3_5Config& config, bool has_draft_head);

/// All metadata of a file: the model's, the tokenizer's and the template's as far as `texts` (file names to contents,
/// as ModelFiles has them) holds them. Throws LoadError for a tokenizer that is not the family's.
GgufKeys gguf_keys(const Qwen3_5Config& config, const GgufQwenBlocks& blocks, const std::string& model_name,
                   std::uint32_t file_type, const std::map<std::string, std::string>& texts);

/// Adds tokenizer.ggml.* and the chat template.
void add_gguf_tokenizer(GgufKeys& keys, const Qwen3_5Config& config, const std::map<std::string, std::string>& texts);

}  // namespace sluice
