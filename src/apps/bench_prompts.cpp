#include "apps/bench_prompts.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "apps/bench_reply.h"
#include "base/error.h"

namespace sluice {

namespace {

constexpr double answer_seconds = 30;
constexpr std::size_t fewest_words = 8;

constexpr const char* common_words[] = {
    "the",   "of",   "and",   "to",    "in",     "a",       "is",    "that",  "for",   "it",      "was",    "on",
    "with",  "as",   "be",    "at",    "by",     "this",    "from",  "or",    "have",  "an",      "they",   "which",
    "one",   "you",  "were",  "all",   "her",    "she",     "there", "would", "their", "we",      "him",    "been",
    "has",   "when", "who",   "will",  "no",     "more",    "if",    "out",   "so",    "up",      "what",   "its",
    "about", "than", "into",  "them",  "can",    "only",    "other", "time",  "new",   "some",    "could",  "these",
    "two",   "may",  "first", "then",  "do",     "any",     "like",  "my",    "now",   "over",    "such",   "our",
    "man",   "me",   "even",  "most",  "made",   "after",   "also",  "well",  "back",  "through", "year",   "much",
    "where", "your", "way",   "down",  "should", "because", "long",  "each",  "just",  "state",   "people", "those",
    "too",   "how",  "good",  "world", "day",    "work",    "life",  "right"};

/// Numbers of the object that a server says about a model, under the names that servers use.
std::int64_t vocabulary_of(const Json& model) {
  for (const char* name : {"vocab_size", "n_vocab", "vocabulary_size"}) {
    for (const Json* place : {&model, model.contains("meta") ? &model["meta"] : &model}) {
      if (!place->is_object() || !place->contains(name)) continue;
      const Json& value = (*place)[name];
      if (value.is_number_integer() && value.get<std::int64_t>() > 0) return value.get<std::int64_t>();
    }
  }
  return ServedModel{}.vocabulary;
}

/// Tokens of a text, with the special ones that the server puts around it; nothing if it has no /tokenize.
std::optional<std::int64_t> count_tokens(LoadClient& client, const std::string& model, const std::string& text) {
  // "content" is what llama.cpp calls it.
  const Json request = {{"model", model}, {"prompt", text}, {"content", text}};
  const HttpAnswer answer = client.fetch("POST", "/tokenize", request.dump(), answer_seconds);
  if (answer.status != 200) return std::nullopt;
  try {
    const Json json = parse_json(answer.body, "/tokenize");
    if (!json.is_object() || !json.contains("tokens") || !json["tokens"].is_array()) return std::nullopt;
    return static_cast<std::int64_t>(json["tokens"].size());
  } catch (const LoadError&) {
    return std::nullopt;
  }
}

/// Spreads the bits of a number over all 64.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

ServedModel find_served_model(LoadClient& client, const std::string& name) {
  const HttpAnswer answer = client.fetch("GET", "/v1/models", "", answer_seconds);
  if (answer.status != 200 && answer.status != 401 && answer.status != 403 && !name.empty()) return {name};
  if (answer.status != 200) fail<RequestError>("/v1/models: {}", error_message(answer.status, answer.body));
  std::vector<std::string> names;
  try {
    const Json json = parse_json(answer.body, "/v1/models");
    const Json list = json.is_object() && json.contains("data") ? json["data"] : Json();
    for (const Json& model : list) {
      if (!model.is_object() || !model.contains("id") || !model["id"].is_string()) continue;
      names.push_back(model["id"]);
      if (name.empty() || name == names.back()) return {names.back(), vocabulary_of(model)};
    }
  } catch (const LoadError& error) {
    fail<RequestError>("{}", error.what());
  }
  if (names.empty()) fail<RequestError>("/v1/models: the server lists no model; is it a server like OpenAI's?");
  fail<RequestError>("--model {}: the server does not serve it, but {}", name, fmt::join(names, ", "));
}

PromptMaker::PromptMaker(LoadClient& client, RequestShape shape, std::int64_t vocabulary)
    : shape_(std::move(shape)), vocabulary_(vocabulary), units_(shape_.input_tokens) {
  if (!shape_.prompt_ids) choose_words(client);
  const std::int64_t measured = measure(client, units_);
  if (shape_.prompt_ids || measured == units_) return;
  // Tokens are a fixed part, of the template, and a part in proportion to the words.
  const std::int64_t few = std::max<std::int64_t>(1, units_ / 2);
  const std::int64_t fewer = few == units_ ? measured : measure(client, few);
  const double slope = few == units_ ? 1.0 : static_cast<double>(measured - fewer) / static_cast<double>(units_ - few);
  const double fixed = static_cast<double>(measured) - slope * static_cast<double>(units_);
  const double wanted = slope > 0 ? (static_cast<double>(shape_.input_tokens) - fixed) / slope : 1.0;
  units_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted + 0.5), 1, shape_.input_tokens);
}

std::int64_t PromptMaker::measure(LoadClient& client, std::int64_t units) const {
  LoadPlan plan;
  plan.path = shape_.path();
  plan.streams = shape_.streams;
  const RequestSample sample = client.probe(plan, body_with(-1, units, 1));
  if (!sample.succeeded) fail<RequestError>("{}: {}", plan.path, sample.error);
  return sample.input_tokens;
}

void PromptMaker::choose_words(LoadClient& client) {
  for (const char* word : common_words) words_.push_back(std::string(" ") + word);
  const std::optional<std::int64_t> one = count_tokens(client, shape_.model, " a"),
                                    two = count_tokens(client, shape_.model, " a a");
  if (!one || !two || *two - *one != 1) return;
  const std::int64_t around = *one - 1;
  std::vector<std::string> whole;
  for (const std::string& word : words_) {
    if (count_tokens(client, shape_.model, word) == around + 1) whole.push_back(word);
  }
  if (whole.size() >= fewest_words) words_ = std::move(whole);
}

std::string PromptMaker::body_with(std::int64_t i, std::int64_t units, std::int64_t output_tokens) const {
  std::mt19937_64 random(mixed(shape_.seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(i)));
  Json body = {{"model", shape_.model}};
  if (shape_.prompt_ids) {
    // The last ids of a vocabulary are special tokens.
    const auto ids = static_cast<std::uint64_t>(std::max<std::int64_t>(1, vocabulary_ * 3 / 4));
    Json prompt = Json::array();
    for (std::int64_t k = 0; k < units; ++k) prompt.push_back(random() % ids);
    body["prompt"] = std::move(prompt);
  } else {
    std::string text;
    for (std::int64_t k = 0; k < units; ++k) text += words_[random() % words_.size()];
    if (shape_.chat) {
      body["messages"] = Json::array({{{"role", "user"}, {"content", std::move(text)}}});
    } else {
      body["prompt"] = std::move(text);
    }
  }
  body["max_tokens"] = output_tokens;
  body["temperature"] = 0;
  body["ignore_eos"] = true;
  body["stream"] = shape_.streams;
  if (shape_.streams) body["stream_options"] = {{"include_usage", true}};
  return body.dump();
}

}  // namespace sluice
