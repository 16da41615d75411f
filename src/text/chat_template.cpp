#include "text/chat_template.h"

#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "text/jinja/budget.h"
#include "text/jinja/template.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

constexpr size_t max_config_bytes = size_t{64} << 20;
constexpr std::array<const char*, 7> special_token_names = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                            "pad_token", "cls_token", "mask_token"};

std::optional<std::string> read_file(const fs::path& path, size_t limit) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const auto size = fs::file_size(path, error);
  if (error) fail<LoadError>("{}: cannot be read: {}", path.string(), error.message());
  if (size > limit) fail<LoadError>("{}: {} bytes; at most {} are accepted", path.string(), size, limit);
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) fail<LoadError>("{}: cannot be read", path.string());
  return text;
}

/// The special tokens of tokenizer_config.json as templates see them: their text.
Json special_tokens(const Json& config) {
  Json tokens = Json::object();
  const auto text_of = [](const Json& token) -> std::optional<std::string> {
    if (token.is_string()) return token.get<std::string>();
    if (token.is_object() && token.contains("content") && token["content"].is_string())
      return token["content"].get<std::string>();
    return std::nullopt;
  };
  for (const char* name : special_token_names)
    if (config.contains(name))
      if (auto text = text_of(config[name])) tokens[name] = std::move(*text);
  if (config.contains("additional_special_tokens") && config["additional_special_tokens"].is_array()) {
    Json list = Json::array();
    for (const Json& token : config["additional_special_tokens"])
      if (auto text = text_of(token)) list.push_back(std::move(*text));
    tokens["additional_special_tokens"] = std::move(list);
  }
  return tokens;
}

struct Sources {
  std::optional<std::string> usual, with_tools;
};

/// "chat_template" of a configuration: a string, or a list of {name, template}.
Sources sources_of(const Json& config, std::string_view what) {
  Sources sources;
  if (!config.is_object() || !config.contains("chat_template") || config["chat_template"].is_null()) return sources;
  const Json& found = config["chat_template"];
  if (found.is_string()) {
    sources.usual = found.get<std::string>();
    return sources;
  }
  const auto wrong = [&] {
    fail<LoadError>("{}: chat_template must be a string, or a list of objects with the strings name and template",
                    what);
  };
  if (!found.is_array()) wrong();
  for (const Json& entry : found) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() || !entry.contains("template") ||
        !entry["template"].is_string())
      wrong();
    const auto name = entry["name"].get<std::string>();
    if (name == "default") sources.usual = entry["template"].get<std::string>();
    if (name == "tool_use") sources.with_tools = entry["template"].get<std::string>();
  }
  if (!sources.usual) fail<LoadError>("{}: none of the chat templates is named 'default'", what);
  return sources;
}

/// Clients send arguments as JSON text; templates expect the object. Text that is no object stays as it is.
void decode_arguments(Json& call) {
  Json& holder =
      call.is_object() && call.contains("function") && call["function"].is_object() ? call["function"] : call;
  if (!holder.is_object() || !holder.contains("arguments") || !holder["arguments"].is_string()) return;
  const auto& text = holder["arguments"].get_ref<const std::string&>();
  if (text.empty()) {
    holder["arguments"] = Json::object();
    return;
  }
  try {
    Json decoded = parse_json(text, "arguments");
    if (decoded.is_object()) holder["arguments"] = std::move(decoded);
  } catch (const LoadError&) {
    return;
  }
}

Json with_decoded_arguments(const Json& messages) {
  Json copy = messages;
  if (!copy.is_array()) return copy;
  for (Json& message : copy) {
    if (!message.is_object() || !message.contains("tool_calls") || !message["tool_calls"].is_array()) continue;
    for (Json& call : message["tool_calls"]) decode_arguments(call);
  }
  return copy;
}

class JinjaChatTemplate : public ChatTemplate {
 public:
  JinjaChatTemplate(const Sources& sources, std::string_view what, Json special)
      : usual_(*sources.usual, what), special_tokens_(std::move(special)) {
    if (sources.with_tools) with_tools_.emplace(*sources.with_tools, std::string(what) + " (tool_use)");
  }

  std::string render(const Json& messages, const Json& tools, const TemplateOptions& options) const override {
    Json variables = special_tokens_;
    variables["documents"] = nullptr;
    if (options.variables.is_object())
      for (const auto& [name, value] : options.variables.items()) variables[name] = value;
    variables["messages"] = with_decoded_arguments(messages);
    variables["tools"] = tools;
    variables["add_generation_prompt"] = options.add_generation_prompt;
    const bool has_tools = tools.is_array() && !tools.empty();
    return (has_tools && with_tools_ ? *with_tools_ : usual_).render(variables);
  }

 private:
  jinja::Template usual_;
  std::optional<jinja::Template> with_tools_;
  Json special_tokens_;
};

}  // namespace

std::shared_ptr<const ChatTemplate> ChatTemplate::load(const fs::path& directory) {
  const fs::path config_path = directory / "tokenizer_config.json";
  Json config = Json::object();
  if (const auto text = read_file(config_path, max_config_bytes)) config = parse_json(*text, config_path.string());
  if (!config.is_object()) fail<LoadError>("{}: must be a JSON object", config_path.string());

  fs::path path = directory / "chat_template.jinja";
  Sources sources;
  sources.usual = read_file(path, jinja::max_source_bytes);
  if (!sources.usual) {
    path = directory / "chat_template.json";
    if (const auto text = read_file(path, max_config_bytes))
      sources = sources_of(parse_json(*text, path.string()), path.string());
  }
  if (!sources.usual) {
    path = config_path;
    sources = sources_of(config, path.string());
  }
  if (!sources.usual) return nullptr;
  return std::make_shared<const JinjaChatTemplate>(sources, path.string(), special_tokens(config));
}

std::shared_ptr<const ChatTemplate> ChatTemplate::parse(std::string_view source, std::string_view what,
                                                        const Json& special_tokens) {
  Sources sources;
  sources.usual = std::string(source);
  return std::make_shared<const JinjaChatTemplate>(sources, what, special_tokens);
}

}  // namespace sluice
