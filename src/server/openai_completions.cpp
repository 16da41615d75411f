#include "server/openai_completions.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "server/api_error.h"
#include "server/fields.h"
#include "server/sampling_fields.h"
#include "server/structure_fields.h"

namespace sluice {

namespace {

/// OpenAI's: unlike chats, completions are short unless asked to be longer.
constexpr int default_max_tokens = 16;
constexpr std::string_view prompt_forms = "a string, an array of strings, of token ids, or of arrays of token ids";

std::vector<TokenId> token_ids(const Json& list, int vocabulary, const std::string& path) {
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& value = list[i];
    const bool fits = value.is_number_integer() && value >= 0 && value < vocabulary;
    if (!fits) fail_type(fmt::format("{}[{}]", path, i), fmt::format("a token id from 0 to {}", vocabulary - 1), value);
    ids.push_back(value.get<TokenId>());
  }
  return ids;
}

TextPrompt one_of_many(const Json& value, bool is_text, int vocabulary, const std::string& path) {
  if (is_text) {
    if (!value.is_string()) fail_type(path, "a string, as the first of the list is one", value);
    return value.get<std::string>();
  }
  if (!value.is_array()) fail_type(path, "an array of token ids, as the first of the list is one", value);
  if (value.empty()) fail_field(path, "at least one token is needed");
  return token_ids(value, vocabulary, path);
}

std::vector<TextPrompt> parse_prompts(const Json& prompt, const RequestDefaults& defaults, const std::string& path) {
  if (prompt.is_string()) return {prompt.get<std::string>()};
  if (!prompt.is_array()) fail_type(path, prompt_forms, prompt);
  if (prompt.empty()) fail_field(path, "at least one prompt is needed");
  const Json& first = prompt.front();
  if (first.is_number()) return {token_ids(prompt, defaults.vocabulary, path)};
  if (!first.is_string() && !first.is_array())
    fail_type(path + "[0]", "a string, a token id or an array of them", first);
  if (prompt.size() > static_cast<std::size_t>(defaults.most_choices))
    fail_field(path, fmt::format("at most {} prompts are taken, found {}", defaults.most_choices, prompt.size()));
  std::vector<TextPrompt> prompts;
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompts.push_back(one_of_many(prompt[i], first.is_string(), defaults.vocabulary, fmt::format("{}[{}]", path, i)));
  return prompts;
}

void check_choices(const Fields& fields, const GenerationRequest& request, const RequestDefaults& defaults) {
  const std::size_t most = static_cast<std::size_t>(defaults.most_choices);
  if (request.prompts.size() * static_cast<std::size_t>(request.n) <= most) return;
  fail_field(fields.path_of("n"), fmt::format("at most {} replies are given to a request; {} prompts times {} is more",
                                              most, request.prompts.size(), request.n));
}

void read_length(Fields& fields, GenerationRequest& request) {
  SamplingParams& sampling = request.sampling;
  const auto count = read_token_count(fields, {"max_tokens", "max_completion_tokens"}, 0);
  request.limits_output = count != 0;
  if (count == 0 && !request.echo)
    fail_field(fields.path_of("max_tokens"), "expected an integer of 1 or more (0 only with echo), found 0");
  if (count) {
    sampling.max_tokens = *count;
  } else if (sampling.max_tokens == 0) {
    sampling.max_tokens = std::max(default_max_tokens, sampling.min_tokens);
  }
  check_min_tokens(fields, sampling);
}

void read_logprobs(Fields& fields, const RequestDefaults& defaults, GenerationRequest& request) {
  SamplingParams& sampling = request.sampling;
  const auto count = fields.integer("logprobs", 0, defaults.most_logprobs);
  sampling.top_logprobs = static_cast<int>(count.value_or(-1));
  if (request.echo) sampling.prompt_logprobs = std::max(sampling.prompt_logprobs, sampling.top_logprobs);
}

void refuse_what_completions_lack(Fields& fields, int n) {
  if (const auto count = fields.integer("best_of", 1, INT64_MAX); count && *count != n)
    fields.refuse("best_of", "every choice is returned; best_of must be n");
  if (const Json* suffix = fields.find("suffix"); suffix != nullptr && *suffix != "")
    fields.refuse("suffix", "nothing can be put after a reply");
}

}  // namespace

GenerationRequest parse_completion_request(const Json& body, const RequestDefaults& defaults) {
  Fields fields(body);
  GenerationRequest request;
  request.model = fields.text("model").value_or("");
  refuse_foreign_fields(fields);
  if (!fields.has("prompt")) fail_field(fields.path_of("prompt"), "this field is required");
  request.prompts = parse_prompts(*fields.find("prompt"), defaults, fields.path_of("prompt"));
  read_sampling_fields(fields, defaults, request);
  check_choices(fields, request, defaults);
  request.echo = fields.boolean("echo").value_or(false);
  read_length(fields, request);
  read_logprobs(fields, defaults, request);
  read_stream_fields(fields, request);
  request.grammar = read_structure_fields(fields);
  refuse_what_completions_lack(fields, request.n);
  for (const char* key : {"user", "add_special_tokens", "spaces_between_special_tokens"}) fields.ignore(key);
  for (std::string& name : fields.unknown()) request.unknown_fields.push_back(std::move(name));
  return request;
}

}  // namespace sluice
