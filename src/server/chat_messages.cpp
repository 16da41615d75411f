#include "server/chat_messages.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace sluice {

namespace {

constexpr std::size_t most_messages = 16384, most_parts = 16384, most_calls = 1024;

void check_count(const Json& list, std::size_t most, std::string_view what, const std::string& path) {
  if (list.size() > most) fail_field(path, fmt::format("at most {} {} are taken, found {}", most, what, list.size()));
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  for (std::string_view other : words)
    if (word == other) return true;
  return false;
}

std::string part_text(const Json& part, const std::string& path) {
  Fields fields(part, path);
  // Some clients leave the type of a text out.
  const std::string type = !fields.has("type") && fields.has("text") ? "text" : fields.required_text("type");
  if (is_one_of(type, {"text", "input_text", "output_text"})) return fields.required_text("text");
  if (type == "refusal") return fields.required_text("refusal");
  if (is_one_of(type, {"image", "image_url", "input_image", "image_embeds", "video", "video_url", "input_video",
                       "audio", "audio_url", "input_audio", "file", "input_file"}))
    fail_field(path, fmt::format("a part of type \"{}\" is not supported: this build takes text only, no pictures, "
                                 "films, audio or files",
                                 type));
  fail_type(fields.path_of("type"), "\"text\"", type);
}

std::string content_text(const Json& content, const std::string& path) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) fail_type(path, "a string or an array of parts", content);
  check_count(content, most_parts, "parts", path);
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) text += part_text(content[i], element_path(path, i));
  return text;
}

Json call_arguments(const Json* arguments, const std::string& path) {
  if (arguments == nullptr) return Json::object();
  if (arguments->is_object()) return *arguments;
  if (!arguments->is_string()) fail_type(path, "a JSON object as text", *arguments);
  const auto& text = arguments->get_ref<const std::string&>();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  Json parsed;
  try {
    parsed = parse_json(text, path);
  } catch (const LoadError& error) {
    throw ApiError(400, error.what()).with_param(path);
  }
  if (!parsed.is_object()) fail_type(path, "a JSON object as text", *arguments);
  return parsed;
}

Json normalized_call(const Json& call, const std::string& path) {
  Fields fields(call, path);
  fields.word("type", {"function"});
  const std::string function_path = fields.path_of("function");
  Fields function(fields.required_object("function"), function_path);
  std::string name = function.required_text("name");
  if (name.empty()) fail_type(function.path_of("name"), "a string that is not empty", name);
  Json normalized = Json::object();
  if (auto id = fields.text("id")) normalized["id"] = *std::move(id);
  normalized["type"] = "function";
  normalized["function"] = {{"name", std::move(name)},
                            {"arguments", call_arguments(function.find("arguments"), function.path_of("arguments"))}};
  return normalized;
}

void add_assistant_fields(Fields& fields, Json& normalized) {
  fields.refuse("function_call", "use tool_calls");
  fields.refuse("audio", "this build takes text only");
  auto reasoning = fields.text("reasoning_content");
  if (auto other = fields.text("reasoning"); !reasoning) reasoning = std::move(other);
  if (reasoning) normalized["reasoning_content"] = *std::move(reasoning);
  const Json* calls = fields.array("tool_calls");
  if (calls == nullptr || calls->empty()) return;
  const std::string path = fields.path_of("tool_calls");
  check_count(*calls, most_calls, "calls", path);
  Json list = Json::array();
  for (std::size_t i = 0; i < calls->size(); ++i) list.push_back(normalized_call((*calls)[i], element_path(path, i)));
  normalized["tool_calls"] = std::move(list);
}

Json normalized_message(const Json& message, const std::string& path) {
  Fields fields(message, path);
  std::string role = fields.required_text("role");
  if (role == "function") fields.refuse("role", "\"function\"; use \"tool\" with a tool_call_id");
  fields.word("role", {"system", "developer", "user", "assistant", "tool"});
  if (role == "developer") role = "system";
  const bool is_assistant = role == "assistant";
  const Json* content = fields.find("content");
  if (content == nullptr && !is_assistant) fail_field(fields.path_of("content"), "this field is required");
  Json normalized = {{"role", std::move(role)}};
  normalized["content"] = content == nullptr ? std::string() : content_text(*content, fields.path_of("content"));
  for (const char* key : {"name", "tool_call_id"})
    if (auto text = fields.text(key)) normalized[key] = *std::move(text);
  if (is_assistant) add_assistant_fields(fields, normalized);
  return normalized;
}

}  // namespace

Json normalized_messages(const Json& messages, const std::string& path) {
  if (!messages.is_array()) fail_type(path, "an array of messages", messages);
  if (messages.empty()) fail_field(path, "at least one message is needed");
  check_count(messages, most_messages, "messages", path);
  Json normalized = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i)
    normalized.push_back(normalized_message(messages[i], element_path(path, i)));
  return normalized;
}

void set_reasoning_effort(ChatPrompt& chat, const std::string& effort, const std::string& path) {
  if (!is_one_of(effort, {"none", "minimal", "low", "medium", "high", "xhigh", "max"}))
    fail_type(path, R"(one of "none", "minimal", "low", "medium", "high", "xhigh", "max")", effort);
  if (!chat.variables.contains("enable_thinking")) chat.variables["enable_thinking"] = effort != "none";
  if (effort != "none") chat.variables["reasoning_effort"] = effort;
}

}  // namespace sluice
