#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "text/grammar.h"

namespace sluice {

/// A chat, in OpenAI's shape: what the chat template is given.
struct ChatPrompt {
  Json messages = Json::array();
  Json tools;                       // null, or an array of {"type": "function", "function": {...}}
  Json variables = Json::object();  // of the template: enable_thinking, reasoning_effort, ...
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the last message, the assistant's, is to be gone on with
};

/// A prompt of a completion: text, or token ids.
using TextPrompt = std::variant<std::string, std::vector<TokenId>>;

struct ToolChoice {
  enum class Kind : std::uint8_t { automatic, none, required, named };
  Kind kind = Kind::automatic;
  std::string name;  // named
};

/// What any of the APIs asks for, in one form. The parsers have checked types and ranges; whether the prompt fits and
/// the grammar compiles is found out when it is prepared.
struct GenerationRequest {
  std::string model;                // as the client named it; empty: whatever is served
  std::optional<ChatPrompt> chat;   // else:
  std::vector<TextPrompt> prompts;  // at least one
  ToolChoice tool_choice;
  bool parallel_tool_calls = true;
  bool separate_reasoning = true;  // chat: false: reasoning is the beginning of the content, up to its "</think>"
  bool include_reasoning = true;   // chat: false: reasoning is not shown
  SamplingParams sampling;         // with the defaults of the server filled in; seed of the first choice
  bool limits_output = true;       // false: max_tokens is 0 because nothing is to be generated (echo alone)
  std::vector<std::string> stop;
  bool include_stop = false;  // the stop string stays in the text
  int n = 1;                  // choices a prompt
  bool echo = false;          // completions: the prompt comes before the reply
  std::optional<GrammarSource> grammar;
  std::optional<int> thinking_budget;
  int priority = 0;
  bool stream = false;
  bool include_usage = false;     // a last event of the stream has the usage
  bool continuous_usage = false;  // every event has it
  bool return_token_ids = false;
  int shown_prompt_logprobs = -1;  // as asked for by that name; sampling may have more, for echo
  std::string user_request_id;
  std::vector<std::string> unknown_fields;  // ignored, for the log
};

/// What the parsers need to know of the server.
struct RequestDefaults {
  SamplingParams sampling;  // where the client is silent
  std::int64_t max_model_len = 0;
  int vocabulary = 0;      // ids from here on are a 400
  bool has_chat = true;    // there are a tokenizer and a template
  int most_choices = 128;  // n times prompts
  int most_logprobs = 20;  // top_logprobs, logprobs, prompt_logprobs
  std::size_t most_stop_strings = 16;
};

}  // namespace sluice
