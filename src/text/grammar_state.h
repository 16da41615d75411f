#pragma once
#include <memory>
#include <vector>

#include "text/grammar.h"

namespace xgrammar {
class CompiledGrammar;
}

namespace sluice {

/// stop_tokens: what may come where the grammar may end.
std::unique_ptr<GrammarState> make_grammar_state(const xgrammar::CompiledGrammar& grammar,
                                                 std::vector<TokenId> stop_tokens);

}  // namespace sluice
