#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench_load.h"
#include "base/json.h"

namespace sluice {

/// What the requests of a load test look like.
struct RequestShape {
  std::string model;
  bool chat = false;        // else completions
  bool prompt_ids = false;  // completions: random token ids, else random words
  bool streams = true;
  std::int64_t input_tokens = 128, output_tokens = 128;
  std::uint64_t seed = 0;

  std::string path() const { return chat ? "/v1/chat/completions" : "/v1/completions"; }
};

/// The first model of /v1/models, or the one with this name.
struct ServedModel {
  std::string name;
  std::int64_t vocabulary = 1000;  // ids below this exist; when the server does not say, few enough for any model
};

/// Throws RequestError: the server cannot be reached, refuses, or does not serve that model.
ServedModel find_served_model(LoadClient& client, const std::string& name);

/// Makes the bodies of requests whose prompts have about the wanted length and share no beginning.
class PromptMaker {
 public:
  /// Finds words that are one token each with the server's /tokenize if it has one, and what a template adds by a
  /// request for one token. Throws RequestError when the server does not answer that request.
  PromptMaker(LoadClient& client, RequestShape shape, std::int64_t vocabulary);
  /// The JSON of request i; the same for the same shape and i.
  std::string body(std::int64_t i) const { return body_with(i, units_, shape_.output_tokens); }

 private:
  std::string body_with(std::int64_t i, std::int64_t units, std::int64_t output_tokens) const;
  std::int64_t measure(LoadClient& client, std::int64_t units) const;
  void choose_words(LoadClient& client);

  RequestShape shape_;
  std::int64_t vocabulary_, units_;  // words, or ids, of a prompt
  std::vector<std::string> words_;   // with a blank in front
};

}  // namespace sluice
