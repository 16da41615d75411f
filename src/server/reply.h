#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "server/api_error.h"
#include "text/reply_parser.h"

namespace sluice {

/// A token of a reply, or of a prompt whose log-probabilities were asked for.
struct ReportedToken {
  TokenId token = 0;
  std::string bytes;  // its text, not always whole characters
  std::optional<float> logprob;
  struct Alternative {
    TokenId token = 0;
    std::string bytes;
    float logprob = 0.0f;
  };
  std::vector<Alternative> top;  // best first
  int rank = 0;                  // of the token itself; 1: the most likely, 0: not known
};

/// What one choice got since the last event: text in its parts, and the tokens it is made of. Text may lag behind the
/// tokens (unfinished characters, possible stop strings).
struct ChoiceDelta {
  int index = 0;
  ReplyDelta text;                    // completions: content alone
  std::vector<ReportedToken> tokens;  // without the stop token that ended the choice
};

/// The end of one choice.
struct ChoiceEnd {
  int index = 0;
  enum class Reason : std::uint8_t { stop, length, tool_calls };
  Reason reason = Reason::stop;
  std::optional<std::string> stop_string;  // the one that was found
  std::optional<TokenId> stop_token;       // of stop_token_ids
};

/// Tokens of a request, all choices together; a prompt shared by n choices counts once.
struct Usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0, reasoning_tokens = 0, cached_tokens = 0;
};

/// {"prompt_tokens", "completion_tokens", "total_tokens", details}
Json usage_json(const Usage& usage);

/// Times of a request from its submission; of several choices the slowest.
struct Timings {
  double queued_ms = 0, first_token_ms = 0, total_ms = 0;
  std::int64_t prompt_tokens = 0, output_tokens = 0;
};

/// {"queued_ms", "prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_second"}
Json timings_json(const Timings& timings);

/// One prompt of a request, as far as replies show it.
struct PromptInfo {
  std::string text;  // with echo, or for whoever asked for it
  std::vector<TokenId> ids;
  std::vector<ReportedToken> logprobs;  // with prompt_logprobs: one a token, the first without a value
};

/// What a request is called in its reply.
struct ReplyIdentity {
  std::string id;            // 24 letters or digits; each API puts its own prefix before it
  std::int64_t created = 0;  // seconds since 1970
  std::string model;         // as served
  std::string fingerprint;   // of the build
};

/// A whole reply, or what is known so far.
struct ReplyResult {
  struct Choice {
    Reply reply;
    std::vector<ReportedToken> tokens;
    ChoiceEnd end;
  };
  std::vector<PromptInfo> prompts;
  std::vector<Choice> choices;  // choice i belongs to prompt i / n
  Usage usage;
  Timings timings;
};

/// Writes the replies of one request as one API wants them. Made from the request; used on the event thread. The
/// functions of a stream append server-sent events to `out` ("data: {...}\n\n"); what they are given last comes last.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;
  /// The prompts are known (their log-probabilities too).
  virtual void begin(const ReplyResult& so_far, std::string& out) = 0;
  virtual void add(const ChoiceDelta& delta, const ReplyResult& so_far, std::string& out) = 0;
  virtual void end_choice(const ChoiceEnd& end, const ReplyResult& so_far, std::string& out) = 0;
  /// All choices have ended; usage and timings are known.
  virtual void end(const ReplyResult& result, std::string& out) = 0;
  /// The stream breaks off.
  virtual void fail(const ApiError& error, std::string& out) = 0;
  /// Keeps proxies awake during a long prefill.
  virtual void ping(std::string& out) = 0;

  /// The body of a reply that is not streamed.
  virtual Json whole(const ReplyResult& result) = 0;
};

}  // namespace sluice
