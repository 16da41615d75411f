#include "apps/gguf_tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "server/json_text.h"
#include "text/pretokenizer.h"

namespace sluice {

namespace {

enum class TokenType : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct NamedPattern {
  std::string_view name;
  WordPattern pattern;
};
constexpr NamedPattern patterns[] = {
    {"qwen35", WordPattern::marks_in_words},
    {"qwen2", WordPattern::marks_as_symbols},
    {"deepseek-r1-qwen", WordPattern::marks_as_symbols},
};

constexpr const char* tokens_key = "tokenizer.ggml.tokens";
constexpr const char* types_key = "tokenizer.ggml.token_type";

template <class... Args>
[[noreturn]] void bad(const GgufMetadata& metadata, const char* key, fmt::format_string<Args...> format,
                      Args&&... args) {
  fail<LoadError>("{}: \"{}\" {}", metadata.source(), key, fmt::format(format, std::forward<Args>(args)...));
}

/// Texts and types of all ids.
struct Tokens {
  explicit Tokens(const GgufMetadata& metadata)
      : texts(metadata.strings(tokens_key).value_or(std::vector<std::string_view>{})),
        types(metadata.integers(types_key).value_or(std::vector<std::int64_t>{})) {
    if (types.size() != texts.size())
      bad(metadata, types_key, "has {} entries for {} tokens", types.size(), texts.size());
    for (std::size_t id = 0; id < texts.size(); ++id) {
      if (types[id] != static_cast<int>(TokenType::user_defined) || texts[id].empty() || texts[id][0] != '[') continue;
      // Converters fill ids without a token up with such names.
      if (texts[id] == fmt::format("[PAD{}]", id)) types[id] = static_cast<int>(TokenType::unused);
    }
  }
  bool is(std::size_t id, TokenType type) const { return types[id] == static_cast<int>(type); }

  std::vector<std::string_view> texts;
  std::vector<std::int64_t> types;
};

WordPattern pattern_of(const GgufMetadata& metadata) {
  constexpr const char* key = "tokenizer.ggml.pre";
  const auto name = metadata.string(key);
  if (!name) bad(metadata, key, "is missing");
  const auto* found = std::ranges::find(patterns, *name, &NamedPattern::name);
  if (found == std::end(patterns)) {
    bad(metadata, key, "is \"{}\"; supported are qwen35, qwen2 and deepseek-r1-qwen", *name);
  }
  return found->pattern;
}

void refuse_additions(const GgufMetadata& metadata) {
  for (const char* key :
       {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_space_prefix"}) {
    if (metadata.boolean(key).value_or(false)) bad(metadata, key, "is true, which is not supported");
  }
}

std::string vocabulary_json(const GgufMetadata& metadata, const Tokens& tokens) {
  std::string json = "{";
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    if (!tokens.is(id, TokenType::normal)) {
      const bool known = tokens.is(id, TokenType::control) || tokens.is(id, TokenType::user_defined) ||
                         tokens.is(id, TokenType::unused);
      if (!known) bad(metadata, types_key, "holds {} for token {}; supported are 1, 3, 4 and 5", tokens.types[id], id);
      continue;
    }
    if (json.size() > 1) json += ',';
    append_json_string(json, tokens.texts[id]);
    json += fmt::format(":{}", id);
  }
  return json + "}";
}

std::string merges_json(const GgufMetadata& metadata) {
  const auto merges = metadata.strings("tokenizer.ggml.merges");
  if (!merges) bad(metadata, "tokenizer.ggml.merges", "is missing");
  std::string json = "[";
  for (const std::string_view merge : *merges) {
    if (json.size() > 1) json += ',';
    append_json_string(json, merge);
  }
  return json + "]";
}

std::string added_tokens_json(const Tokens& tokens) {
  std::string json = "[";
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    const bool special = tokens.is(id, TokenType::control);
    if (!special && !tokens.is(id, TokenType::user_defined)) continue;
    json += fmt::format("{}{{\"id\":{},\"special\":{},\"normalized\":false,\"content\":", json.size() > 1 ? "," : "",
                        id, special);
    append_json_string(json, tokens.texts[id]);
    json += '}';
  }
  return json + "]";
}

std::string tokenizer_json(const GgufMetadata& metadata, const Tokens& tokens, WordPattern pattern) {
  std::string json = R"({"model":{"type":"BPE","vocab":)" + vocabulary_json(metadata, tokens);
  json += R"(,"merges":)" + merges_json(metadata) + R"(},"added_tokens":)" + added_tokens_json(tokens);
  json += R"(,"normalizer":{"type":"NFC"},"decoder":{"type":"ByteLevel"},"pre_tokenizer":{"type":"Sequence",)";
  json += R"("pretokenizers":[{"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":)";
  append_json_string(json, regex_of(pattern));
  return json + R"(}},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}})";
}

}  // namespace

std::optional<std::string> gguf_tokenizer_json(const GgufMetadata& metadata) {
  constexpr const char* key = "tokenizer.ggml.model";
  const auto model = metadata.string(key);
  if (!model || !metadata.has(tokens_key)) return std::nullopt;
  if (*model != "gpt2") bad(metadata, key, "is \"{}\"; supported is gpt2 (byte-level BPE)", *model);
  refuse_additions(metadata);
  const WordPattern pattern = pattern_of(metadata);
  return tokenizer_json(metadata, Tokens(metadata), pattern);
}

std::shared_ptr<const Tokenizer> gguf_tokenizer(const GgufMetadata& metadata) {
  const auto json = gguf_tokenizer_json(metadata);
  if (!json) return nullptr;
  std::string config = "{";
  const Json special = gguf_special_tokens(metadata);
  if (special.contains("eos_token")) {
    config += "\"eos_token\":";
    append_json_string(config, special["eos_token"].get_ref<const std::string&>());
  }
  return Tokenizer::parse(*json, config + "}", fmt::format("{}, tokenizer", metadata.source()));
}

Json gguf_special_tokens(const GgufMetadata& metadata) {
  constexpr std::pair<const char*, const char*> keys[] = {{"tokenizer.ggml.bos_token_id", "bos_token"},
                                                          {"tokenizer.ggml.eos_token_id", "eos_token"},
                                                          {"tokenizer.ggml.padding_token_id", "pad_token"}};
  Json special = Json::object();
  const auto texts = metadata.strings(tokens_key).value_or(std::vector<std::string_view>{});
  for (const auto& [key, name] : keys) {
    const auto id = metadata.integer(key);
    if (!id) continue;
    if (*id < 0 || static_cast<std::size_t>(*id) >= texts.size()) {
      bad(metadata, key, "is {}, of {} tokens", *id, texts.size());
    }
    special[name] = std::string(texts[static_cast<std::size_t>(*id)]);
  }
  return special;
}

std::vector<TokenId> gguf_stop_tokens(const GgufMetadata& metadata) {
  if (!metadata.has(tokens_key) || !metadata.has(types_key)) return {};
  const Tokens tokens(metadata);
  std::vector<TokenId> ids;
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    const bool ends = tokens.texts[id] == "<|im_end|>" || tokens.texts[id] == "<|endoftext|>";
    if (ends && tokens.is(id, TokenType::control)) ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

}  // namespace sluice
