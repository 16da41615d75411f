#include <algorithm>
#include <exception>
#include <list>
#include <mutex>
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
constexpr std::size_t largest_converted = std::size_t{256} << 10;

/// xgrammar knows ids without text as ones that no text is made of.
xgrammar::TokenizerInfo tokenizer_info(const Tokenizer& tokenizer, int vocabulary,
                                       const std::vector<TokenId>& stop_tokens) {
  std::vector<std::string> texts(static_cast<std::size_t>(std::min(vocabulary, tokenizer.size())));
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (!tokenizer.is_added(token)) texts[id] = tokenizer.bytes_of(token);
  }
  return {texts, xgrammar::VocabType::RAW, vocabulary, stop_tokens};
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

xgrammar::Grammar from_schema(const std::string& schema, bool strict) {
  return xgrammar::Grammar::FromJSONSchema(schema, /*any_whitespace=*/true, std::nullopt, std::nullopt, strict,
                                           longest_json_space);
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
  return from_format(tool_call_format(source.tools));
}

class XGrammarCompiler : public GrammarCompiler {
 public:
  XGrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, int vocabulary, std::vector<TokenId> stop_tokens)
      : tokenizer_(std::move(tokenizer)),
        stop_tokens_(std::move(stop_tokens)),
        compiler_(tokenizer_info(*tokenizer_, vocabulary, stop_tokens_), /*max_threads=*/1, /*cache_enabled=*/false) {}

  std::shared_ptr<const CompiledGrammar> compile(const GrammarSource& source) override {
    check_grammar_source(source);
    const std::string key = grammar_key(source);
    if (auto known = find(key)) return known;
    std::size_t bytes = key.size();
    auto compiled = compile_new(source, bytes);
    return keep(key, std::move(compiled), bytes);
  }

 private:
  struct Kept {
    std::string key;
    std::shared_ptr<const CompiledGrammar> grammar;
    std::size_t bytes;
  };

  std::shared_ptr<const CompiledGrammar> compile_new(const GrammarSource& source, std::size_t& bytes) {
    try {
      const xgrammar::Grammar grammar = convert(source);
      const std::size_t size = grammar.ToString().size();
      if (size > largest_converted) {
        fail<RequestError>("it is too large: {} bytes as a grammar, at most {}", size, largest_converted);
      }
      xgrammar::CompiledGrammar compiled = compiler_.CompileGrammar(grammar);
      bytes += compiled.MemorySizeBytes();
      if (source.kind != Kind::tool_calls) return std::make_shared<TextGrammar>(std::move(compiled), stop_tokens_);
      return std::make_shared<ToolCallsGrammar>(std::move(compiled), tool_call_tags(*tokenizer_),
                                                source.parallel_tool_calls, stop_tokens_);
    } catch (const std::exception& error) {
      fail<RequestError>("{} cannot be compiled: {}", grammar_kind_name(source.kind), error.what());
    }
  }

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

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenId> stop_tokens_;
  xgrammar::GrammarCompiler compiler_;
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
