#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice {

/// One tool call of a reply, complete.
struct ToolCall {
  std::string id;  // "call_" and 24 letters or digits
  std::string name;
  std::string arguments;  // a JSON object, values typed by the tool's schema
};

/// What a piece of reply text added. Pieces of one kind, joined, do not depend on how the text was cut.
struct ReplyDelta {
  std::string reasoning;
  std::string content;
  /// Fragments of calls: a new index opens with id and name; arguments grow by fragments that join to valid
  /// JSON.
  struct CallFragment {
    int index = 0;
    std::string id, name;  // set in the first fragment of an index only
    std::string arguments;
  };
  std::vector<CallFragment> tool_calls;
};

struct Reply {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> tool_calls;
};

struct ReplyFormat {
  bool starts_in_reasoning = false;  // the prompt ended inside <think>
  Json tools;                        // the request's tools, for typing arguments; null: calls stay text
};

/// Splits a reply of the family into reasoning, content and tool calls, while it streams.
/// Text in, with special tokens kept ("<tool_call>" is text here, end-of-turn tokens are not passed in).
class ReplyParser {
 public:
  explicit ReplyParser(ReplyFormat format);
  ~ReplyParser();
  ReplyDelta add(std::string_view text);
  /// The end of the reply: whatever was held back. An unfinished call is kept as far as it can be typed.
  ReplyDelta finish();
  /// All so far; complete after finish().
  const Reply& reply() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
