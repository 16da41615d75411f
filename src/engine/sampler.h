#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/candidates.h"
#include "engine/request.h"

namespace sluice {

/// What a row of logits led to: a token, or why there is none.
struct Sampled {
  TokenId token = 0;
  std::optional<float> logprob;
  int rank = 0;  // with logprob
  std::vector<TokenLogprob> top_logprobs;
  std::string error;              // empty: there is a token
  bool is_request_fault = false;  // of error
};

/// Memory that all samplers of a thread share; nothing in it outlives a call.
struct SamplerScratch {
  std::vector<Candidate> candidates;
  std::vector<double> cumulative;
  std::vector<float> raw;  // copy of the row, when log-probabilities are wanted
};

/// Chooses the tokens of one request, in the order of operations that SamplingParams documents. What it draws depends
/// on the seed and on how many tokens it chose before, on nothing else: not on the other requests of a step.
class Sampler {
 public:
  /// vocabulary: ids from here on are never chosen. stop_tokens: those that end this request.
  Sampler(const SamplingParams& params, std::span<const TokenId> prompt, std::vector<TokenId> stop_tokens,
          int vocabulary, std::uint64_t seed);

  /// The next token after a row of logits [columns], which is overwritten. Log-probabilities are those of the row as it
  /// comes, over the ids of the vocabulary. Penalties (Keskar et al., arXiv 1909.05858, for repetition) count
  /// what this sampler chose, and for repetition the prompt.
  Sampled sample(std::span<float> logits, TokenFilter* filter, SamplerScratch& scratch);

 private:
  bool adjust(std::span<float> logits, TokenFilter* filter) const;
  void penalize(std::span<float> logits) const;
  TokenId draw(std::span<const float> logits, float largest, SamplerScratch& scratch) const;
  void collect(std::span<const float> logits, float largest, std::vector<Candidate>& candidates) const;
  void collect_nucleus(std::span<const float> logits, float largest, std::vector<Candidate>& candidates) const;

  SamplingParams params_;
  std::vector<TokenId> prompt_;  // distinct ids, when penalties ask for them
  std::vector<TokenId> stop_tokens_;
  std::size_t vocabulary_;
  std::uint64_t seed_, chosen_ = 0;
  std::unordered_map<TokenId, int> counts_;  // of tokens chosen
};

}  // namespace sluice
