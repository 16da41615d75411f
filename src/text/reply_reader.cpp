#include "text/reply_reader.h"

#include <utility>

namespace sluice {

bool ends_in_reasoning(std::string_view prompt) {
  constexpr std::string_view opening = "<think>";
  const std::size_t end = prompt.find_last_not_of(" \n") + 1;
  return end >= opening.size() && prompt.compare(end - opening.size(), opening.size(), opening) == 0;
}

ReplyReader::ReplyReader(std::shared_ptr<const Tokenizer> tokenizer, ReplyReading reading)
    : is_chat_(reading.is_chat),
      detokenizer_(std::move(tokenizer)),
      cutter_(std::move(reading.stop), reading.include_stop),
      parser_(std::move(reading.format)) {}

ReplyDelta ReplyReader::add(TokenId token, bool ends_turn) {
  return ends_turn ? ReplyDelta{} : parse(cutter_.add(detokenizer_.add(token)));
}

ReplyDelta ReplyReader::finish() {
  std::string rest = cutter_.add(detokenizer_.finish());
  rest += cutter_.finish();
  ReplyDelta delta = parse(rest);
  if (!is_chat_) return delta;
  ReplyDelta last = parser_.finish();
  delta.reasoning += last.reasoning;
  delta.content += last.content;
  delta.tool_calls.insert(delta.tool_calls.end(), last.tool_calls.begin(), last.tool_calls.end());
  return delta;
}

std::optional<std::string> ReplyReader::stop_string() const {
  if (!cutter_.stopped()) return std::nullopt;
  return std::string(cutter_.stop());
}

ReplyDelta ReplyReader::parse(const std::string& text) {
  if (is_chat_) return parser_.add(text);
  text_ += text;
  ReplyDelta delta;
  delta.content = text;
  return delta;
}

}  // namespace sluice
