#pragma once
#include <memory>
#include <optional>
#include <string>

#include "apps/command_options.h"
#include "apps/generation.h"
#include "apps/session.h"
#include "base/json.h"
#include "text/chat_template.h"

namespace sluice {

/// A conversation: messages, how the model shall think, and the last reply's numbers.
class Chat {
 public:
  Chat(const Session& session, std::shared_ptr<const ChatTemplate> chat_template, const RunOptions& options);

  /// Adds the message, generates the reply and adds that too. After an error the conversation is as before; of an
  /// interrupted reply what there is stays.
  Generated answer(const std::string& message, const ReplyCallback& on_delta);
  void set_thinking(const std::string& on_or_off) { thinking_ = on_or_off; }
  /// An empty text removes the system message.
  void set_system(const std::string& text) { system_ = text; }
  void clear() { turns_ = Json::array(); }
  /// System message and turns, as OpenAI's.
  Json messages() const;

 private:
  const Session& session_;
  std::shared_ptr<const ChatTemplate> chat_template_;
  SamplingParams sampling_;
  std::vector<std::string> stop_;
  std::string thinking_, system_;
  Json turns_ = Json::array();
};

/// Chats on the terminal until the user leaves. Exit code.
int chat_on_terminal(Chat& chat, const Environment& environment, const Session& session);

}  // namespace sluice
