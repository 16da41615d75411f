#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/generation_request.h"
#include "text/chat_template.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace sluice {

/// What a server serves. Read from many threads, never changed.
struct ServedModel {
  std::shared_ptr<Engine> engine;
  std::shared_ptr<const Tokenizer> tokenizer;         // null: prompts and texts are token ids
  std::shared_ptr<const ChatTemplate> chat_template;  // null: no chats
  std::shared_ptr<GrammarCompiler> grammars;          // null without a tokenizer
  std::vector<TokenId> stop_tokens;                   // that end a turn, sorted
  RequestDefaults defaults;
  std::int64_t created = 0;  // seconds since 1970
};

}  // namespace sluice
