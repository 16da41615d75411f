#pragma once
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "text/grammar.h"
#include "text/tiny_files.h"

namespace sluice {

inline const std::vector<TokenId>& tiny_stops() {
  static const std::vector<TokenId> tokens{*tiny_tokenizer()->id_of("<|im_end|>"),
                                           *tiny_tokenizer()->id_of("<|endoftext|>")};
  return tokens;
}

inline bool is_stop(TokenId token) { return std::count(tiny_stops().begin(), tiny_stops().end(), token) > 0; }

inline GrammarCompiler& tiny_compiler() {
  static const auto compiler = make_grammar_compiler(tiny_tokenizer(), tiny_tokenizer()->size(), tiny_stops());
  return *compiler;
}

/// The tokens that a filter or a state of a grammar leaves.
template <class Masker>
std::vector<TokenId> allowed_after(Masker& masker) {
  std::vector<float> logits(static_cast<std::size_t>(tiny_tokenizer()->size()), 1.0f);
  masker.mask(logits);
  std::vector<TokenId> allowed;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] == 1.0f) allowed.push_back(static_cast<TokenId>(id));
  }
  return allowed;
}

struct Walk {
  std::string text;
  bool ended = false, stuck = false;
};

/// The next byte of "\n</parameter>\n", after as much of it as the text ends with.
inline std::string next_of_parameter_end(const std::string& text) {
  const std::string end = "\n</parameter>\n";
  for (std::size_t length = end.size() - 1; length > 0; --length) {
    if (text.ends_with(end.substr(0, length))) return end.substr(length, 1);
  }
  return end.substr(0, 1);
}

/// Takes allowed tokens at random until one ends the reply. The longer it gets, the more it goes for those that close
/// something, so that most walks end.
template <class Masker>
Walk random_walk(Masker& masker, unsigned seed, int longest) {
  std::mt19937 random(seed);
  Walk walk;
  for (int step = 0; step < longest; ++step) {
    const std::vector<TokenId> allowed = allowed_after(masker);
    if (allowed.empty()) return walk.stuck = true, walk;
    const std::string next = next_of_parameter_end(walk.text);
    std::vector<TokenId> closing, next_of_end;
    for (const TokenId token : allowed) {
      const std::string_view bytes = tiny_tokenizer()->bytes_of(token);
      if (is_stop(token) || bytes == "\"" || bytes == "}" || bytes == "]") closing.push_back(token);
      if (bytes == next) next_of_end.push_back(token);
    }
    // Where nearly everything is allowed, a value without quotes goes on until the tag that ends it.
    const bool free_text = allowed.size() > static_cast<std::size_t>(tiny_tokenizer()->size()) / 2;
    if (!next_of_end.empty() && (free_text || closing.empty())) closing = next_of_end;
    const bool may_end = std::any_of(closing.begin(), closing.end(), is_stop);
    const bool close = !closing.empty() && random() % 32 < (step < 20 ? 3u : may_end ? 16u : 31u);
    const std::vector<TokenId>& choices = close ? closing : allowed;
    const TokenId token = choices[random() % choices.size()];
    masker.accept(token);
    if (is_stop(token)) return walk.ended = true, walk;
    walk.text += tiny_tokenizer()->bytes_of(token);
  }
  return walk;
}

/// Whether a reply may be just this text, token by token.
inline bool accepts(const CompiledGrammar& grammar, const std::string& text) {
  const auto state = grammar.start();
  std::vector<TokenId> tokens = tiny_tokenizer()->encode(text);
  tokens.push_back(tiny_stops()[0]);
  for (const TokenId token : tokens) {
    const std::vector<TokenId> allowed = allowed_after(*state);
    if (!std::binary_search(allowed.begin(), allowed.end(), token)) return false;
    state->accept(token);
  }
  return true;
}

}  // namespace sluice
