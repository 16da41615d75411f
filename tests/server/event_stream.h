#pragma once
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "server/reply.h"

namespace sluice {

/// A server-sent event with a name and JSON data; pings have no data.
struct StreamEvent {
  std::string name;
  Json data;
};

/// What a client of server-sent events makes of a stream.
inline std::vector<StreamEvent> parse_events(const std::string& stream) {
  std::vector<StreamEvent> events;
  for (std::size_t begin = 0; begin < stream.size();) {
    const std::size_t end = stream.find("\n\n", begin);
    if (end == std::string::npos) {
      ADD_FAILURE() << "an event does not end: " << stream.substr(begin);
      break;
    }
    const std::string text = stream.substr(begin, end - begin);
    begin = end + 2;
    if (text.front() == ':') continue;
    const std::size_t line = text.find('\n');
    EXPECT_EQ(text.substr(0, 7), "event: ");
    EXPECT_EQ(text.substr(line + 1, 6), "data: ");
    events.push_back({text.substr(7, line - 7), Json::parse(text.substr(line + 7))});
  }
  return events;
}

inline std::vector<std::string> names_of(const std::vector<StreamEvent>& events) {
  std::vector<std::string> names;
  for (const StreamEvent& event : events) names.push_back(event.name);
  return names;
}

/// The reply, written as a stream of its deltas.
inline std::string written_stream(ReplyWriter& writer, const std::vector<ReplyDelta>& deltas,
                                  const ReplyResult& result) {
  std::string out;
  ReplyResult so_far;
  so_far.prompts = result.prompts;
  so_far.choices.resize(1);
  so_far.usage.prompt_tokens = result.usage.prompt_tokens;
  writer.begin(so_far, out);
  for (const ReplyDelta& delta : deltas) writer.add({0, delta, {}}, so_far, out);
  writer.end_choice(result.choices.front().end, result, out);
  writer.end(result, out);
  return out;
}

inline const ReplyIdentity test_identity{"abcdefghijklmnopqrstuvwx", 1700000000, "tiny", "fp"};

/// Reasoning, text and two calls.
inline ReplyResult full_result() {
  ReplyResult result;
  result.prompts.resize(1);
  result.choices.resize(1);
  result.choices[0].reply = {"I think\n\"so\".",
                             "Grüße, <b>Welt</b>\\",
                             {{"call_aaaa", "get_weather", R"({"city":"Graz"})"}, {"call_bbbb", "now", "{}"}}};
  result.choices[0].end.reason = ChoiceEnd::Reason::tool_calls;
  result.usage = {20, 12, 5, 8};
  result.timings = {1.0, 11.0, 2031.0, 20, 12};
  return result;
}

/// Its deltas, as a parser cuts them.
inline std::vector<ReplyDelta> full_deltas() {
  return {{"I think", "", {}},
          {"\n\"so\".", "Grü", {}},
          {"", "ße, <b>Welt</b>\\", {{0, "call_aaaa", "get_weather", ""}}},
          {"", "", {{0, "", "", R"({"city":)"}}},
          {"", "", {{0, "", "", R"("Graz"})"}, {1, "call_bbbb", "now", "{}"}}}};
}

}  // namespace sluice
