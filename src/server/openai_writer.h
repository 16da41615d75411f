#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/generation_request.h"
#include "server/reply.h"

namespace sluice {

/// What the replies of OpenAI's two completion APIs have in common. A stream's events each show one choice; the event
/// that ends the last choice has the timings, and the usage comes after it.
class OpenAiWriter : public ReplyWriter {
 public:
  void end_choice(const ChoiceEnd& end, const ReplyResult& so_far, std::string& out) override;
  void end(const ReplyResult& result, std::string& out) override;
  void fail(const ApiError& error, std::string& out) override;
  void ping(std::string& out) override;
  Json whole(const ReplyResult& result) override;

 protected:
  struct Names {
    std::string_view id_prefix, object, chunk;
  };
  OpenAiWriter(const GenerationRequest& request, const ReplyIdentity& identity, const Names& names);

  /// One event. more: fields beside the choice.
  void write_choice(Json choice, const ReplyResult& so_far, std::string& out, const Json& more = Json::object()) const;
  /// The same for choices that are nothing but text, made without Json: opening (which ends before a JSON string), the
  /// text as a string, closing.
  void write_text(int index, std::string_view opening, std::string_view text, std::string_view closing,
                  std::string& out) const;
  /// Events may be written by write_text: they show neither tokens nor usage.
  bool is_plain() const { return !has_tokens_ && !continuous_usage_; }
  bool returns_token_ids() const { return returns_token_ids_; }
  /// Of the alternatives shown at each token; -1: no log-probabilities.
  int top_logprobs() const { return top_logprobs_; }
  int prompt_logprobs() const { return prompt_logprobs_; }
  std::size_t prompt_of(std::size_t choice) const { return choice / choices_a_prompt_; }

  /// What stands in a choice beside index, finish_reason and stop_reason: of the event that ends it.
  virtual Json ending() const = 0;
  /// The same of a whole reply.
  virtual Json whole_choice(const ReplyResult& result, std::size_t index) const = 0;
  /// Fields of a whole reply beside the usual ones.
  virtual Json more_of_whole(const ReplyResult& result) const = 0;

 private:
  Json head(std::string_view object) const;
  Json ended(const ChoiceEnd& end) const;
  void write(const Json& event, std::string& out) const;

  const Names names_;
  const ReplyIdentity identity_;
  const int top_logprobs_, prompt_logprobs_;
  const bool returns_token_ids_, has_tokens_, include_usage_, continuous_usage_;
  const std::size_t choices_a_prompt_, choices_;
  std::string text_head_;  // of an event, up to the number of its choice
  std::string_view text_tail_;
  std::size_t ended_ = 0;             // choices
  std::optional<ChoiceEnd> waiting_;  // the last of them, until the timings are known
};

std::string_view name_of(ChoiceEnd::Reason reason);
/// The stop string or the stop token that was found; null for an end that the model chose.
Json stop_reason(const ChoiceEnd& end);
Json ids_of(const std::vector<ReportedToken>& tokens);

}  // namespace sluice
