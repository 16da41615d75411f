#include "engine/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sluice {

namespace {
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::size_t lanes = 16;  // independent maxima, so that the compiler uses vectors

constexpr float negligible_exponent = -60.0f;  // 2^20 terms of exp(-60) are far below 2^-53

bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}
}  // namespace

RowSummary summarize(std::span<const float> logits) {
  std::array<float, lanes> largest;
  std::array<int, lanes> bad{};
  largest.fill(-infinity);
  const std::size_t whole = logits.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float logit = logits[i + lane];
      largest[lane] = logit > largest[lane] ? logit : largest[lane];
      bad[lane] |= logit < infinity ? 0 : 1;  // also NaN
    }
  }
  for (std::size_t i = whole; i < logits.size(); ++i) {
    largest[0] = logits[i] > largest[0] ? logits[i] : largest[0];
    bad[0] |= logits[i] < infinity ? 0 : 1;
  }
  RowSummary row;
  row.valid = std::all_of(bad.begin(), bad.end(), [](int lane) { return lane == 0; });
  row.largest = *std::max_element(largest.begin(), largest.end());
  const auto first = std::find(logits.begin(), logits.end(), row.largest);
  if (first != logits.end()) row.token = static_cast<TokenId>(first - logits.begin());
  return row;
}

void select_best(std::span<const float> logits, std::size_t count, std::vector<Candidate>& best) {
  best.clear();
  if (count == 0) return;
  count = std::min(count, logits.size());
  const std::size_t room = 2 * count + 64;
  auto keep_best = [&] {
    std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count - 1), best.end(), better);
    best.resize(count);
  };
  float threshold = -infinity;  // equal ones further back lose by their ids
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > threshold)) continue;
    best.push_back({logits[i], static_cast<TokenId>(i)});
    if (best.size() < room) continue;
    keep_best();
    threshold = best[count - 1].logit;
  }
  if (best.size() > count) keep_best();
  std::sort(best.begin(), best.end(), better);
}

int rank_of(std::span<const float> logits, float logit, TokenId token) {
  const std::size_t ties = std::min(logits.size(), static_cast<std::size_t>(token));
  int rank = 1;
  for (std::size_t i = 0; i < ties; ++i) rank += logits[i] >= logit ? 1 : 0;
  for (std::size_t i = ties; i < logits.size(); ++i) rank += logits[i] > logit ? 1 : 0;
  return rank;
}

double relative_weight(float logit, float largest, float temperature) {
  return static_cast<double>(std::exp((logit - largest) / temperature));
}

float negligible_logit(float largest, float temperature) { return largest + negligible_exponent * temperature; }

double sum_of_weights(std::span<const float> logits, float largest, float temperature) {
  const float negligible = negligible_logit(largest, temperature);
  double sum = 0.0;
  for (const float logit : logits) {
    if (logit >= negligible) sum += relative_weight(logit, largest, temperature);
  }
  return sum;
}

LogSoftmax::LogSoftmax(std::span<const float> logits, float largest)
    : logits_(logits),
      largest_(largest),
      log_sum_(static_cast<float>(std::log(sum_of_weights(logits, largest, 1.0f)))) {}

std::vector<TokenLogprob> LogSoftmax::best(std::size_t count, std::vector<Candidate>& scratch) const {
  select_best(logits_, count, scratch);
  std::vector<TokenLogprob> tokens;
  for (const Candidate& candidate : scratch) tokens.push_back({candidate.token, (*this)(candidate.logit)});
  return tokens;
}

}  // namespace sluice
