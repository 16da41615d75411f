#include <iostream>
#include <iterator>

#include <unistd.h>

#include "apps/chat.h"
#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/model_files.h"
#include "apps/output.h"
#include "base/error.h"
#include "text/unicode.h"

namespace sluice {

namespace {

std::string read_piped_prompt() {
  std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) fail<RequestError>("the piped input is empty; pipe a prompt in, or give one with -p TEXT");
  return text;
}

/// One answer on standard output; thinking goes to standard error, where somebody wants to see it.
int answer_once(Chat& chat, const std::string& prompt, const RunOptions& options, const Environment& environment) {
  const bool on_terminal = isatty(STDERR_FILENO) == 1;
  const bool shows_reasoning = on_terminal || *options.chat.thinking == "on";
  const bool dimmed = on_terminal && environment.colored();
  bool reasoned = false, ends_line = true;
  const Generated generated = chat.answer(prompt, [&](std::optional<TokenId>, const ReplyDelta& delta) {
    if (shows_reasoning && !delta.reasoning.empty()) {
      write_error(dimmed ? "\x1b[2m" + delta.reasoning + "\x1b[22m" : delta.reasoning);
      reasoned = true;
    }
    if (delta.content.empty()) return;
    if (reasoned) write_error("\n");
    reasoned = false;
    write_output(delta.content);
    ends_line = delta.content.back() == '\n';
  });
  if (reasoned) write_error("\n");
  if (!ends_line) write_output("\n");
  return generated.finish_reason == FinishReason::cancelled ? interrupted_exit_code : 0;
}

}  // namespace

int run_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  RunOptions options;
  if (!read_into(options, info, arguments)) return 0;
  options.engine.refuse_unsupported();
  options.chat.refuse_unsupported();
  const Environment environment = read_environment();
  const bool chats = !options.prompt.given() && isatty(STDIN_FILENO) == 1;
  std::shared_ptr<const ModelFiles> files = open_model_files(options.model.name(), environment, *options.model.mmproj);
  auto chat_template = files->require_chat_template(*options.chat.chat_template);
  std::string prompt;
  if (!chats) append_valid_utf8(prompt, options.prompt.given() ? *options.prompt : read_piped_prompt());
  const Session session = open_session(std::move(files), options.engine, environment, true);
  Chat chat(session, std::move(chat_template), options);
  return chats ? chat_on_terminal(chat, environment, session) : answer_once(chat, prompt, options, environment);
}

}  // namespace sluice
