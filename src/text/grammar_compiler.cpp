#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>

#include <xgrammar/compiler.h>

#include "base/error.h"
#include "text/grammar.h"
#include "text/grammar_sources.h"
#include "text/grammar_state.h"
#include "text/tool_calls_grammar.h"

namespace xgrammar {

// Where its messages go. Failed checks, and sources that cannot be compiled:
[[noreturn]] void LogFatalImpl(const std::string& file, int line, const std::string& message);
void LogFatalImpl(const std::string&, int, const std::string& message) {
  constexpr std::string_view before = ") is false: ";
  const std::size_t check = message.starts_with("Check failed: ") ? message.find(before) : std::string::npos;
  throw sluice::RequestError(check == std::string::npos ? message : message.substr(check + before.size()));
}

// Warnings, of what in a schema the grammar leaves out.
void LogMessageImpl(const std::string& file, int line, int level, const std::string& message);
void LogMessageImpl(const std::string&, int, int, const std::string&) {}

}  // namespace xgrammar

namespace sluice {

namespace {

using Kind = GrammarSource::Kind;

constexpr std::size_t most_kept = 256, most_kept_bytes = std::size_t{256} << 20;
/// A grammar in xgrammar's own notation, after conversion; compiling costs time for every part of it.
constexpr std::size_t largest_converted = std::size_t{128} << 10;
/// xgrammar cannot be interrupted: a compilation that takes longer is left to itself, a few of them at most.
constexpr std::chrono::seconds longest_compilation{10};
constexpr int most_left_alone = 2;

/// xgrammar knows ids without text as ones that no text is made of. Stop tokens are named by each state, because those
/// named here would be let into free text by states that stop at others.
xgrammar::TokenizerInfo tokenizer_info(const Tokenizer& tokenizer, int vocabulary) {
  std::vector<std::string> texts(static_cast<std::size_t>(std::min(vocabulary, tokenizer.size())));
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (!tokenizer.is_added(token)) texts[id] = tokenizer.bytes_of(token);
  }
  return {texts, xgrammar::VocabType::RAW, vocabulary, std::vector<std::int32_t>()};
}

class TextGrammar : public CompiledGrammar {
 public:
  TextGrammar(xgrammar::CompiledGrammar compiled, std::vector<TokenId> stop_tokens)
      : compiled_(std::move(compiled)), stop_tokens_(std::move(stop_tokens)) {}
  std::unique_ptr<GrammarState> start() const override { return make_grammar_state(compiled_, stop_tokens_); }
  std::span<const TokenId> stop_tokens() const override { return stop_tokens_; }

 private:
  xgrammar::CompiledGrammar compiled_;
  std::vector<TokenId> stop_tokens_;
};

class ToolCallsGrammar : public CompiledGrammar {
 public:
  ToolCallsGrammar(xgrammar::CompiledGrammar call, const ToolCallTags& tags, bool several,
                   std::vector<TokenId> stop_tokens)
      : call_(std::move(call)), tags_(tags), several_(several), stop_tokens_(std::move(stop_tokens)) {}
  std::unique_ptr<GrammarState> start() const override {
    return start_tool_calls(tags_, several_, stop_tokens_,
                            [call = call_, close = tags_.close] { return make_grammar_state(call, {close}); });
  }
  std::span<const TokenId> stop_tokens() const override { return stop_tokens_; }

 private:
  xgrammar::CompiledGrammar call_;
  ToolCallTags tags_;
  bool several_;
  std::vector<TokenId> stop_tokens_;
};

/// Strings with bounds of their length may hold control characters for xgrammar, which JSON does not allow.
xgrammar::Grammar without_control_characters(const xgrammar::Grammar& grammar) {
  constexpr std::string_view loose = R"(_characters ::= (([^\"\\\r\n])))",
                             strict = R"(_characters ::= (([^\0-\x1f\"\\])))";
  std::string text = grammar.ToString();
  std::size_t at = text.find(loose);
  if (at == std::string::npos) return grammar;
  for (; at != std::string::npos; at = text.find(loose, at + strict.size())) text.replace(at, loose.size(), strict);
  return xgrammar::Grammar::FromEBNF(text);
}

xgrammar::Grammar from_schema(const std::string& schema, bool strict) {
  return without_control_characters(xgrammar::Grammar::FromJSONSchema(schema, /*any_whitespace=*/true, std::nullopt,
                                                                      std::nullopt, strict, longest_json_space));
}

xgrammar::Grammar from_format(const Json& format) {
  const auto converted = xgrammar::Grammar::FromStructuralTag(format.dump());
  if (const auto* grammar = std::get_if<xgrammar::Grammar>(&converted)) return *grammar;
  std::visit([](const auto& error) { fail<RequestError>("{}", error.what()); },
             std::get<xgrammar::StructuralTagError>(converted));
  return xgrammar::Grammar(xgrammar::NullObj());
}

xgrammar::Grammar convert(const GrammarSource& source) {
  switch (source.kind) {
    case Kind::json_object: return from_schema(R"({"type": "object"})", false);
    case Kind::json_schema: return from_schema(source.schema.dump(), true);
    case Kind::regex: return xgrammar::Grammar::FromRegex(source.text);
    case Kind::choice: return from_format(choice_format(source.choices));
    case Kind::ebnf: return xgrammar::Grammar::FromEBNF(source.text);
    case Kind::tool_calls: break;
  }
  return without_control_characters(from_format(tool_call_format(source.tools)));
}

struct Compiled {
  std::shared_ptr<const CompiledGrammar> grammar;
  std::size_t bytes = 0;
};

/// What compilations need; those left alone keep it alive.
class Workshop {
 public:
  Workshop(std::shared_ptr<const Tokenizer> tokenizer, int vocabulary, std::vector<TokenId> stop_tokens)
      : tokenizer_(std::move(tokenizer)),
        stop_tokens_(std::move(stop_tokens)),
        compiler_(tokenizer_info(*tokenizer_, vocabulary), /*max_threads=*/1, /*cache_enabled=*/false) {}

  Compiled compile(const GrammarSource& source) {
    const xgrammar::Grammar grammar = convert(source);
    const std::size_t size = grammar.ToString().size();
    if (size > largest_converted) {
      fail<RequestError>("it is too large: {} bytes as a grammar, at most {}", size, largest_converted);
    }
    xgrammar::CompiledGrammar compiled = compiler_.CompileGrammar(grammar);
    const std::size_t bytes = compiled.MemorySizeBytes();
    if (source.kind != Kind::tool_calls) {
      return {std::make_shared<TextGrammar>(std::move(compiled), stop_tokens_), bytes};
    }
    return {std::make_shared<ToolCallsGrammar>(std::move(compiled), tool_call_tags(*tokenizer_),
                                               source.parallel_tool_calls, stop_tokens_),
            bytes};
  }

  std::atomic<int> left_alone = 0;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenId> stop_tokens_;
  xgrammar::GrammarCompiler compiler_;
};

/// Compiles on a thread of its own, and waits for it as long as is reasonable.
Compiled compile_in_time(const std::shared_ptr<Workshop>& workshop, const GrammarSource& source) {
  if (workshop->left_alone >= most_left_alone) {
    fail<RequestError>("earlier ones are still being compiled; try again later, with a simpler one");
  }
  std::promise<Compiled> promise;
  std::future<Compiled> future = promise.get_future();
  const auto late = std::make_shared<std::atomic<bool>>(false);
  std::thread([workshop, source, late, promise = std::move(promise)]() mutable {
    try {
      promise.set_value(workshop->compile(source));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
    if (late->exchange(true)) --workshop->left_alone;
  }).detach();
  if (future.wait_for(longest_compilation) == std::future_status::ready) return future.get();
  ++workshop->left_alone;
  if (late->exchange(true)) --workshop->left_alone;
  fail<RequestError>("it takes more than {} seconds; make it simpler", longest_compilation.count());
}

class XGrammarCompiler : public GrammarCompiler {
 public:
  XGrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, int vocabulary, std::vector<TokenId> stop_tokens)
      : workshop_(std::make_shared<Workshop>(std::move(tokenizer), vocabulary, std::move(stop_tokens))) {}

  std::shared_ptr<const CompiledGrammar> compile(const GrammarSource& source) override {
    check_grammar_source(source);
    const std::string key = grammar_key(source);
    if (auto known = find(key)) return known;
    try {
      Compiled compiled = compile_in_time(workshop_, source);
      return keep(key, std::move(compiled.grammar), key.size() + compiled.bytes);
    } catch (const std::exception& error) {
      fail<RequestError>("{} cannot be compiled: {}", grammar_kind_name(source.kind), error.what());
    }
  }

 private:
  struct Kept {
    std::string key;
    std::shared_ptr<const CompiledGrammar> grammar;
    std::size_t bytes;
  };

  std::shared_ptr<const CompiledGrammar> find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found->second);
    return found->second->grammar;
  }

  std::shared_ptr<const CompiledGrammar> keep(const std::string& key, std::shared_ptr<const CompiledGrammar> grammar,
                                              std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (const auto found = index_.find(key); found != index_.end()) return found->second->grammar;
    kept_.push_front({key, std::move(grammar), bytes});
    index_.emplace(kept_.front().key, kept_.begin());
    kept_bytes_ += bytes;
    std::shared_ptr<const CompiledGrammar> kept = kept_.front().grammar;
    while (!kept_.empty() && (kept_.size() > most_kept || kept_bytes_ > most_kept_bytes)) {
      kept_bytes_ -= kept_.back().bytes;
      index_.erase(kept_.back().key);
      kept_.pop_back();
    }
    return kept;
  }

  std::shared_ptr<Workshop> workshop_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // the last used first
  std::unordered_map<std::string_view, std::list<Kept>::iterator> index_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace

std::unique_ptr<GrammarCompiler> make_grammar_compiler(std::shared_ptr<const Tokenizer> tokenizer, int vocabulary,
                                                       std::vector<TokenId> stop_tokens) {
  return std::make_unique<XGrammarCompiler>(std::move(tokenizer), vocabulary, std::move(stop_tokens));
}

bool grammars_supported() { return true; }

}  // namespace sluice
