#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// A token that may be chosen.
struct Candidate {
  float logit = 0.0f;
  TokenId token = 0;
};

/// What one pass over a row of logits tells.
struct RowSummary {
  bool valid = false;    // no NaN, no +infinity
  float largest = 0.0f;  // -infinity when no token is left
  TokenId token = -1;    // the lowest id that has it
};
RowSummary summarize(std::span<const float> logits);

/// The `count` tokens of largest logits, best first, lower ids first among equals; never one at -infinity.
void select_best(std::span<const float> logits, std::size_t count, std::vector<Candidate>& best);

/// 1 for the token that select_best puts first, and so on. The token need not be one of the row.
int rank_of(std::span<const float> logits, float logit, TokenId token);

/// exp((logit - largest) / temperature): a token's probability over that of the best.
double relative_weight(float logit, float largest, float temperature);
/// Logits up to here weigh less than the resolution of a draw, even all together.
float negligible_logit(float largest, float temperature);
/// Sum of the relative weights of a row.
double sum_of_weights(std::span<const float> logits, float largest, float temperature);

/// Log-softmax of a row: what turns its logits into log-probabilities.
class LogSoftmax {
 public:
  LogSoftmax(std::span<const float> logits, float largest);
  float operator()(float logit) const { return logit - largest_ - log_sum_; }
  /// The `count` most likely tokens.
  std::vector<TokenLogprob> best(std::size_t count, std::vector<Candidate>& scratch) const;

 private:
  std::span<const float> logits_;
  float largest_, log_sum_;
};

}  // namespace sluice
