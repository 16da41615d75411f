#pragma once
#include <optional>
#include <string>

#include "base/json.h"
#include "server/generation_request.h"

// Chats in OpenAI's shape, checked and brought to the one form that chat templates are given. `path` is where the
// value stands in the request ("messages"). Every function throws ApiError (400) that names the field at fault.
namespace sluice {

/// messages: a list, not empty, of {"role", "content", ...}. Developer messages become system messages, content
/// becomes a string (parts are joined), arguments of tool calls become objects, "reasoning" becomes
/// "reasoning_content"; fields that no template reads are left out.
Json normalized_messages(const Json& messages, const std::string& path);

/// tools: a list of {"type": "function", "function": {"name", "description", "parameters", ...}}; null for an empty
/// one. Fields that are null are left out, others stay as they are.
Json normalized_tools(const Json& tools, const std::string& path);

/// The normalized tool of this name; null where there is none.
const Json* find_tool(const Json& tools, const std::string& name);

/// choice: "auto", "none", "required" or {"type": "function", "function": {"name"}}. tools: normalized.
ToolChoice parse_tool_choice(const Json& choice, const Json& tools, const std::string& path);

/// Gives the request's chat its tools (normalized, or null) and says how they are to be used: with none, the model
/// does not see them; required and named calls become the request's grammar. request.parallel_tool_calls and
/// request.grammar must be set before; path: of the tool choice, for a request with two grammars.
void set_tools(GenerationRequest& request, Json tools, ToolChoice choice, const std::string& path);

/// What a client wants of the model's thinking. An enable_thinking that is among the template's variables already
/// stays. effort: "none" turns it off, "minimal" to "max" turn it on and are passed on as reasoning_effort.
void set_reasoning_effort(ChatPrompt& chat, const std::string& effort, const std::string& path);

}  // namespace sluice
