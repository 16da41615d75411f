#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "engine/random.h"

namespace sluice {

namespace {
constexpr float infinity = std::numeric_limits<float>::infinity();

Sampled no_token(std::string error, bool is_request_fault) {
  Sampled sampled;
  sampled.error = std::move(error);
  sampled.is_request_fault = is_request_fault;
  return sampled;
}
}  // namespace

Sampler::Sampler(const SamplingParams& params, std::span<const TokenId> prompt, std::vector<TokenId> stop_tokens,
                 int vocabulary, std::uint64_t seed)
    : params_(params),
      stop_tokens_(std::move(stop_tokens)),
      vocabulary_(static_cast<std::size_t>(vocabulary)),
      seed_(seed) {
  if (params.repetition_penalty == 1.0f) return;
  prompt_.assign(prompt.begin(), prompt.end());
  std::sort(prompt_.begin(), prompt_.end());
  prompt_.erase(std::unique(prompt_.begin(), prompt_.end()), prompt_.end());
}

Sampled Sampler::sample(std::span<float> row, TokenFilter* filter, SamplerScratch& scratch) {
  CHECK(row.size() >= vocabulary_, "{} columns for {} ids", row.size(), vocabulary_);
  const std::span<float> logits = row.first(vocabulary_);
  RowSummary summary = summarize(logits);
  if (!summary.valid || !summarize(row.subspan(vocabulary_)).valid) {
    return no_token(fmt::format("the model's logits after {} tokens of output are not finite numbers", chosen_), false);
  }
  const bool logprobs = params_.top_logprobs >= 0;
  const float largest = summary.largest;
  if (logprobs) scratch.raw.assign(logits.begin(), logits.end());
  if (adjust(logits, filter)) summary = summarize(logits);
  if (!summary.valid) return no_token("logit_bias and penalties drive the logits out of the range of numbers", true);
  if (summary.largest == -infinity) {
    return no_token("no token is left to choose from: the grammar, min_tokens or logit_bias forbid all of them", true);
  }
  Sampled sampled;
  sampled.token = params_.temperature == 0.0f ? summary.token : draw(logits, summary.largest, scratch);
  if (logprobs) {
    const LogSoftmax logprob(scratch.raw, largest);
    const float logit = scratch.raw[static_cast<std::size_t>(sampled.token)];
    sampled.logprob = logprob(logit);
    sampled.rank = rank_of(scratch.raw, logit, sampled.token);
    sampled.top_logprobs = logprob.best(static_cast<std::size_t>(params_.top_logprobs), scratch.candidates);
  }
  ++chosen_;
  ++counts_[sampled.token];
  if (filter != nullptr) filter->accept(sampled.token);
  return sampled;
}

/// True when it may have changed something.
bool Sampler::adjust(std::span<float> logits, TokenFilter* filter) const {
  if (filter != nullptr) filter->mask(logits);
  const bool too_early = chosen_ < static_cast<std::uint64_t>(params_.min_tokens);
  if (too_early) {
    for (const TokenId token : stop_tokens_) {
      if (static_cast<std::size_t>(token) < logits.size()) logits[static_cast<std::size_t>(token)] = -infinity;
    }
  }
  for (const auto& [token, bias] : params_.logit_bias) logits[static_cast<std::size_t>(token)] += bias;
  const bool penalties =
      params_.repetition_penalty != 1.0f || params_.presence_penalty != 0.0f || params_.frequency_penalty != 0.0f;
  if (penalties) penalize(logits);
  return filter != nullptr || too_early || !params_.logit_bias.empty() || penalties;
}

void Sampler::penalize(std::span<float> logits) const {
  auto repeat = [&](TokenId token) {
    if (static_cast<std::size_t>(token) >= logits.size()) return;
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = logit > 0.0f ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
  };
  if (params_.repetition_penalty != 1.0f) {
    for (const TokenId token : prompt_) repeat(token);
    for (const auto& [token, count] : counts_) {
      if (!std::binary_search(prompt_.begin(), prompt_.end(), token)) repeat(token);
    }
  }
  for (const auto& [token, count] : counts_) {
    logits[static_cast<std::size_t>(token)] -=
        params_.frequency_penalty * static_cast<float>(count) + params_.presence_penalty;
  }
}

TokenId Sampler::draw(std::span<const float> logits, float largest, SamplerScratch& scratch) const {
  std::vector<double>& cumulative = scratch.cumulative;
  collect(logits, largest, scratch.candidates);
  double sum = 0.0;
  cumulative.clear();
  for (const Candidate& candidate : scratch.candidates) {
    sum += relative_weight(candidate.logit, largest, params_.temperature);
    cumulative.push_back(sum);
  }
  const double point = random_unit(seed_, chosen_) * sum;
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end() - 1, point);
  return scratch.candidates[static_cast<std::size_t>(found - cumulative.begin())].token;
}

/// The tokens that top-k, top-p and min-p leave.
void Sampler::collect(std::span<const float> logits, float largest, std::vector<Candidate>& candidates) const {
  if (params_.top_p < 1.0f) {
    collect_nucleus(logits, largest, candidates);
  } else if (params_.top_k > 0) {
    select_best(logits, static_cast<std::size_t>(params_.top_k), candidates);
  } else {
    candidates.clear();
    const float negligible = negligible_logit(largest, params_.temperature);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] >= negligible) candidates.push_back({logits[i], static_cast<TokenId>(i)});
    }
  }
  if (params_.min_p == 0.0f) return;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return relative_weight(candidate.logit, largest, params_.temperature) < static_cast<double>(params_.min_p);
  });
}

/// The fewest best tokens that together have top_p of what top-k leaves.
void Sampler::collect_nucleus(std::span<const float> logits, float largest, std::vector<Candidate>& candidates) const {
  constexpr std::size_t first_guess = 64;
  const bool all = params_.top_k == 0;
  double total = all ? sum_of_weights(logits, largest, params_.temperature) : 0.0;
  for (std::size_t count = all ? first_guess : static_cast<std::size_t>(params_.top_k);; count *= 8) {
    select_best(logits, count, candidates);
    if (!all) {
      for (const Candidate& candidate : candidates)
        total += relative_weight(candidate.logit, largest, params_.temperature);
    }
    double sum = 0.0;
    std::size_t kept = 0;
    while (kept < candidates.size() && sum < static_cast<double>(params_.top_p) * total) {
      sum += relative_weight(candidates[kept++].logit, largest, params_.temperature);
    }
    const bool enough = sum >= static_cast<double>(params_.top_p) * total;
    if (!enough && all && candidates.size() == count && count < logits.size()) continue;
    candidates.resize(kept);
    return;
  }
}

}  // namespace sluice
