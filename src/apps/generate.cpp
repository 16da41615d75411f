#include <optional>

#include <unistd.h>

#include "apps/commands.h"
#include "apps/generation.h"
#include "apps/interrupt.h"
#include "apps/model_files.h"
#include "apps/output.h"
#include "base/error.h"

namespace sluice {

namespace {

struct Prompt {
  std::vector<TokenId> ids;
  ReplyReading reading;
};

std::vector<TokenId> parse_ids(const std::string& text) {
  std::vector<TokenId> ids;
  for (const std::int64_t id : parse_integers(text, "--ids")) {
    if (id < 0 || id > INT32_MAX) fail<UsageError>("--ids: {} is no token id", id);
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

void check_usage(const GenerateOptions& options) {
  options.engine.refuse_unsupported();
  options.chat.refuse_unsupported();
  const int given = options.prompt.given() + options.messages.given() + options.ids.given();
  if (given != 1) fail<UsageError>("generate needs one of -p TEXT, --messages FILE and --ids 1,2,3, found {}", given);
  if (options.tools.given() && !options.messages.given()) fail<UsageError>("--tools: goes with --messages only");
}

/// Reads what can be wrong in files before a model is loaded.
struct ChatInput {
  Json messages, tools;
  std::shared_ptr<const ChatTemplate> chat_template;
};

ChatInput read_chat(const GenerateOptions& options, const ModelFiles& files) {
  if (!options.messages.given()) return {};
  return {read_messages(*options.messages), read_tools(*options.tools),
          files.require_chat_template(*options.chat.chat_template)};
}

Prompt make_prompt(const GenerateOptions& options, const ChatInput& chat, const Tokenizer* tokenizer) {
  Prompt prompt;
  prompt.reading.stop = *options.sampling.stop;
  if (options.ids.given()) {
    prompt.ids = parse_ids(*options.ids);
  } else if (options.prompt.given()) {
    prompt.ids = tokenizer->encode(*options.prompt);
  } else {
    const std::string text =
        chat.chat_template->render(chat.messages, chat.tools, {true, template_variables(*options.chat.thinking)});
    prompt.ids = tokenizer->encode(text);
    prompt.reading.is_chat = true;
    prompt.reading.format = {ends_in_reasoning(text), chat.tools};
  }
  return prompt;
}

Json calls_json(const std::vector<ToolCall>& calls) {
  Json list = Json::array();
  for (const ToolCall& call : calls) {
    list.push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return list;
}

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

Json result_json(const std::vector<TokenId>& prompt, const Generated& generated) {
  const Reply& reply = generated.reply;
  const bool calls = !reply.tool_calls.empty() && generated.finish_reason == FinishReason::stop;
  const auto completion = generated.tokens.size();
  return {{"prompt_ids", prompt},
          {"output_ids", generated.tokens},
          {"text", reply.content},
          {"reasoning", reply.reasoning},
          {"tool_calls", calls_json(reply.tool_calls)},
          {"finish_reason", calls                                           ? "tool_calls"
                            : generated.finish_reason == FinishReason::stop ? "stop"
                                                                            : "length"},
          {"usage",
           {{"prompt_tokens", prompt.size()},
            {"completion_tokens", completion},
            {"total_tokens", prompt.size() + completion},
            {"prompt_tokens_details", {{"cached_tokens", 0}}}}},
          {"timings",
           {{"queued_ms", milliseconds(generated.timings.queued)},
            {"first_token_ms", milliseconds(generated.timings.first_token)},
            {"total_ms", milliseconds(generated.timings.total)},
            {"prompt_per_second", generated.prefill_tokens_per_second()},
            {"predicted_per_second", generated.decode_tokens_per_second()}}},
          {"speculation", {{"steps", 0}, {"draft_tokens", 0}, {"accepted_tokens", 0}}}};
}

/// Streams the reply: content to standard output, thinking (when wanted) to standard error.
class StreamedReply {
 public:
  StreamedReply(bool has_text, bool shows_reasoning) : has_text_(has_text), shows_reasoning_(shows_reasoning) {}
  void add(std::optional<TokenId> token, const ReplyDelta& delta) {
    if (!has_text_) {
      if (token) print(fmt::format("{}{}", ends_line_ ? "" : ",", *token));
      return;
    }
    if (shows_reasoning_) write_error(delta.reasoning);
    print(delta.content);
  }
  void finish(const Reply& reply) {
    for (const ToolCall& call : reply.tool_calls) {
      if (!ends_line_) print("\n");
      print(Json{{"name", call.name}, {"arguments", call.arguments}}.dump(-1, ' ', false,
                                                                          Json::error_handler_t::replace) +
            "\n");
    }
    if (!ends_line_) print("\n");
  }

 private:
  void print(std::string_view text) {
    if (text.empty()) return;
    write_output(text);
    ends_line_ = text.back() == '\n';
  }
  bool has_text_, shows_reasoning_, ends_line_ = true;
};

}  // namespace

int generate_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  GenerateOptions options;
  if (!read_into(options, info, arguments)) return 0;
  check_usage(options);
  const Environment environment = read_environment();
  const bool needs_text = !options.ids.given();
  const std::shared_ptr<const ModelFiles> files =
      open_model_files(options.model.name(), environment, *options.model.mmproj);
  const ChatInput chat = read_chat(options, *files);
  const Session session = open_session(files, options.engine, environment, needs_text);
  const Prompt prompt = make_prompt(options, chat, session.tokenizer.get());
  const SamplingParams sampling = sampling_params(options.sampling, options.engine, session.generation_config);

  StreamedReply streamed(session.tokenizer != nullptr, *options.chat.thinking == "on" || isatty(STDERR_FILENO) == 1);
  const Generated generated = generate_reply(session, prompt.ids, sampling, prompt.reading,
                                             [&](std::optional<TokenId> token, const ReplyDelta& delta) {
                                               if (!*options.json) streamed.add(token, delta);
                                             });
  const bool interrupted = generated.finish_reason == FinishReason::cancelled;
  if (!*options.json) {
    streamed.finish(generated.reply);
  } else if (!interrupted) {
    write_output(indented_json(result_json(prompt.ids, generated)));
  }
  return interrupted ? interrupted_exit_code : 0;
}

}  // namespace sluice
