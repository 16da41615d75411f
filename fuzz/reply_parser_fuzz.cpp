// Parses the input as a reply, whole and cut, and compares. The first byte chooses format and cuts.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/reply_parser.h"
#include "text/unicode.h"

namespace {

using namespace sluice;

const Json& tools() {
  static const Json declared = Json::parse(R"json([{"name": "f", "parameters": {"properties": {
      "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "o": {"type": "object"},
      "l": {"anyOf": [{"type": "array"}, {"type": "null"}]}, "e": {"enum": [1, "two", null]}}}}, {"name": "g"}])json");
  return declared;
}

void append(Reply& reply, const ReplyDelta& delta) {
  reply.reasoning += delta.reasoning;
  reply.content += delta.content;
  for (const auto& fragment : delta.tool_calls) {
    if (!fragment.id.empty()) reply.tool_calls.push_back({fragment.id, fragment.name, {}});
    CHECK(fragment.index + 1 == static_cast<int>(reply.tool_calls.size()));
    reply.tool_calls.back().arguments += fragment.arguments;
  }
}

Reply parse(std::string_view text, std::size_t piece, bool starts_in_reasoning) {
  ReplyParser parser({starts_in_reasoning, tools()});
  Reply reply;
  for (std::size_t at = 0; at < text.size(); at += piece) append(reply, parser.add(text.substr(at, piece)));
  append(reply, parser.finish());
  CHECK(reply.content == parser.reply().content);
  return reply;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool starts_in_reasoning = data[0] & 1;
  const Reply whole = parse(text, text.size(), starts_in_reasoning);
  const Reply cut = parse(text, 1 + (data[0] >> 1) % 16, starts_in_reasoning);
  CHECK(whole.reasoning == cut.reasoning && whole.content == cut.content);
  CHECK(is_valid_utf8(whole.reasoning) && is_valid_utf8(whole.content));
  CHECK(whole.tool_calls.size() == cut.tool_calls.size());
  for (std::size_t i = 0; i < whole.tool_calls.size(); ++i) {
    CHECK(whole.tool_calls[i].name == cut.tool_calls[i].name);
    CHECK(whole.tool_calls[i].arguments == cut.tool_calls[i].arguments);
    CHECK(Json::accept(whole.tool_calls[i].arguments), "{}", whole.tool_calls[i].arguments);
  }
  return 0;
}
