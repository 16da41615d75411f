#include "apps/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/sequence_batch.h"
#include "apps/session.h"
#include "base/error.h"
#include "base/progress.h"

namespace sluice {

namespace {

constexpr std::int64_t window_tokens = 2048, step_tokens = 128;

/// Of `next`, among the first `vocabulary` columns.
double negative_log_likelihood(const float* logits, std::int64_t vocabulary, std::int32_t next) {
  const float largest = *std::max_element(logits, logits + vocabulary);
  double sum = 0.0;
  for (std::int64_t i = 0; i < vocabulary; ++i) sum += std::exp(static_cast<double>(logits[i] - largest));
  return std::log(sum) - static_cast<double>(logits[next] - largest);
}

/// Sums over one window, whose first token does not count.
double window_loss(const LoadedModel& loaded, std::span<const std::int32_t> ids, std::int64_t vocabulary,
                   const std::function<void()>& between) {
  const auto count = static_cast<std::int64_t>(ids.size());
  SequenceBatch sequence(*loaded.ops, *loaded.model, 1, count);
  std::vector<float> logits;
  double loss = 0.0;
  for (std::int64_t begin = 0; begin + 1 < count; begin += step_tokens) {
    between();
    const std::int64_t rows = std::min(step_tokens, count - begin);
    const auto part = ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows));
    sequence.forward(part, ScoredRows::all, [&](const ForwardResult& result) {
      const std::int64_t columns = result.logits.size(1);
      logits.resize(static_cast<std::size_t>(result.logits.elements()));
      loaded.ops->to_host(logits.data(), result.logits);
      for (std::int64_t row = 0; row < std::min(rows, count - 1 - begin); ++row) {
        loss += negative_log_likelihood(logits.data() + row * columns, std::min(vocabulary, columns),
                                        ids[static_cast<std::size_t>(begin + row + 1)]);
      }
    });
  }
  return loss;
}

}  // namespace

Perplexity measure_perplexity(const ModelFiles& files, const std::string& text, const EngineFlags& flags,
                              const Environment& environment, const std::function<void()>& between) {
  const std::shared_ptr<const Tokenizer> tokenizer = files.require_tokenizer();
  const std::vector<TokenId> ids = tokenizer->encode(text);
  const LoadedModel loaded = load_weights(files.config(), files.weights(), flags, environment);
  const std::int64_t limit = *flags.max_model_len > 0 ? *flags.max_model_len : window_tokens;
  const auto window = static_cast<std::size_t>(std::min({window_tokens, limit, loaded.model->info().max_context}));
  if (ids.size() < 2 || window < 2) fail<RequestError>("--text: {} tokens, at least 2 are needed", ids.size());
  ProgressBar bar("reading the text", environment.colored(), "tokens");
  Perplexity result;
  double loss = 0.0;
  for (std::size_t begin = 0; begin + 1 < ids.size(); begin += window) {
    const std::size_t size = std::min(window, ids.size() - begin);
    loss += window_loss(loaded, std::span(ids).subspan(begin, size), tokenizer->size(), between);
    result.tokens += static_cast<std::int64_t>(size) - 1;
    bar.update(begin + size, ids.size());
  }
  result.value = std::exp(loss / static_cast<double>(result.tokens));
  return result;
}

}  // namespace sluice
