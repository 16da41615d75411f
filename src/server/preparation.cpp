#include "server/preparation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "server/api_error.h"
#include "text/reply_reader.h"

namespace sluice {

namespace {

/// No token of the family's vocabularies is longer.
constexpr std::size_t longest_token_bytes = 256;

[[noreturn]] void fail_length(const std::string& what, std::int64_t limit) {
  throw ApiError(400,
                 fmt::format("{}; this model's context is {} tokens, of which the reply needs at least 1", what, limit))
      .with_param("prompt")
      .with_code("context_length_exceeded");
}

/// The rendered text up to the end of the last message's content, which the model goes on with.
void cut_after_final_message(std::string& text, const Json& messages) {
  const Json& last = messages.back();
  const auto content = last.find("content");
  if (last.value("role", "") != "assistant" || content == last.end() || !content->is_string()) {
    throw ApiError(400, "continue_final_message: the last message must be the assistant's, with a text as content")
        .with_param("continue_final_message");
  }
  auto wanted = content->get<std::string>();
  while (!wanted.empty() && (wanted.back() == '\n' || wanted.back() == ' ')) wanted.pop_back();
  const std::size_t found = text.rfind(wanted);
  if (wanted.empty() || found == std::string::npos) {
    throw ApiError(400, "continue_final_message: the chat template does not show the last message as it is")
        .with_param("continue_final_message");
  }
  text.resize(found + wanted.size());
}

PreparedPrompt prepare_chat(const ChatPrompt& chat, const ServedModel& model) {
  if (model.chat_template == nullptr || model.tokenizer == nullptr) {
    throw ApiError(400, "this model has no chat template; use /v1/completions").with_param("messages");
  }
  PreparedPrompt prompt;
  TemplateOptions options;
  options.add_generation_prompt = chat.add_generation_prompt;
  options.variables = chat.variables;
  try {
    prompt.text = model.chat_template->render(chat.messages, chat.tools, options);
  } catch (const RequestError& error) {
    throw ApiError(400, error.what()).with_param("messages");
  }
  if (chat.continue_final_message) cut_after_final_message(prompt.text, chat.messages);
  prompt.ids = tokenize_bounded(prompt.text, model, true);
  prompt.starts_in_reasoning = chat.add_generation_prompt && ends_in_reasoning(prompt.text);
  return prompt;
}

/// What an echo shows of a prompt that came as ids.
std::string text_of(const std::vector<TokenId>& ids, const ServedModel& model) {
  return model.tokenizer ? model.tokenizer->decode(ids) : fmt::format("{} ", fmt::join(ids, " "));
}

PreparedPrompt prepare_text(const TextPrompt& given, bool echo, const ServedModel& model) {
  PreparedPrompt prompt;
  if (const auto* text = std::get_if<std::string>(&given)) {
    prompt.text = *text;
    prompt.ids = tokenize_bounded(*text, model, true);
  } else {
    prompt.ids = std::get<std::vector<TokenId>>(given);
    if (echo) prompt.text = text_of(prompt.ids, model);
  }
  return prompt;
}

}  // namespace

std::vector<TokenId> tokenize_bounded(const std::string& text, const ServedModel& model, bool recognize_special) {
  if (model.tokenizer == nullptr) {
    throw ApiError(400, "this model has no tokenizer: prompts are token ids").with_param("prompt");
  }
  // Far more text than fits is refused before it costs time.
  const auto limit = model.engine->max_model_len();
  if (text.size() / longest_token_bytes >= static_cast<std::size_t>(limit)) {
    fail_length(fmt::format("the prompt has {} bytes", text.size()), limit);
  }
  return model.tokenizer->encode(text, recognize_special);
}

std::vector<PreparedPrompt> prepare_prompts(const GenerationRequest& request, const ServedModel& model) {
  std::vector<PreparedPrompt> prompts;
  if (request.chat) {
    prompts.push_back(prepare_chat(*request.chat, model));
  } else {
    for (const TextPrompt& prompt : request.prompts) prompts.push_back(prepare_text(prompt, request.echo, model));
  }
  return prompts;
}

PreparedRequest prepare(GenerationRequest request, const ServedModel& model) {
  PreparedRequest prepared;
  prepared.prompts = prepare_prompts(request, model);
  const std::int64_t limit = model.engine->max_model_len();
  for (const PreparedPrompt& prompt : prepared.prompts) {
    if (prompt.ids.empty())
      throw ApiError(400, "the prompt is empty; at least one token is needed").with_param("prompt");
    if (std::ssize(prompt.ids) >= limit) fail_length(fmt::format("the prompt has {} tokens", prompt.ids.size()), limit);
  }
  const bool needs_text = request.grammar || !request.stop.empty() || request.thinking_budget;
  if (needs_text && model.tokenizer == nullptr) {
    throw ApiError(400, "this model has no tokenizer: stop strings, structured output and a thinking budget need text");
  }
  if (request.grammar) {
    try {
      prepared.grammar = model.grammars->compile(*request.grammar);
    } catch (const RequestError& error) {
      throw ApiError(400, error.what()).with_param("response_format");
    }
  }
  prepared.request = std::move(request);
  return prepared;
}

}  // namespace sluice
