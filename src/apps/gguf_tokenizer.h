#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "text/tokenizer.h"
#include "weights/gguf_header.h"

namespace sluice {

/// The tokenizer that tokenizer.ggml.* describes; null where there is none. Throws LoadError for a model or
/// pre-tokenizer that is not the family's, and for anything else that would not be honoured.
std::shared_ptr<const Tokenizer> gguf_tokenizer(const GgufMetadata& metadata);

/// The text that tokenizer.json would hold; none where there is no tokenizer. Throws LoadError likewise.
std::optional<std::string> gguf_tokenizer_json(const GgufMetadata& metadata);

/// bos_token, eos_token and pad_token to their texts, as far as they are there.
Json gguf_special_tokens(const GgufMetadata& metadata);

/// Ids of the tokens that end a turn or a document, by the names that the family gives them.
std::vector<TokenId> gguf_stop_tokens(const GgufMetadata& metadata);

}  // namespace sluice
