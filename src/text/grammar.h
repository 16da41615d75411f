#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "text/tokenizer.h"

namespace sluice {

/// What a reply must look like.
struct GrammarSource {
  enum class Kind : unsigned char { json_object, json_schema, regex, choice, ebnf, tool_calls };
  Kind kind = Kind::json_object;
  Json schema;                       // json_schema
  std::string text;                  // regex, or EBNF whose start rule is "root"
  std::vector<std::string> choices;  // choice
  Json tools;                        // tool_calls: those that may be called, in OpenAI's shape
  bool parallel_tool_calls = true;   // tool_calls: more than one call
};

/// Where a reply stands in a grammar. Belongs to one request.
class GrammarState {
 public:
  virtual ~GrammarState() = default;
  /// Sets the logits of tokens that cannot come next to -infinity. Stop tokens can where the reply may end; after one
  /// nothing else can. logits: [vocabulary].
  virtual void mask(std::span<float> logits) = 0;
  /// Throws RequestError for a token that mask() forbids.
  virtual void accept(TokenId token) = 0;
};

/// A grammar, compiled for a tokenizer. Immutable; safe to use from many threads. States keep it alive.
class CompiledGrammar {
 public:
  virtual ~CompiledGrammar() = default;
  virtual std::unique_ptr<GrammarState> start() const = 0;
  virtual std::span<const TokenId> stop_tokens() const = 0;
};

/// Compiles grammars and keeps the last ones. Safe to use from many threads.
class GrammarCompiler {
 public:
  virtual ~GrammarCompiler() = default;
  /// Throws RequestError that says what in the source cannot be compiled (or that it is too large: sources, time and
  /// memory are bounded).
  virtual std::shared_ptr<const CompiledGrammar> compile(const GrammarSource& source) = 0;
};

/// vocabulary: ids from here on are never sampled. stop_tokens: allowed where the grammar may end. In a build without
/// xgrammar its compile() throws RequestError that says so.
std::unique_ptr<GrammarCompiler> make_grammar_compiler(std::shared_ptr<const Tokenizer> tokenizer, int vocabulary,
                                                       std::vector<TokenId> stop_tokens);
bool grammars_supported();

/// How a reply is kept to a grammar, and its thinking to a budget.
struct ReplyConstraint {
  std::shared_ptr<const CompiledGrammar> grammar;  // null: none
  bool starts_in_reasoning = false;                // the grammar holds from the end of the reasoning on
  std::optional<int> thinking_budget;              // tokens of reasoning; then "\n</think>\n\n" is forced
};

/// A filter for one request; null if the constraint asks for nothing. Throws RequestError if the tokenizer has no
/// single token </think> where one is needed.
std::unique_ptr<TokenFilter> make_reply_filter(const std::shared_ptr<const Tokenizer>& tokenizer,
                                               const ReplyConstraint& constraint);

}  // namespace sluice
