#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "engine/random.h"

namespace sluice {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
const std::vector<float> ten{1.0f, 0.5f, -1.0f, 2.0f, 0.0f, 1.5f, -2.0f, 0.25f, 1.75f, -0.5f};

SamplingParams with_temperature(float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  return params;
}

/// One request's sampler over rows of its own.
class Draws {
 public:
  explicit Draws(const SamplingParams& params, std::vector<TokenId> prompt = {0}, std::vector<TokenId> stops = {},
                 int vocabulary = 10, std::uint64_t seed = 1)
      : sampler_(params, prompt, std::move(stops), vocabulary, seed) {}
  Sampled sample(std::vector<float> logits, TokenFilter* filter = nullptr) {
    return sampler_.sample(logits, filter, scratch_);
  }
  TokenId token(const std::vector<float>& logits) { return sample(logits).token; }

 private:
  Sampler sampler_;
  SamplerScratch scratch_;
};

std::vector<double> softmax(const std::vector<float>& logits, double temperature) {
  std::vector<double> probabilities;
  double sum = 0.0;
  for (const float logit : logits)
    sum += probabilities.emplace_back(std::exp(static_cast<double>(logit) / temperature));
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

/// Chi-square of many draws against probabilities that need not add up to one; ids at 0 must not appear.
double chi_square(const SamplingParams& params, std::vector<double> probabilities) {
  constexpr int draws = 20000;
  double total = 0.0, sum = 0.0;
  for (const double probability : probabilities) total += probability;
  std::vector<int> counts(probabilities.size());
  Draws sampler(params, {0}, {}, static_cast<int>(probabilities.size()), 42);
  for (int i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(sampler.token(ten))];
  for (std::size_t id = 0; id < counts.size(); ++id) {
    const double expected = draws * probabilities[id] / total;
    if (expected == 0.0) {
      EXPECT_EQ(counts[id], 0) << "id " << id << " was not allowed";
      continue;
    }
    sum += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  return sum;
}
constexpr double chi_square_limit = 27.9;  // 9 degrees of freedom, 1 in 1000

TEST(Sampler, DrawsByTheSoftmaxOfTheLogits) {
  EXPECT_LT(chi_square(with_temperature(1.0f), softmax(ten, 1.0)), chi_square_limit);
  EXPECT_LT(chi_square(with_temperature(0.5f), softmax(ten, 0.5)), chi_square_limit);
  EXPECT_LT(chi_square(with_temperature(3.0f), softmax(ten, 3.0)), chi_square_limit);
}

TEST(Sampler, TopKKeepsTheBest) {
  SamplingParams params = with_temperature(1.0f);
  params.top_k = 3;
  std::vector<double> expected = softmax(ten, 1.0);
  for (const std::size_t id : {0, 1, 2, 4, 6, 7, 9}) expected[id] = 0.0;
  EXPECT_LT(chi_square(params, expected), chi_square_limit);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  SamplingParams params = with_temperature(1.0f);
  params.top_p = 0.6f;  // 2.0, 1.75 and 1.5 have 0.298, 0.232 and 0.181
  std::vector<double> expected = softmax(ten, 1.0);
  for (const std::size_t id : {0, 1, 2, 4, 6, 7, 9}) expected[id] = 0.0;
  EXPECT_LT(chi_square(params, expected), chi_square_limit);
}

TEST(Sampler, TopPCountsWhatTopKLeaves) {
  SamplingParams params = with_temperature(1.0f);
  params.top_k = 3;
  params.top_p = 0.7f;  // of the three, 2.0 and 1.75 have 0.419 + 0.327
  std::vector<double> expected = softmax(ten, 1.0);
  for (std::size_t id = 0; id < 10; ++id) expected[id] = id == 3 || id == 8 ? expected[id] : 0.0;
  EXPECT_LT(chi_square(params, expected), chi_square_limit);
}

TEST(Sampler, MinPIsAShareOfTheBest) {
  SamplingParams params = with_temperature(2.0f);
  params.min_p = 0.6f;  // 2.0 + 2 log(0.6) = 0.978
  std::vector<double> expected = softmax(ten, 2.0);
  for (const std::size_t id : {1, 2, 4, 6, 7, 9}) expected[id] = 0.0;
  EXPECT_LT(chi_square(params, expected), chi_square_limit);
}

TEST(Sampler, ZeroTemperatureTakesTheBestAndTheLowestIdOfEquals) {
  Draws sampler(with_temperature(0.0f));
  EXPECT_EQ(sampler.token(ten), 3);
  std::vector<float> tie = ten;
  tie[1] = tie[7] = 2.0f;
  EXPECT_EQ(sampler.token(tie), 1);
}

TEST(Sampler, TheSeedAloneDecidesTheDraws) {
  std::vector<TokenId> tokens;
  Draws sampler(with_temperature(1.0f), {0}, {}, 10, 12345);
  for (int i = 0; i < 10; ++i) tokens.push_back(sampler.token(ten));
  std::vector<TokenId> expected;  // by inversion of the distribution function
  for (std::uint64_t i = 0; i < 10; ++i) {
    double point = random_unit(12345, i);
    TokenId id = 0;
    for (const double probability : softmax(ten, 1.0)) {
      if (point < probability) break;
      point -= probability;
      ++id;
    }
    expected.push_back(id);
  }
  EXPECT_EQ(tokens, expected);
  Draws other(with_temperature(1.0f), {0}, {}, 10, 12346);
  std::vector<TokenId> different;
  for (int i = 0; i < 10; ++i) different.push_back(other.token(ten));
  EXPECT_NE(tokens, different);
}

TEST(Random, GivesThePublishedValuesOfPhilox) {
  using Four = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Four{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
            (Four{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Sampler, RepetitionPenaltyDividesPositiveAndMultipliesNegativeLogitsOfPromptAndOutput) {
  SamplingParams params = with_temperature(0.0f);
  params.repetition_penalty = 2.0f;
  Draws sampler(params, {3, 3, 6}, {}, 10);
  // id 3: 2 / 2 = 1 once, although twice in the prompt; id 6: -1 * 2 = -2.
  EXPECT_EQ(sampler.token({0, 0, 0, 0, 0, 0, 0, 0, 1.01f, 0}), 8);
  EXPECT_EQ(sampler.token({0, 0, 0, 2.0f, 0, 0.99f, 0, 0, 0, 0}), 3);
  EXPECT_EQ(sampler.token({-9, -9, -9, -9, -9, -1.9f, -1.0f, -9, -9, -9}), 5);
  EXPECT_EQ(sampler.token({0, 0, 0, 0, 0, 0, 0, 1.1f, 2.0f, 0}), 7) << "8 was chosen before";
}

TEST(Sampler, RepetitionPenaltyCountsAnIdOnceThatIsInPromptAndOutput) {
  SamplingParams params = with_temperature(0.0f);
  params.repetition_penalty = 2.0f;
  Draws sampler(params, {3}, {}, 10);
  EXPECT_EQ(sampler.token({0, 0, 0, 4.0f, 0, 0, 0, 0, 0, 0}), 3);
  EXPECT_EQ(sampler.token({0, 0, 0, 4.0f, 0, 1.9f, 0, 0, 0, 0}), 3) << "4 / 2, not 4 / 2 / 2";
}

TEST(Sampler, PresencePenaltyIsSubtractedOnceForOutput) {
  SamplingParams params = with_temperature(0.0f);
  params.presence_penalty = 0.5f;
  Draws sampler(params, {4});
  EXPECT_EQ(sampler.token({0, 0, 0, 0, 1.0f, 0.9f, 0, 0, 0, 0}), 4) << "the prompt does not count";
  EXPECT_EQ(sampler.token({0, 0, 0, 0, 1.0f, 0.45f, 0, 0, 0, 0}), 4);
  EXPECT_EQ(sampler.token({0, 0, 0, 0, 1.0f, 0.49f, 0, 0, 0, 0}), 4) << "counted twice already, subtracted once";
  EXPECT_EQ(sampler.token({0, 0, 0, 0, 1.0f, 0.55f, 0, 0, 0, 0}), 5);
}

TEST(Sampler, FrequencyPenaltyIsSubtractedForEachTime) {
  SamplingParams params = with_temperature(0.0f);
  params.frequency_penalty = 0.25f;
  Draws sampler(params, {4});
  std::vector<float> logits(10, 0.0f);
  logits[4] = 1.0f;
  logits[5] = 0.6f;
  EXPECT_EQ(sampler.token(logits), 4);  // 1.00
  EXPECT_EQ(sampler.token(logits), 4);  // 0.75
  EXPECT_EQ(sampler.token(logits), 5);  // 0.50
  EXPECT_EQ(sampler.token(logits), 4);  // 0.50 against 0.35
}

TEST(Sampler, LogitBiasIsAddedBeforePenalties) {
  SamplingParams params = with_temperature(0.0f);
  params.logit_bias = {{2, 5.0f}};
  EXPECT_EQ(Draws(params).token(ten), 2);
  params.repetition_penalty = 4.0f;  // (-1 + 5) / 4 = 1, not -4 + 5
  EXPECT_EQ(Draws(params, {2}).token({0, 0, -1, 0.9f, 0, 0, 0, 0, 0, 0}), 2);
  EXPECT_EQ(Draws(params, {2}).token({0, 0, -1, 1.1f, 0, 0, 0, 0, 0, 0}), 3);
}

TEST(Sampler, StopTokensAreMaskedUntilMinTokens) {
  SamplingParams params = with_temperature(0.0f);
  params.min_tokens = 2;
  Draws sampler(params, {0}, {3, 99});
  EXPECT_EQ(sampler.token(ten), 8);
  EXPECT_EQ(sampler.token(ten), 8);
  EXPECT_EQ(sampler.token(ten), 3);
}

TEST(Sampler, IdsBeyondTheVocabularyAreNeverChosen) {
  std::vector<float> wide = ten;
  wide.push_back(100.0f);
  EXPECT_EQ(Draws(with_temperature(0.0f)).token(wide), 3);
  EXPECT_LT(Draws(with_temperature(1.0f)).token(wide), 10);
}

class Forbid : public TokenFilter {
 public:
  explicit Forbid(std::size_t allowed) : allowed_(allowed) {}
  void mask(std::span<float> logits) override {
    for (std::size_t id = 0; id < logits.size(); ++id) logits[id] = id == allowed_ ? logits[id] : -infinity;
  }
  void accept(TokenId token) override { accepted = token; }
  TokenId accepted = -1;

 private:
  std::size_t allowed_;
};

TEST(Sampler, AFilterLeavesWhatItAllowsAndLearnsTheChoice) {
  Forbid filter(6);
  EXPECT_EQ(Draws(with_temperature(1.0f)).sample(ten, &filter).token, 6);
  EXPECT_EQ(filter.accepted, 6);
}

TEST(Sampler, NonFiniteLogitsAreAnErrorAndMinusInfinityIsNot) {
  for (const float bad : {nan, infinity}) {
    for (const std::size_t id : {0, 5, 9}) {
      std::vector<float> logits = ten;
      logits[id] = bad;
      EXPECT_NE(Draws(with_temperature(0.0f)).sample(logits).error, "") << bad << " at " << id;
    }
  }
  std::vector<float> padding = ten;
  padding.push_back(nan);
  EXPECT_NE(Draws(with_temperature(0.0f)).sample(padding).error, "");
  std::vector<float> masked = ten;
  masked[3] = -infinity;
  EXPECT_EQ(Draws(with_temperature(0.0f)).token(masked), 8);
}

TEST(Sampler, NothingLeftToChooseFromIsAnError) {
  Forbid nothing(10);
  EXPECT_NE(Draws(with_temperature(1.0f)).sample(ten, &nothing).error.find("no token is left"), std::string::npos);
  EXPECT_NE(Draws(with_temperature(0.0f)).sample(std::vector<float>(10, -infinity)).error, "");
}

TEST(Sampler, LogprobsAreThoseOfTheRawRowBestFirst) {
  SamplingParams params = with_temperature(0.0f);
  params.logit_bias = {{6, 100.0f}};
  params.top_logprobs = 3;
  const Sampled sampled = Draws(params).sample(ten);
  const std::vector<double> raw = softmax(ten, 1.0);
  EXPECT_EQ(sampled.token, 6);
  EXPECT_NEAR(sampled.logprob.value(), std::log(raw[6]), 1e-5);
  EXPECT_EQ(sampled.rank, 10) << "the least likely of ten";
  ASSERT_EQ(sampled.top_logprobs.size(), 3u);
  const std::vector<std::size_t> best{3, 8, 5};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sampled.top_logprobs[i].token, static_cast<TokenId>(best[i]));
    EXPECT_NEAR(sampled.top_logprobs[i].logprob, std::log(raw[best[i]]), 1e-5);
  }
}

TEST(Sampler, LogprobsAreAbsentUnlessAskedFor) {
  EXPECT_FALSE(Draws(with_temperature(0.0f)).sample(ten).logprob.has_value());
  SamplingParams params = with_temperature(0.0f);
  params.top_logprobs = 0;
  const Sampled sampled = Draws(params).sample(ten);
  EXPECT_TRUE(sampled.logprob.has_value());
  EXPECT_TRUE(sampled.top_logprobs.empty());
}

std::vector<float> random_row(std::mt19937& random, std::size_t columns, float spread) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> row(columns);
  for (float& logit : row) logit = normal(random);
  return row;
}

std::vector<Candidate> sorted(const std::vector<float>& row) {
  std::vector<Candidate> all;
  for (std::size_t id = 0; id < row.size(); ++id) all.push_back({row[id], static_cast<TokenId>(id)});
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  return all;
}

TEST(Candidates, TheBestAreThoseOfAFullSort) {
  std::mt19937 random(5);
  std::vector<Candidate> best;
  for (const std::size_t columns : {1, 7, 100, 5000}) {
    std::vector<float> row = random_row(random, columns, 1.0f);
    for (float& logit : row) logit = std::round(logit * 8.0f);  // many ties
    const std::vector<Candidate> all = sorted(row);
    for (const std::size_t count : {1, 2, 20, 64, 1000, 9999}) {
      select_best(row, count, best);
      ASSERT_EQ(best.size(), std::min(count, columns));
      for (std::size_t i = 0; i < best.size(); ++i) ASSERT_EQ(best[i].token, all[i].token) << i << " of " << count;
    }
  }
}

/// The token by a full sort: what top-k, top-p and min-p leave, then inversion.
TokenId reference(const std::vector<float>& row, const SamplingParams& params, std::uint64_t seed) {
  std::vector<Candidate> kept = sorted(row);
  if (params.top_k > 0) kept.resize(std::min(kept.size(), static_cast<std::size_t>(params.top_k)));
  auto weight = [&](const Candidate& candidate) {
    return std::exp(static_cast<double>((candidate.logit - kept[0].logit) / params.temperature));
  };
  double total = 0.0, sum = 0.0;
  for (const Candidate& candidate : kept) total += weight(candidate);
  std::size_t count = 0;
  while (count < kept.size() && sum < static_cast<double>(params.top_p) * total) sum += weight(kept[count++]);
  kept.resize(count);
  std::erase_if(kept, [&](const Candidate& c) { return weight(c) < static_cast<double>(params.min_p); });
  total = 0.0;
  for (const Candidate& candidate : kept) total += weight(candidate);
  double point = random_unit(seed, 0) * total;
  for (const Candidate& candidate : kept) {
    if (point < weight(candidate)) return candidate.token;
    point -= weight(candidate);
  }
  return kept.back().token;
}

TEST(Sampler, PartialSelectionChoosesWhatAFullSortWould) {
  std::mt19937 random(6);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<float> row = random_row(random, 20000, seed % 3 == 0 ? 0.2f : 3.0f);
    SamplingParams params = with_temperature(seed % 2 == 0 ? 1.0f : 0.7f);
    params.top_p = std::vector<float>{0.999f, 0.95f, 0.5f, 0.01f}[seed % 4];
    params.top_k = std::vector<int>{0, 20, 0, 5000, 30000}[seed % 5];
    params.min_p = seed % 6 == 0 ? 0.05f : 0.0f;
    Draws sampler(params, {0}, {}, 20000, seed);
    EXPECT_EQ(sampler.token(row), reference(row, params, seed)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice
