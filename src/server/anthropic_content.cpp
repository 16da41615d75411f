#include "server/anthropic_content.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "server/api_error.h"
#include "server/fields.h"

namespace sluice {

namespace {

[[noreturn]] void refuse_block(Fields& block, std::string_view where, std::string_view allowed) {
  fail_field(block.path_of("type"),
             fmt::format("not supported {}: {}; blocks here are {}", where, shown(*block.find("type")), allowed));
}

/// A string, or a list of text blocks, joined.
std::string text_of(const Json& content, const std::string& path, std::string_view where, std::string_view between) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) fail_type(path, "a string or a list of blocks", content);
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    Fields block(content[i], element_path(path, i));
    if (block.required_text("type") != "text") refuse_block(block, where, "\"text\"");
    if (i > 0) text += between;
    text += block.required_text("text");
  }
  return text;
}

const Json& required_content(Fields& message) {
  const Json* content = message.find("content");
  if (content == nullptr) fail_field(message.path_of("content"), "this field is required");
  return *content;
}

/// A message whose content is a list of blocks. Texts that follow one another are joined.
class BlockReader {
 public:
  explicit BlockReader(Json& messages) : messages_(messages) {}
  void read_user(const Json& blocks, const std::string& path);
  void read_assistant(const Json& blocks, const std::string& path);

 private:
  void flush_text();
  void add_tool_result(Fields& block);
  static Json tool_call(Fields& block);

  Json& messages_;
  std::string text_;  // of the user, not in a message yet
};

void BlockReader::flush_text() {
  if (!text_.empty()) messages_.push_back({{"role", "user"}, {"content", std::exchange(text_, {})}});
}

void BlockReader::add_tool_result(Fields& block) {
  Json message = {{"role", "tool"}, {"tool_call_id", block.required_text("tool_use_id")}};
  const Json* content = block.find("content");
  std::string text;
  if (content != nullptr) text = text_of(*content, block.path_of("content"), "in a tool's result", "\n");
  // Chat templates know no failed calls.
  if (block.boolean("is_error").value_or(false)) text.insert(0, "Error: ");
  message["content"] = std::move(text);
  messages_.push_back(std::move(message));
}

void BlockReader::read_user(const Json& blocks, const std::string& path) {
  if (blocks.empty()) fail_field(path, "expected at least one block, found none");
  const std::size_t before = messages_.size();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Fields block(blocks[i], element_path(path, i));
    const std::string type = block.required_text("type");
    if (type == "text") {
      text_ += block.required_text("text");
    } else if (type == "tool_result") {
      flush_text();
      add_tool_result(block);
    } else {
      refuse_block(block, "in a user's message", "\"text\" and \"tool_result\"");
    }
  }
  if (messages_.size() == before) messages_.push_back({{"role", "user"}, {"content", std::exchange(text_, {})}});
  flush_text();
}

Json BlockReader::tool_call(Fields& block) {
  Json call = {{"id", block.required_text("id")}, {"type", "function"}};
  call["function"] = {{"name", block.required_text("name")}, {"arguments", block.required_object("input")}};
  return call;
}

void BlockReader::read_assistant(const Json& blocks, const std::string& path) {
  std::string text, thinking;
  Json calls = Json::array();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Fields block(blocks[i], element_path(path, i));
    const std::string type = block.required_text("type");
    if (type == "text") {
      text += block.required_text("text");
    } else if (type == "thinking") {
      thinking += block.required_text("thinking");
    } else if (type == "tool_use") {
      calls.push_back(tool_call(block));
    } else if (type != "redacted_thinking") {  // which nobody can read here
      refuse_block(block, "in an assistant's message",
                   "\"text\", \"thinking\", \"redacted_thinking\" and \"tool_use\"");
    }
  }
  Json message = {{"role", "assistant"}, {"content", std::move(text)}};
  if (!thinking.empty()) message["reasoning_content"] = std::move(thinking);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  messages_.push_back(std::move(message));
}

}  // namespace

Json messages_of_anthropic(const Json* system, const Json& messages) {
  Json chat = Json::array();
  if (system != nullptr) {
    std::string text = text_of(*system, "system", "in a system prompt", "\n\n");
    if (!text.empty()) chat.push_back({{"role", "system"}, {"content", std::move(text)}});
  }
  if (messages.empty()) fail_field("messages", "expected at least one message, found none");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Fields message(messages[i], element_path("messages", i));
    message.required_text("role");
    const std::string role = *message.word("role", {"user", "assistant", "system"});
    const Json& content = required_content(message);
    const std::string path = message.path_of("content");
    if (content.is_string() || role == "system") {
      chat.push_back({{"role", role}, {"content", text_of(content, path, "in a system message", "\n\n")}});
    } else if (!content.is_array()) {
      fail_type(path, "a string or a list of blocks", content);
    } else if (role == "user") {
      BlockReader(chat).read_user(content, path);
    } else {
      BlockReader(chat).read_assistant(content, path);
    }
  }
  return chat;
}

}  // namespace sluice
