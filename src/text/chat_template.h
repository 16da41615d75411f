#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"

namespace sluice {

/// What a chat template is given beside the messages.
struct TemplateOptions {
  bool add_generation_prompt = true;
  Json variables = Json::object();  // enable_thinking, add_vision_id, ...: any chat_template_kwargs
};

/// The checkpoint's own Jinja template. Immutable; safe to use from many threads.
class ChatTemplate {
 public:
  /// DIR/chat_template.jinja, else chat_template.json, else "chat_template" in tokenizer_config.json (a
  /// string, or a list of {name, template} of which "default" counts; "tool_use" serves requests with tools
  /// when present). Returns null where the directory has none. Throws LoadError for one that does not parse
  /// (line and column).
  static std::shared_ptr<const ChatTemplate> load(const std::filesystem::path& directory);
  /// special_tokens: names (eos_token, ...) to texts, as templates see them.
  static std::shared_ptr<const ChatTemplate> parse(std::string_view source, std::string_view what,
                                                   const Json& special_tokens = Json::object());
  virtual ~ChatTemplate() = default;

  /// The prompt. messages: OpenAI's shape; tool call arguments that are JSON strings are decoded into objects
  /// first. tools: an array or null. Throws RequestError with the template's own words for raise_exception,
  /// and for step or size limits.
  virtual std::string render(const Json& messages, const Json& tools, const TemplateOptions& options) const = 0;
};

}  // namespace sluice
