#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/grammar.h"

namespace sluice {

/// What stands between <tool_call> and </tool_call> when one of the tools is called (see ToolCallReader), as a
/// structural tag of xgrammar: required parameters in the order of the schema, the others or not, values by type.
/// Throws RequestError for tools whose calls cannot be written so.
Json tool_call_format(const Json& tools);

/// The tags are single tokens that no text is made of.
struct ToolCallTags {
  TokenId open = 0, close = 0;
  std::optional<TokenId> line_break;  // between calls
};
/// Throws RequestError when the tokenizer has none.
ToolCallTags tool_call_tags(const Tokenizer& tokenizer);

/// A reply of tool calls and nothing else. start_call: the state of a new call's inside, to be ended by tags.close.
std::unique_ptr<GrammarState> start_tool_calls(const ToolCallTags& tags, bool several, std::vector<TokenId> stop_tokens,
                                               std::function<std::unique_ptr<GrammarState>()> start_call);

}  // namespace sluice
