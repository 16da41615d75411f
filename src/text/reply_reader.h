#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/detokenizer.h"
#include "text/reply_parser.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace sluice {

/// Whether a rendered prompt ends inside the model's thinking: what it says first is reasoning.
bool ends_in_reasoning(std::string_view prompt);

/// How the tokens of a reply are to be read.
struct ReplyReading {
  bool is_chat = false;  // split into reasoning, content and tool calls; else all is content
  ReplyFormat format;
  std::vector<std::string> stop;
  bool include_stop = false;  // the stop string stays in the text
};

/// Tokens of a reply to the parts of its text, while it streams.
class ReplyReader {
 public:
  ReplyReader(std::shared_ptr<const Tokenizer> tokenizer, ReplyReading reading);
  /// What the token adds; nothing for one that only ends the turn.
  ReplyDelta add(TokenId token, bool ends_turn);
  /// The end of the reply: what was held back.
  ReplyDelta finish();
  /// All so far; complete after finish().
  Reply reply() const { return is_chat_ ? parser_.reply() : Reply{"", text_, {}}; }
  /// The stop string that was found.
  std::optional<std::string> stop_string() const;

 private:
  ReplyDelta parse(const std::string& text);

  bool is_chat_;
  Detokenizer detokenizer_;
  StopCutter cutter_;
  ReplyParser parser_;
  std::string text_;
};

}  // namespace sluice
