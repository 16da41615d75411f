#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/grammar.h"

namespace sluice {

namespace {

constexpr float forbidden = -std::numeric_limits<float>::infinity();
constexpr std::string_view end_of_reasoning = "</think>", forced_end = "\n</think>\n\n";
/// Between the reasoning and what the grammar describes; the reply parser leaves them out.
constexpr std::size_t most_line_breaks = 4;

/// Lets reasoning pass, ends it when its budget is spent, and holds what follows to a grammar.
class ReplyFilter : public TokenFilter {
 public:
  ReplyFilter(std::shared_ptr<const Tokenizer> tokenizer, const ReplyConstraint& constraint)
      : tokenizer_(std::move(tokenizer)), grammar_(constraint.grammar) {
    if (grammar_ != nullptr) state_ = grammar_->start();
    if (!constraint.starts_in_reasoning) {
      place_ = Place::content;
      return;
    }
    const std::optional<TokenId> end = tokenizer_->id_of(end_of_reasoning);
    if (!end || !tokenizer_->is_added(*end)) {
      fail<RequestError>(
          "the tokenizer has no single token {}, so that neither a grammar after the reasoning nor thinking_budget can "
          "be kept; turn thinking off",
          end_of_reasoning);
    }
    budget_ = constraint.thinking_budget;
    for (const std::string_view text : {"\n", "\n\n"}) {
      const std::vector<TokenId> ids = tokenizer_->encode(text);
      if (ids.size() == 1) line_breaks_.push_back(ids[0]);
    }
    close_if_spent();
  }

  void mask(std::span<float> logits) override {
    switch (place_) {
      case Place::reasoning:
        // A reply that ends here would not be what the grammar describes.
        if (grammar_ != nullptr) forbid(logits, grammar_->stop_tokens());
        break;
      case Place::closing: leave_only(logits, closing_[closed_]); break;
      case Place::line_breaks: mask_but_line_breaks(logits); break;
      case Place::content:
        if (state_ != nullptr) state_->mask(logits);
        break;
    }
  }

  void accept(TokenId token) override {
    switch (place_) {
      case Place::reasoning: accept_reasoning(token); break;
      case Place::closing:
        if (++closed_ == closing_.size()) place_ = Place::content;
        break;
      case Place::line_breaks:
        if (is_line_break(token) && length_of(token) <= line_breaks_left_) {
          line_breaks_left_ -= length_of(token);
          break;
        }
        place_ = Place::content;
        [[fallthrough]];
      case Place::content:
        if (state_ != nullptr) state_->accept(token);
        break;
    }
  }

 private:
  enum class Place { reasoning, closing, line_breaks, content };

  static void forbid(std::span<float> logits, std::span<const TokenId> tokens) {
    for (const TokenId token : tokens) {
      if (static_cast<std::size_t>(token) < logits.size()) logits[static_cast<std::size_t>(token)] = forbidden;
    }
  }

  static void leave_only(std::span<float> logits, TokenId token) {
    if (static_cast<std::size_t>(token) >= logits.size()) {
      fail<RequestError>("thinking_budget: token {} of the end of the reasoning cannot be sampled", token);
    }
    const float kept = logits[static_cast<std::size_t>(token)];
    std::fill(logits.begin(), logits.end(), forbidden);
    logits[static_cast<std::size_t>(token)] = kept;
  }

  void mask_but_line_breaks(std::span<float> logits) {
    if (state_ == nullptr) return;
    std::vector<std::pair<std::size_t, float>> kept;
    for (const TokenId token : line_breaks_) {
      const auto id = static_cast<std::size_t>(token);
      if (length_of(token) <= line_breaks_left_ && id < logits.size()) kept.emplace_back(id, logits[id]);
    }
    state_->mask(logits);
    for (const auto& [id, logit] : kept) logits[id] = logit;
  }

  void accept_reasoning(TokenId token) {
    ++reasoning_tokens_;
    recent_ += tokenizer_->bytes_of(token);
    const std::size_t end = recent_.find(end_of_reasoning);
    if (end != std::string::npos) return end_reasoning(std::string_view(recent_).substr(end + end_of_reasoning.size()));
    if (recent_.size() >= end_of_reasoning.size()) recent_.erase(0, recent_.size() - end_of_reasoning.size() + 1);
    close_if_spent();
  }

  /// rest: of the token that ended it; more than line breaks only where the model spells the tag out.
  void end_reasoning(std::string_view rest) {
    place_ = Place::line_breaks;
    line_breaks_left_ = most_line_breaks;
    if (state_ != nullptr && rest.find_first_not_of("\r\n") != std::string_view::npos) {
      fail<RequestError>("the model ended its reasoning inside a token, where the grammar cannot begin");
    }
  }

  void close_if_spent() {
    if (!budget_ || reasoning_tokens_ < *budget_) return;
    closing_ = tokenizer_->encode(forced_end);
    place_ = Place::closing;
  }

  bool is_line_break(TokenId token) const {
    return std::find(line_breaks_.begin(), line_breaks_.end(), token) != line_breaks_.end();
  }
  std::size_t length_of(TokenId token) const { return tokenizer_->bytes_of(token).size(); }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const CompiledGrammar> grammar_;
  std::unique_ptr<GrammarState> state_;  // null: anything may follow the reasoning
  Place place_ = Place::reasoning;
  std::optional<int> budget_;
  int reasoning_tokens_ = 0;
  std::string recent_;            // the last bytes of the reasoning
  std::vector<TokenId> closing_;  // what ends it
  std::size_t closed_ = 0;        // of these, how many came
  std::vector<TokenId> line_breaks_;
  std::size_t line_breaks_left_ = 0;
};

}  // namespace

std::unique_ptr<TokenFilter> make_reply_filter(const std::shared_ptr<const Tokenizer>& tokenizer,
                                               const ReplyConstraint& constraint) {
  if (constraint.thinking_budget && *constraint.thinking_budget < 0) {
    fail<RequestError>("thinking_budget is {}; allowed is 0 or more", *constraint.thinking_budget);
  }
  const bool limits_thinking = constraint.starts_in_reasoning && constraint.thinking_budget;
  if (constraint.grammar == nullptr && !limits_thinking) return nullptr;
  return std::make_unique<ReplyFilter>(tokenizer, constraint);
}

}  // namespace sluice
