#include "apps/chat.h"

#include <fstream>

#include <unistd.h>

#include "apps/line_editor.h"
#include "apps/output.h"
#include "base/error.h"

namespace sluice {

namespace {

constexpr std::string_view help =
    "  /think on|off   whether the model thinks first\n"
    "  /system TEXT    set the system message (without TEXT: remove it)\n"
    "  /clear          forget the conversation\n"
    "  /save FILE      write the conversation as JSON\n"
    "  /stats          numbers of the last reply\n"
    "  /help           this text\n"
    "  /exit           leave, as Ctrl-D does\n"
    "A line that ends in \\ goes on in the next one; \"\"\" opens and closes a text of several lines.\n"
    "Ctrl-C stops a reply.\n";

/// The terminal's side of a chat.
class TerminalChat {
 public:
  TerminalChat(Chat& chat, const Environment& environment, const Session& session)
      : chat_(chat),
        session_(session),
        colored_(environment.colored()),
        editor_(environment.dumb_terminal || isatty(STDERR_FILENO) != 1) {}

  int run() {
    write_error(
        fmt::format("{}: type a message, /help for the commands, Ctrl-D to leave\n", session_.files->path().string()));
    bool interrupted = false;
    while (!left_) {
      const TerminalInput input = editor_.read("> ");
      if (input.end == InputEnd::end_of_file) break;
      if (input.end == InputEnd::interrupted) {
        if (interrupted) break;
        interrupted = input.text.empty();
        if (interrupted) write_error("Ctrl-C again or Ctrl-D leaves\n");
        continue;
      }
      interrupted = false;
      take(message_of_input(input.text));
    }
    return 0;
  }

 private:
  void take(const std::string& message) {
    if (message.find_first_not_of(" \n") == std::string::npos) return;
    try {
      if (message.front() == '/') {
        obey(message);
      } else {
        answer(message);
      }
    } catch (const Error& error) {
      write_error(fmt::format("{}\n", error.what()));
    }
  }

  void obey(const std::string& line) {
    const std::size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    if (name == "/exit" || name == "/quit" || name == "/bye") {
      left_ = true;
    } else if (name == "/help" || name == "/?") {
      write_error(help);
    } else if (name == "/clear") {
      chat_.clear();
      write_error("the conversation is forgotten\n");
    } else if (name == "/system") {
      chat_.set_system(value);
    } else if (name == "/think") {
      if (value != "on" && value != "off") fail<UsageError>("/think is followed by on or off");
      chat_.set_thinking(value);
    } else if (name == "/save") {
      save(value);
    } else if (name == "/stats") {
      print_stats();
    } else if (name == "/image") {
      fail<UsageError>("/image: pictures are not in this build");
    } else {
      fail<UsageError>("unknown command {}; /help lists them", name);
    }
  }

  void answer(const std::string& message) {
    bool dim = false, ends_line = true;
    last_ = chat_.answer(message, [&](std::optional<TokenId>, const ReplyDelta& delta) {
      std::string text;
      if (!delta.reasoning.empty()) {
        if (!dim && colored_) text += "\x1b[2m";
        dim = true;
        text += delta.reasoning;
      }
      if (!delta.content.empty()) {
        if (dim) text += colored_ ? "\x1b[22m\n" : "\n";
        dim = false;
        text += delta.content;
      }
      if (!text.empty()) ends_line = text.back() == '\n';
      write_output(text);
    });
    if (dim && colored_) write_output("\x1b[22m");
    if (!ends_line) write_output("\n");
    if (last_->finish_reason == FinishReason::cancelled) write_error("(stopped)\n");
    if (last_->finish_reason == FinishReason::length) write_error("(cut off: the reply reached its length limit)\n");
  }

  void save(const std::string& file) {
    if (file.empty()) fail<UsageError>("/save is followed by a file name");
    std::ofstream out(file, std::ios::binary);
    out << indented_json(chat_.messages());
    out.close();
    if (!out) fail<Error>("{}: cannot be written", file);
    write_error(fmt::format("saved to {}\n", file));
  }

  void print_stats() {
    if (!last_) fail<UsageError>("there is no reply yet");
    write_error(fmt::format(
        "{} prompt tokens, {:.1f} tokens/s; {} reply tokens, {:.1f} tokens/s; first token after {:.0f} ms\n",
        last_->prompt_tokens, last_->prefill_tokens_per_second(), last_->tokens.size(),
        last_->decode_tokens_per_second(),
        std::chrono::duration<double, std::milli>(last_->timings.first_token).count()));
  }

  Chat& chat_;
  const Session& session_;
  bool colored_, left_ = false;
  LineEditor editor_;
  std::optional<Generated> last_;
};

}  // namespace

Chat::Chat(const Session& session, std::shared_ptr<const ChatTemplate> chat_template, const RunOptions& options)
    : session_(session),
      chat_template_(std::move(chat_template)),
      sampling_(sampling_params(options.sampling, options.engine, session.generation_config)),
      stop_(*options.sampling.stop),
      thinking_(*options.chat.thinking),
      system_(*options.system) {}

Json Chat::messages() const {
  Json messages = Json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const Json& turn : turns_) messages.push_back(turn);
  return messages;
}

Generated Chat::answer(const std::string& message, const ReplyCallback& on_delta) {
  const Json before = turns_;
  turns_.push_back({{"role", "user"}, {"content", message}});
  try {
    const std::string prompt = chat_template_->render(messages(), nullptr, {true, template_variables(thinking_)});
    const ReplyReading reading{true, {ends_in_reasoning(prompt), nullptr}, stop_};
    Generated generated = generate_reply(session_, session_.tokenizer->encode(prompt), sampling_, reading, on_delta);
    Json turn = {{"role", "assistant"}, {"content", generated.reply.content}};
    if (!generated.reply.reasoning.empty()) turn["reasoning_content"] = generated.reply.reasoning;
    turns_.push_back(std::move(turn));
    return generated;
  } catch (const Error&) {
    turns_ = before;
    throw;
  }
}

int chat_on_terminal(Chat& chat, const Environment& environment, const Session& session) {
  return TerminalChat(chat, environment, session).run();
}

}  // namespace sluice
