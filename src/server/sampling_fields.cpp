#include "server/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/api_error.h"

namespace sluice {

namespace {

constexpr int int_max = std::numeric_limits<int>::max();
constexpr std::size_t most_stop_token_ids = 1024;
constexpr std::size_t longest_stop_string = 4096;
constexpr std::size_t longest_request_id = 256;

void read_number(Fields& fields, std::string_view key, double low, double high, float& value) {
  if (const auto found = fields.number(key, low, high)) value = static_cast<float>(*found);
}

/// Above 0, up to 1; also as a float.
void read_top_p(Fields& fields, float& top_p) {
  const Json* found = fields.find("top_p");
  if (found == nullptr) return;
  const double value = found->is_number() ? found->get<double>() : 0.0;
  if (value <= 0.0 || value > 1.0) fail_type(fields.path_of("top_p"), "a number above 0, up to 1", *found);
  top_p = std::max(static_cast<float>(value), std::numeric_limits<float>::min());
}

TokenId token_id(const Json& value, int vocabulary, const std::string& path) {
  const bool fits = value.is_number_integer() && value >= 0 && value < vocabulary;
  if (!fits) fail_type(path, fmt::format("a token id from 0 to {}", vocabulary - 1), value);
  return value.get<TokenId>();
}

void read_stop_token_ids(Fields& fields, int vocabulary, std::vector<TokenId>& ids) {
  const Json* list = fields.array("stop_token_ids");
  if (list == nullptr) return;
  const std::string path = fields.path_of("stop_token_ids");
  if (list->size() > most_stop_token_ids)
    fail_field(path, fmt::format("at most {} ids are taken, found {}", most_stop_token_ids, list->size()));
  ids.clear();
  for (std::size_t i = 0; i < list->size(); ++i)
    ids.push_back(token_id((*list)[i], vocabulary, fmt::format("{}[{}]", path, i)));
}

/// A decimal number without sign or leading zeros, so that no id can be written in two ways.
std::optional<TokenId> parse_id(std::string_view text, int vocabulary) {
  TokenId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || id < 0 || id >= vocabulary || (text.size() > 1 && text[0] == '0') || text[0] == '-')
    return std::nullopt;
  return id;
}

void read_logit_bias(Fields& fields, int vocabulary, std::vector<std::pair<TokenId, float>>& biases) {
  const Json* object = fields.object("logit_bias");
  if (object == nullptr) return;
  biases.clear();
  for (const auto& [key, value] : object->items()) {
    const auto id = parse_id(key, vocabulary);
    if (!id)
      fail_type(fields.path_of("logit_bias"), fmt::format("keys that are token ids from 0 to {}", vocabulary - 1), key);
    const double bias = value.is_number() ? value.get<double>() : 101.0;
    if (bias < -100.0 || bias > 100.0)
      fail_type(fmt::format("{}.{}", fields.path_of("logit_bias"), key), "a number from -100 to 100", value);
    biases.emplace_back(*id, static_cast<float>(bias));
  }
}

/// The fields of SamplingParams that are plain numbers.
void read_numbers(Fields& fields, const RequestDefaults& defaults, SamplingParams& sampling) {
  read_number(fields, "temperature", 0.0, 2.0, sampling.temperature);
  read_top_p(fields, sampling.top_p);
  if (const auto top_k = fields.integer("top_k", -1, int_max)) sampling.top_k = std::max(static_cast<int>(*top_k), 0);
  read_number(fields, "min_p", 0.0, 1.0, sampling.min_p);
  read_number(fields, "presence_penalty", -2.0, 2.0, sampling.presence_penalty);
  read_number(fields, "frequency_penalty", -2.0, 2.0, sampling.frequency_penalty);
  read_number(fields, "repetition_penalty", 0.01, 100.0, sampling.repetition_penalty);
  if (const auto seed =
          fields.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()))
    sampling.seed = static_cast<std::uint64_t>(*seed);
  if (const auto count = fields.integer("min_tokens", 0, int_max)) sampling.min_tokens = static_cast<int>(*count);
  if (const auto ignore = fields.boolean("ignore_eos")) sampling.ignore_eos = *ignore;
  if (const auto count = fields.integer("prompt_logprobs", 0, defaults.most_logprobs))
    sampling.prompt_logprobs = static_cast<int>(*count);
}

/// What asks for nothing special.
struct ForeignField {
  std::string_view key;
  Json harmless;
  std::string_view reason;
};

const std::vector<ForeignField>& foreign_fields() {
  static const std::vector<ForeignField> all = {
      {"use_beam_search", false, "there is no beam search"},
      {"length_penalty", 1, "there is no beam search"},
      {"allowed_token_ids", Json::array(), "use logit_bias or structured_outputs"},
      {"bad_words", Json::array(), "use logit_bias"},
      {"logits_processors", Json::array(), "requests cannot bring code"},
      {"logit_processors", Json::array(), "requests cannot bring code"},
      {"truncate_prompt_tokens", nullptr, "a prompt that is too long is an error"},
      {"return_tokens_as_token_ids", false, "use return_token_ids"},
      {"skip_special_tokens", true, "special tokens are never part of the text"},
      {"detokenize", true, "replies are text; return_token_ids adds the ids"},
      {"prompt_embeds", nullptr, "prompts are text or token ids"},
      {"mm_processor_kwargs", nullptr, "there are no pictures, films or audio"},
      {"kv_transfer_params", nullptr, "caches are not transferred"},
      {"documents", Json::array(), "put them into the messages"},
      {"chat_template", nullptr, "only the model's own template is used"},
      {"guided_whitespace_pattern", nullptr, "white space follows from the grammar"},
  };
  return all;
}

}  // namespace

std::vector<std::string> parse_stop(const Json& stop, const RequestDefaults& defaults, const std::string& path) {
  if (!stop.is_string() && !stop.is_array()) fail_type(path, "a string or an array of strings", stop);
  const Json list = stop.is_string() ? Json::array({stop}) : stop;
  if (list.size() > defaults.most_stop_strings)
    fail_field(path, fmt::format("at most {} strings are taken, found {}", defaults.most_stop_strings, list.size()));
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = stop.is_string() ? path : fmt::format("{}[{}]", path, i);
    if (!list[i].is_string() || list[i].get_ref<const std::string&>().empty())
      fail_type(place, "a string that is not empty", list[i]);
    strings.push_back(list[i].get<std::string>());
    if (strings.back().size() > longest_stop_string)
      fail_field(place,
                 fmt::format("at most {} bytes are taken, found {}", longest_stop_string, strings.back().size()));
  }
  return strings;
}

void read_sampling_fields(Fields& fields, const RequestDefaults& defaults, GenerationRequest& request) {
  request.sampling = defaults.sampling;
  read_numbers(fields, defaults, request.sampling);
  request.shown_prompt_logprobs = request.sampling.prompt_logprobs;
  read_stop_token_ids(fields, defaults.vocabulary, request.sampling.stop_token_ids);
  read_logit_bias(fields, defaults.vocabulary, request.sampling.logit_bias);
  if (const Json* stop = fields.find("stop")) request.stop = parse_stop(*stop, defaults, fields.path_of("stop"));
  request.include_stop = fields.boolean("include_stop_str_in_output").value_or(false);
  request.n = static_cast<int>(fields.integer("n", 1, defaults.most_choices).value_or(1));
  if (const auto priority = fields.integer("priority", -int_max, int_max))
    request.priority = static_cast<int>(*priority);
  request.thinking_budget = read_token_count(fields, {"thinking_budget", "thinking_token_budget"}, 0);
  request.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  request.user_request_id = fields.text("request_id").value_or("");
  if (request.user_request_id.size() > longest_request_id)
    fail_field(fields.path_of("request_id"), fmt::format("at most {} bytes are taken", longest_request_id));
}

std::optional<int> read_token_count(Fields& fields, const std::vector<std::string>& keys, int low) {
  std::optional<int> count;
  for (const std::string& key : keys) {
    const auto found = fields.integer(key, low, std::numeric_limits<std::int64_t>::max());
    if (found && !count) count = static_cast<int>(std::min<std::int64_t>(*found, int_max));
  }
  return count;
}

void check_min_tokens(const Fields& fields, const SamplingParams& sampling) {
  if (sampling.max_tokens == 0 || sampling.min_tokens <= sampling.max_tokens) return;
  fail_field(fields.path_of("min_tokens"),
             fmt::format("expected at most max_tokens, {}, found {}", sampling.max_tokens, sampling.min_tokens));
}

void read_stream_fields(Fields& fields, GenerationRequest& request) {
  request.stream = fields.boolean("stream").value_or(false);
  if (request.stream && request.shown_prompt_logprobs >= 0)
    fail_field(fields.path_of("prompt_logprobs"), "not available when stream is true");
  const Json* object = fields.object("stream_options");
  if (object == nullptr) return;
  const std::string path = fields.path_of("stream_options");
  if (!request.stream) fail_field(path, "only allowed when stream is true");
  Fields options(*object, path);
  request.include_usage = options.boolean("include_usage").value_or(false);
  request.continuous_usage = request.include_usage && options.boolean("continuous_usage_stats").value_or(false);
  options.ignore("include_obfuscation");
  for (const std::string& name : options.unknown()) request.unknown_fields.push_back(options.path_of(name));
}

void refuse_foreign_fields(Fields& fields) {
  for (const ForeignField& foreign : foreign_fields()) {
    const Json* found = fields.find(foreign.key);
    if (found != nullptr && *found != foreign.harmless) fields.refuse(foreign.key, foreign.reason);
  }
}

}  // namespace sluice
