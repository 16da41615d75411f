#include "models/qwen3_5_parts.h"

#include "base/error.h"

namespace sluice {

std::optional<WeightScope> find_part(const WeightScope& root, const Qwen3_5Part& part) {
  for (std::size_t i = 0; i < part.count; ++i) {
    const WeightScope scope = root.at(part.prefixes[i]);
    if (scope.has(part.member)) return scope;
  }
  return std::nullopt;
}

WeightScope require_text(const WeightScope& root) {
  if (const auto text = find_part(root, text_part)) return *text;
  fail<LoadError>(
      "{}: tensor \"model.language_model.embed_tokens.weight\" is missing (nor is there one under \"model.\" or "
      "\"language_model.model.\")",
      root.checkpoint().describe());
}

}  // namespace sluice
