#include "server/openai_responses_input.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace sluice {

namespace {

/// The text of one part of a content, of one of the kinds that hold text.
std::string input_part_text(const Json& part, const std::string& path) {
  Fields fields(part, path);
  const std::string type = fields.required_text("type");
  if (type == "refusal") return fields.required_text("refusal");
  for (const char* known : {"input_text", "output_text", "reasoning_text", "summary_text", "text"}) {
    if (type == known) return fields.required_text("text");
  }
  fail_field(fields.path_of("type"),
             fmt::format("not supported: {}; this server is given text, as \"input_text\" or \"output_text\"",
                         shown(Json(type))));
}

/// A string, or a list of parts that hold text, joined.
std::string input_text(const Json& content, const std::string& path, std::string_view between = "") {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) fail_type(path, "a string or a list of parts", content);
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (i > 0) text += between;
    text += input_part_text(content[i], element_path(path, i));
  }
  return text;
}

std::string required_content(Fields& fields, std::string_view key) {
  const Json* content = fields.find(key);
  if (content == nullptr) fail_field(fields.path_of(key), "this field is required");
  return input_text(*content, fields.path_of(key));
}

Json arguments_of(Fields& fields) {
  const std::string text = fields.required_text("arguments");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  try {
    Json arguments = parse_json(text, "arguments");
    if (arguments.is_object()) return arguments;
  } catch (const LoadError&) {
    // Said below.
  }
  fail_type(fields.path_of("arguments"), "a JSON object, written as a string", text);
}

/// Puts the items of one turn of the assistant together: reasoning, a message, function calls.
class MessageList {
 public:
  void add_item(const Json& item, const std::string& path);
  /// System messages at the beginning become one.
  void add_system(const std::string& text);
  void add(std::string_view role, const std::string& text) { messages_.push_back({{"role", role}, {"content", text}}); }
  Json take() { return std::move(messages_); }

 private:
  void add_message(Fields& fields);
  void add_reasoning(Fields& fields);
  void add_call(Fields& fields);
  void add_call_output(Fields& fields);
  Json& assistant_message(bool needs_room_for_text);

  Json messages_ = Json::array();
  std::string reasoning_;  // of the assistant's next message
};

void MessageList::add_item(const Json& item, const std::string& path) {
  Fields fields(item, path);
  const std::string type = fields.text("type").value_or(fields.has("role") ? "message" : "");
  if (type == "message") return add_message(fields);
  if (type == "reasoning") return add_reasoning(fields);
  if (type == "function_call") return add_call(fields);
  if (type == "function_call_output") return add_call_output(fields);
  if (type.empty()) fields.required_text("type");
  const std::string_view reason = type == "item_reference" ? "nothing is stored here, so items must be sent whole"
                                                           : "items are \"message\", \"reasoning\", \"function_call\" "
                                                             "and \"function_call_output\"";
  fail_field(fields.path_of("type"), fmt::format("not supported: {}; {}", shown(Json(type)), reason));
}

void MessageList::add_system(const std::string& text) {
  if (messages_.size() != 1 || messages_[0]["role"] != "system") return add("system", text);
  auto& first = messages_[0]["content"].get_ref<std::string&>();
  first += "\n\n" + text;
}

void MessageList::add_message(Fields& fields) {
  fields.required_text("role");
  const std::string role = *fields.word("role", {"user", "assistant", "system", "developer"});
  const std::string text = required_content(fields, "content");
  if (role == "assistant") {
    assistant_message(true)["content"] = text;
    return;
  }
  reasoning_.clear();
  if (role == "user") return add("user", text);
  add_system(text);
}

void MessageList::add_reasoning(Fields& fields) {
  for (const char* key : {"content", "summary"}) {
    const Json* parts = fields.array(key);
    if (parts == nullptr || parts->empty()) continue;
    if (!reasoning_.empty()) reasoning_ += "\n";
    reasoning_ += input_text(*parts, fields.path_of(key), "\n");
    return;
  }
}

void MessageList::add_call(Fields& fields) {
  Json call = {{"id", fields.required_text("call_id")}, {"type", "function"}};
  call["function"] = {{"name", fields.required_text("name")}, {"arguments", arguments_of(fields)}};
  Json& message = assistant_message(false);
  message["tool_calls"].push_back(std::move(call));
}

void MessageList::add_call_output(Fields& fields) {
  reasoning_.clear();
  Json message = {{"role", "tool"}, {"tool_call_id", fields.required_text("call_id")}};
  message["content"] = required_content(fields, "output");
  messages_.push_back(std::move(message));
}

/// The message that the next piece of the assistant's turn goes into: the last one, if that leaves the order of
/// reasoning, text and calls as it is.
Json& MessageList::assistant_message(bool needs_room_for_text) {
  const bool goes_on = !messages_.empty() && messages_.back()["role"] == "assistant" && reasoning_.empty();
  if (!goes_on || (needs_room_for_text && !messages_.back()["content"].get_ref<const std::string&>().empty())) {
    add("assistant", "");
    if (!reasoning_.empty()) messages_.back()["reasoning_content"] = std::exchange(reasoning_, {});
  }
  return messages_.back();
}

}  // namespace

Json messages_of_input(const std::string& instructions, const Json& input) {
  MessageList list;
  if (!instructions.empty()) list.add_system(instructions);
  if (input.is_string()) {
    list.add("user", input.get<std::string>());
    return list.take();
  }
  if (!input.is_array()) fail_type("input", "a string or a list of items", input);
  if (input.empty()) fail_field("input", "expected at least one item, found none");
  for (std::size_t i = 0; i < input.size(); ++i) list.add_item(input[i], element_path("input", i));
  return list.take();
}

}  // namespace sluice
