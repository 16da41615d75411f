#include <algorithm>

#include "apps/model_files.h"
#include "apps/quantize_gguf.h"
#include "base/error.h"
#include "text/tokenizer_file.h"

namespace sluice {

namespace {

using FileTexts = std::map<std::string, std::string>;

/// As gguf numbers the types of tokens.
enum TokenType : std::int32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

/// The file as JSON; null where it is not there.
Json parsed(const FileTexts& texts, const std::string& name) {
  const auto found = texts.find(name);
  return found == texts.end() ? Json(nullptr) : parse_json(found->second, name);
}

/// A field of an object; null where there is none.
Json field(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) ? object[name] : Json(nullptr);
}

/// Texts and types of all ids of the padded vocabulary.
struct Tokens {
  explicit Tokens(std::int64_t vocabulary) : types(static_cast<std::size_t>(vocabulary), unused) {
    for (std::int64_t id = 0; id < vocabulary; ++id) texts.push_back(fmt::format("[PAD{}]", id));
  }
  void set(std::int64_t id, std::string text, TokenType type) {
    if (id < 0 || id >= std::ssize(texts)) {
      fail<LoadError>("tokenizer.json: token \"{}\" has id {}, config.json a vocabulary of {}", text, id, texts.size());
    }
    texts[static_cast<std::size_t>(id)] = std::move(text);
    types[static_cast<std::size_t>(id)] = type;
  }
  std::optional<std::uint32_t> id_of(const Json& token) const {
    const Json text = token.is_object() ? field(token, "content") : token;
    if (!text.is_string()) return std::nullopt;
    const auto found = std::ranges::find(texts, text.get_ref<const std::string&>());
    if (found == texts.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - texts.begin());
  }

  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
};

std::vector<std::string> merges_of(const Json& model) {
  std::vector<std::string> merges;
  for (const Json& merge : model.at("merges")) {
    merges.push_back(merge.is_string() ? merge.get<std::string>()
                                       : fmt::format("{} {}", merge.at(0).get_ref<const std::string&>(),
                                                     merge.at(1).get_ref<const std::string&>()));
  }
  return merges;
}

void add_chat_template(GgufKeys& keys, const FileTexts& texts) {
  constexpr const char *key = "tokenizer.chat_template", *name = "chat_template";
  const auto file = texts.find("chat_template.jinja");
  if (file != texts.end()) return keys.add(key, std::string_view(file->second));
  Json source = field(parsed(texts, "chat_template.json"), name);
  if (source.is_null()) source = field(parsed(texts, "tokenizer_config.json"), name);
  if (source.is_array()) {
    const Json list = source;
    source = nullptr;
    for (const Json& entry : list) {
      if (field(entry, "name") == "default") source = field(entry, "template");
    }
  }
  if (source.is_string()) keys.add(key, std::string_view(source.get_ref<const std::string&>()));
}

/// Ids that end a reply, the first one that of the tokenizer.
void add_stop_tokens(GgufKeys& keys, const Qwen3_5Config& config, const FileTexts& texts,
                     std::optional<std::int32_t> of_tokenizer) {
  std::vector<std::int32_t> ids;
  if (of_tokenizer) ids.push_back(*of_tokenizer);
  for (const TokenId id : stop_tokens_of(parsed(texts, "generation_config.json"))) ids.push_back(id);
  ids.insert(ids.end(), config.stop_tokens.begin(), config.stop_tokens.end());
  std::vector<std::int32_t> once;
  for (const std::int32_t id : ids) {
    if (std::ranges::find(once, id) == once.end()) once.push_back(id);
  }
  if (once.empty()) return;
  keys.add("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(once.front()));
  if (once.size() > 1) keys.add("tokenizer.ggml.eos_token_ids", std::span<const std::int32_t>(once));
}

void add_special_token(GgufKeys& keys, const char* key, const std::optional<std::uint32_t>& id) {
  if (id) keys.add(key, *id);
}

}  // namespace

void add_gguf_tokenizer(GgufKeys& keys, const Qwen3_5Config& config, const FileTexts& texts) {
  const auto source = texts.find("tokenizer.json");
  if (source == texts.end()) return add_stop_tokens(keys, config, texts, std::nullopt);
  const auto names = texts.find("tokenizer_config.json");
  const TokenizerFile file =
      read_tokenizer_file(source->second, names == texts.end() ? std::string_view() : names->second, "tokenizer.json",
                          "tokenizer_config.json");
  if (!file.normalize) fail<LoadError>("tokenizer.json: does not normalize to NFC, as tokenizers of GGUF files do");
  const Json model = parsed(texts, "tokenizer.json").at("model");
  Tokens tokens(config.vocab_size);
  for (const auto& [text, id] : model.at("vocab").items()) tokens.set(id.get<std::int64_t>(), text, normal);
  for (const AddedToken& token : file.added_tokens) {
    tokens.set(token.id, token.content, token.special ? control : user_defined);
  }
  keys.add("tokenizer.ggml.model", "gpt2");
  keys.add("tokenizer.ggml.pre", file.pattern == WordPattern::marks_in_words ? "qwen35" : "qwen2");
  keys.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens.texts));
  keys.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(tokens.types));
  keys.add("tokenizer.ggml.merges", std::span<const std::string>(merges_of(model)));
  add_stop_tokens(keys, config, texts, file.eos);
  const Json special = parsed(texts, "tokenizer_config.json");
  add_special_token(keys, "tokenizer.ggml.bos_token_id", tokens.id_of(field(special, "bos_token")));
  add_special_token(keys, "tokenizer.ggml.padding_token_id", tokens.id_of(field(special, "pad_token")));
  keys.add("tokenizer.ggml.add_bos_token", false);
  add_chat_template(keys, texts);
}

}  // namespace sluice
