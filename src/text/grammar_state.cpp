#include "text/grammar_state.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <xgrammar/matcher.h>

#include "base/error.h"

namespace sluice {

namespace {

constexpr float forbidden = -std::numeric_limits<float>::infinity();
constexpr std::size_t word_bits = 32;

class MatcherState : public GrammarState {
 public:
  MatcherState(const xgrammar::CompiledGrammar& grammar, std::vector<TokenId> stop_tokens)
      : matcher_(grammar, stop_tokens),
        stop_tokens_(std::move(stop_tokens)),
        allowed_(static_cast<std::size_t>(xgrammar::GetBitmaskSize(grammar.GetTokenizerInfo().GetVocabSize()))) {}

  void mask(std::span<float> logits) override {
    if (matcher_.IsTerminated()) {
      std::fill(allowed_.begin(), allowed_.end(), 0);
      for (const TokenId token : stop_tokens_) {
        const auto id = static_cast<std::uint32_t>(token);
        if (id / word_bits < allowed_.size()) allowed_[id / word_bits] |= 1u << id % word_bits;
      }
    } else {
      fill();
    }
    apply(logits);
  }

  void accept(TokenId token) override {
    if (matcher_.IsTerminated()) return;
    if (!matcher_.AcceptToken(token)) fail<RequestError>("token {} does not fit the grammar of the reply", token);
  }

 private:
  void fill() {
    auto size = static_cast<std::int64_t>(allowed_.size());
    DLTensor tensor{};
    tensor.data = allowed_.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = xgrammar::GetBitmaskDLType();
    tensor.shape = &size;
    matcher_.FillNextTokenBitmask(&tensor);
  }

  /// Ids beyond the words are forbidden.
  void apply(std::span<float> logits) const {
    const std::size_t whole = std::min(allowed_.size(), logits.size() / word_bits);
    for (std::size_t word = 0; word < whole; ++word) {
      const std::uint32_t bits = allowed_[word];
      if (bits == ~0u) continue;
      const std::span<float> part = logits.subspan(word * word_bits, word_bits);
      if (bits == 0) {
        std::fill(part.begin(), part.end(), forbidden);
        continue;
      }
      for (std::size_t bit = 0; bit < word_bits; ++bit) {
        if ((bits >> bit & 1) == 0) part[bit] = forbidden;
      }
    }
    for (std::size_t id = whole * word_bits; id < logits.size(); ++id) {
      const std::size_t word = id / word_bits;
      if (word >= allowed_.size() || (allowed_[word] >> id % word_bits & 1) == 0) logits[id] = forbidden;
    }
  }

  xgrammar::GrammarMatcher matcher_;
  std::vector<TokenId> stop_tokens_;
  std::vector<std::uint32_t> allowed_;  // a bit for each id
};

}  // namespace

std::unique_ptr<GrammarState> make_grammar_state(const xgrammar::CompiledGrammar& grammar,
                                                 std::vector<TokenId> stop_tokens) {
  return std::make_unique<MatcherState>(grammar, std::move(stop_tokens));
}

}  // namespace sluice
