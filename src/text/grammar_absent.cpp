// Structured output in a build without xgrammar.
#include "base/error.h"
#include "text/grammar.h"

namespace sluice {

namespace {
class NoGrammars : public GrammarCompiler {
 public:
  std::shared_ptr<const CompiledGrammar> compile(const GrammarSource&) override {
    fail<RequestError>(
        "this build has no structured output (schemas, grammars, required tool calls): it was built without xgrammar, "
        "which ./dev build fetches where there is a network");
  }
};
}  // namespace

std::unique_ptr<GrammarCompiler> make_grammar_compiler(std::shared_ptr<const Tokenizer>, int, std::vector<TokenId>) {
  return std::make_unique<NoGrammars>();
}

bool grammars_supported() { return false; }

}  // namespace sluice
