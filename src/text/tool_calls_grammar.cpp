#include "text/tool_calls_grammar.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/grammar_sources.h"
#include "text/tool_calls_schema.h"

namespace sluice {

namespace {

/// The reader looks no further for a name.
constexpr std::size_t longest_name = 256;
/// What would end a value, or be taken for the next parameter.
const Json& value_ends() {
  static const Json ends = {"</parameter>", "<parameter=", "</function>", "<function=", "<tool_call>", "</tool_call>"};
  return ends;
}

Json constant(std::string text) { return {{"type", "const_string"}, {"value", std::move(text)}}; }
Json sequence(Json elements) { return {{"type", "sequence"}, {"elements", std::move(elements)}}; }
Json any_of(Json elements) {
  return elements.size() == 1 ? elements[0] : Json{{"type", "or"}, {"elements", std::move(elements)}};
}
Json any_text() { return {{"type", "any_text"}, {"excludes", value_ends()}}; }

void check_name(std::string_view what, const std::string& name) {
  const bool written = !name.empty() && name.size() <= longest_name &&
                       name.find_first_of("<>\n") == std::string::npos && name.front() != ' ' && name.back() != ' ';
  if (!written) {
    fail<RequestError>(
        "{} '{}' cannot be written in a tool call: names have 1 to {} bytes, none of them < > or a line "
        "break, and no space at their ends",
        what, name, longest_name);
  }
}

/// Text of a value of enum or const, as the reader types it.
Json listed_value(const Json& value) {
  if (!value.is_string()) return constant(value.dump());
  const auto text = value.get<std::string>();
  for (const Json& end : value_ends()) {
    if (text.find(end.get<std::string>()) != std::string::npos) {
      fail<RequestError>("the value '{}' of a tool's parameter cannot be written in a tool call: it holds {}", text,
                         end.get<std::string>());
    }
  }
  return constant(text);
}

/// The schema of one parameter, with the definitions that its references name.
Json whole_schema(const Json& schema, const Json& parameters) {
  Json whole = schema.is_object() ? schema : Json::object();
  for (const char* key : {"$defs", "definitions"}) {
    if (parameters.contains(key) && !whole.contains(key)) whole[key] = parameters[key];
  }
  return whole;
}

Json value_format(const Json& schema, const Json& parameters, const ParameterType& type) {
  if (!type.values.empty()) {
    Json values = Json::array();
    for (const Json& value : type.values) values.push_back(listed_value(value));
    return any_of(std::move(values));
  }
  if ((type.types & ParameterType::string) == 0) {
    return {{"type", "json_schema"},
            {"json_schema", whole_schema(schema, parameters)},
            {"max_whitespace_cnt", longest_json_space},
            {"excludes", value_ends()}};
  }
  if (type.is_only_string() && schema.is_object() && schema.contains("pattern") && schema["pattern"].is_string()) {
    return {{"type", "regex"}, {"pattern", schema["pattern"]}};
  }
  return any_text();
}

/// Functions of OpenAI's shape, {"type", "function": {"name", "parameters"}}.
Json function_format(const Json& tool, const ToolSchemas& schemas) {
  const bool named = tool.is_object() && tool.contains("function") && tool["function"].is_object() &&
                     tool["function"].contains("name") && tool["function"]["name"].is_string();
  if (!named)
    fail<RequestError>("a tool is not of the form {{\"type\": \"function\", \"function\": {{\"name\": ...}}}}");
  const auto name = tool["function"]["name"].get<std::string>();
  check_name("the tool name", name);
  Json elements = Json::array({constant("\n<function=" + name + ">\n")});
  const Json parameters = tool["function"].value("parameters", Json::object());
  const Json properties = parameters.is_object() ? parameters.value("properties", Json::object()) : Json::object();
  std::set<std::string> required;
  if (parameters.is_object() && parameters.contains("required") && parameters["required"].is_array()) {
    for (const Json& key : parameters["required"]) {
      if (key.is_string()) required.insert(key.get<std::string>());
    }
  }
  for (const auto& [key, schema] : properties.items()) {
    check_name("the parameter name", key);
    Json parameter =
        sequence({constant("<parameter=" + key + ">\n"), value_format(schema, parameters, schemas.type_of(name, key)),
                  constant("\n</parameter>\n")});
    if (required.contains(key)) {
      elements.push_back(std::move(parameter));
    } else {
      elements.push_back({{"type", "optional"}, {"content", std::move(parameter)}});
    }
  }
  elements.push_back(constant("</function>\n"));
  return sequence(std::move(elements));
}

void leave_only(std::span<float> logits, std::span<const TokenId> tokens) {
  std::vector<std::pair<std::size_t, float>> kept;
  for (const TokenId token : tokens) {
    const auto id = static_cast<std::size_t>(token);
    if (id < logits.size()) kept.emplace_back(id, logits[id]);
  }
  std::fill(logits.begin(), logits.end(), -std::numeric_limits<float>::infinity());
  for (const auto& [id, logit] : kept) logits[id] = logit;
}

class ToolCallsState : public GrammarState {
 public:
  ToolCallsState(const ToolCallTags& tags, bool several, std::vector<TokenId> stop_tokens,
                 std::function<std::unique_ptr<GrammarState>()> start_call)
      : tags_(tags), several_(several), stop_tokens_(std::move(stop_tokens)), start_call_(std::move(start_call)) {
    allowed_ = {tags_.open};
  }

  void mask(std::span<float> logits) override {
    if (call_ != nullptr) return call_->mask(logits);
    leave_only(logits, allowed_);
  }

  void accept(TokenId token) override {
    if (call_ != nullptr) {
      call_->accept(token);
      if (token == tags_.close) end_call();
      return;
    }
    if (std::find(allowed_.begin(), allowed_.end(), token) == allowed_.end()) {
      fail<RequestError>("token {} is no part of a tool call", token);
    }
    if (token == tags_.open) {
      call_ = start_call_();
    } else {
      allowed_ = token == tags_.line_break ? std::vector{tags_.open} : stop_tokens_;
    }
  }

 private:
  void end_call() {
    call_ = nullptr;
    allowed_ = stop_tokens_;
    if (several_) allowed_.push_back(tags_.line_break.value_or(tags_.open));
  }

  ToolCallTags tags_;
  bool several_;
  std::vector<TokenId> stop_tokens_;
  std::function<std::unique_ptr<GrammarState>()> start_call_;
  std::unique_ptr<GrammarState> call_;  // null: between calls
  std::vector<TokenId> allowed_;        // between calls
};

}  // namespace

Json tool_call_format(const Json& tools) {
  if (!tools.is_array() || tools.empty()) fail<RequestError>("a tool call is required, but there are no tools");
  const ToolSchemas schemas(tools);
  Json functions = Json::array();
  for (const Json& tool : tools) functions.push_back(function_format(tool, schemas));
  return {{"type", "structural_tag"}, {"format", any_of(std::move(functions))}};
}

ToolCallTags tool_call_tags(const Tokenizer& tokenizer) {
  const auto open = tokenizer.id_of("<tool_call>"), close = tokenizer.id_of("</tool_call>");
  if (!open || !close || !tokenizer.is_added(*open) || !tokenizer.is_added(*close)) {
    fail<RequestError>(
        "the tokenizer has no single tokens <tool_call> and </tool_call>: tool_choice can only be auto or none");
  }
  const std::vector<TokenId> line_break = tokenizer.encode("\n");
  return {*open, *close, line_break.size() == 1 ? std::optional(line_break[0]) : std::nullopt};
}

std::unique_ptr<GrammarState> start_tool_calls(const ToolCallTags& tags, bool several, std::vector<TokenId> stop_tokens,
                                               std::function<std::unique_ptr<GrammarState>()> start_call) {
  return std::make_unique<ToolCallsState>(tags, several, std::move(stop_tokens), std::move(start_call));
}

}  // namespace sluice
