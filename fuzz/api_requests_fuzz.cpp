// Any bytes as the body of a request: the first byte chooses the API. What is refused is a 400 whose error is JSON;
// what is accepted keeps the limits of the server, and its reply is written as JSON whatever text the model makes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "server/generation_api.h"
#include "server/small_limits.h"

namespace {

using namespace sluice;

void check_limits(const GenerationRequest& request, const RequestDefaults& limits) {
  CHECK(request.chat.has_value() != !request.prompts.empty());
  const int prompts = request.chat ? 1 : static_cast<int>(request.prompts.size());
  CHECK(request.n >= 1 && request.n * prompts <= limits.most_choices);
  CHECK(request.stop.size() <= limits.most_stop_strings);
  for (const std::string& stop : request.stop) CHECK(!stop.empty());
  const SamplingParams& sampling = request.sampling;
  CHECK(sampling.temperature >= 0.0f && sampling.temperature <= 2.0f, "{}", sampling.temperature);
  CHECK(sampling.top_p > 0.0f && sampling.top_p <= 1.0f, "{}", sampling.top_p);
  CHECK(sampling.top_logprobs <= limits.most_logprobs && sampling.prompt_logprobs <= limits.most_logprobs);
  if (request.chat) CHECK(request.chat->messages.is_array() && !request.chat->messages.empty());
}

/// Every line of a stream is empty, names its event, is a comment, or carries JSON (or the last word).
void check_events(std::string_view events) {
  while (!events.empty()) {
    const std::size_t end = events.find('\n');
    CHECK(end != std::string_view::npos);
    const std::string_view line = events.substr(0, end);
    events.remove_prefix(end + 1);
    if (line.empty() || line.starts_with("event: ") || line.starts_with(":")) continue;
    CHECK(line.starts_with("data: "), "{}", line);
    CHECK(line == "data: [DONE]" || Json::accept(line.substr(6)), "{}", line);
  }
}

void check_reply(const GenerationApi& api, const Json& body, const GenerationRequest& request) {
  const std::unique_ptr<ReplyWriter> writer = api.make_writer(body, request, {"id", 0, "model", "build"});
  ReplyResult result;
  result.prompts.resize(request.chat ? 1 : request.prompts.size());
  result.choices.resize(result.prompts.size() * static_cast<std::size_t>(request.n));
  for (ReplyResult::Choice& choice : result.choices) {
    choice.reply = {"\x01 thought", "\"content\"\n", {{"call_1", "f", "{\"a\":1}"}}};
    choice.end.reason = ChoiceEnd::Reason::tool_calls;
  }
  if (!request.stream) {
    CHECK(Json::accept(writer->whole(result).dump(-1, ' ', false, Json::error_handler_t::replace)));
    return;
  }
  std::string events;
  writer->begin(result, events);
  for (std::size_t i = 0; i < result.choices.size(); ++i) {
    ChoiceDelta delta;
    delta.index = static_cast<int>(i);
    delta.text = {"\x01 thought", "\"content\"\n", {{0, "call_1", "f", "{\"a\":1}"}}};
    writer->add(delta, result, events);
    result.choices[i].end.index = static_cast<int>(i);
    writer->end_choice(result.choices[i].end, result, events);
  }
  writer->end(result, events);
  check_events(events);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const GenerationApi& api = generation_apis()[data[0] % generation_apis().size()];
  const RequestDefaults limits = test_defaults();
  Json body;
  try {
    body = parse_json({reinterpret_cast<const char*>(data) + 1, size - 1}, "the body");
  } catch (const LoadError&) {
    return 0;
  }
  try {
    const GenerationRequest request = api.parse(body, limits);
    check_limits(request, limits);
    check_reply(api, body, request);
  } catch (const ApiError& error) {
    CHECK(error.status() == 400);
    CHECK(Json::accept(api.error_json(error).dump()));
  }
  return 0;
}
