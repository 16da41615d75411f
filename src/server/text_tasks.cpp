#include "server/text_tasks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "server/anthropic_messages.h"
#include "server/api_error.h"
#include "server/fields.h"
#include "server/openai_chat.h"
#include "server/preparation.h"

namespace sluice {

namespace {

const Tokenizer& require_tokenizer(const ServedModel& model) {
  if (model.tokenizer == nullptr) throw ApiError(400, "this model has no tokenizer");
  return *model.tokenizer;
}

std::vector<TokenId> ids_of(const Json& body, const ServedModel& model) {
  Fields fields(body);
  const bool special = fields.boolean("add_special_tokens").value_or(true);
  const bool parse_special = fields.boolean("parse_special").value_or(special);
  if (fields.has("messages")) return prepare_prompts(parse_chat_request(body, model.defaults), model).front().ids;
  const std::string key = fields.has("content") && !fields.has("prompt") ? "content" : "prompt";
  return tokenize_bounded(fields.required_text(key), model, parse_special);
}

}  // namespace

Json tokenize_task(const Json& body, const ServedModel& model) {
  const Tokenizer& tokenizer = require_tokenizer(model);
  Fields fields(body);
  const bool with_text = fields.boolean("return_token_strs").value_or(false);
  const std::vector<TokenId> ids = ids_of(body, model);
  Json texts;
  if (with_text) {
    texts = Json::array();
    for (const TokenId id : ids) texts.push_back(tokenizer.decode({id}));
  }
  return {{"count", ids.size()},
          {"max_model_len", model.engine->max_model_len()},
          {"tokens", ids},
          {"token_strs", std::move(texts)}};
}

Json detokenize_task(const Json& body, const ServedModel& model) {
  const Tokenizer& tokenizer = require_tokenizer(model);
  Fields fields(body);
  const Json& list = fields.required_array("tokens");
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = "tokens[" + std::to_string(i) + "]";
    if (!list[i].is_number_integer()) fail_type(path, "a token id", list[i]);
    const auto id = list[i].get<std::int64_t>();
    if (id < 0 || id >= model.engine->model_info().vocabulary) fail_type(path, "a token id of this model", list[i]);
    ids.push_back(static_cast<TokenId>(id));
  }
  const std::string text = tokenizer.decode(ids);
  return {{"prompt", text}, {"content", text}};
}

Json template_task(const Json& body, const ServedModel& model) {
  return {{"prompt", prepare_prompts(parse_chat_request(body, model.defaults), model).front().text}};
}

Json count_tokens_task(const Json& body, const ServedModel& model) {
  const GenerationRequest request = parse_count_tokens_request(body, model.defaults);
  return {{"input_tokens", prepare_prompts(request, model).front().ids.size()}};
}

}  // namespace sluice
