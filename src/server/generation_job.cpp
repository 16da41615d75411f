#include "server/generation_job.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "server/http_format.h"
#include "text/grammar.h"

namespace sluice {

namespace {

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

std::string body_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

HttpResponse error_response(const ApiError& error, const Json& json) {
  HttpResponse response;
  response.status = error.status();
  response.body = body_text(json);
  if (error.retry_after()) response.headers.emplace_back("Retry-After", std::to_string(*error.retry_after()));
  return response;
}

EndKind kind_of(ChoiceEnd::Reason reason) {
  switch (reason) {
    case ChoiceEnd::Reason::stop: return EndKind::stop;
    case ChoiceEnd::Reason::length: return EndKind::length;
    case ChoiceEnd::Reason::tool_calls: return EndKind::tool_calls;
  }
  return EndKind::error;
}

void append(ReplyDelta& delta, ReplyDelta more) {
  delta.reasoning += more.reasoning;
  delta.content += more.content;
  for (ReplyDelta::CallFragment& fragment : more.tool_calls) delta.tool_calls.push_back(std::move(fragment));
}

bool is_empty(const ChoiceDelta& delta) {
  return delta.text.content.empty() && delta.text.reasoning.empty() && delta.text.tool_calls.empty() &&
         delta.tokens.empty();
}

}  // namespace

GenerationJob::GenerationJob(std::uint64_t id, std::shared_ptr<const ServedModel> model, PreparedRequest prepared,
                             std::unique_ptr<ReplyWriter> writer, Json (*error_json)(const ApiError&),
                             std::shared_ptr<HttpExchange> exchange, Metrics& metrics)
    : id_(id),
      model_(std::move(model)),
      prepared_(std::move(prepared)),
      writer_(std::move(writer)),
      error_json_(error_json),
      exchange_(std::move(exchange)),
      metrics_(metrics) {
  prepare_choices();
}

void GenerationJob::prepare_choices() {
  const GenerationRequest& request = prepared_.request;
  for (PreparedPrompt& prompt : prepared_.prompts) {
    result_.usage.prompt_tokens += std::ssize(prompt.ids);
    result_.prompts.push_back({std::move(prompt.text), prompt.ids, {}});
  }
  const std::size_t count = prepared_.prompts.size() * static_cast<std::size_t>(request.n);
  result_.choices.resize(count);
  choices_.resize(count);
  if (model_->tokenizer == nullptr) return;
  end_of_reasoning_ = model_->tokenizer->id_of("</think>");
  for (std::size_t i = 0; i < count; ++i) {
    ReplyReading reading;
    reading.is_chat = request.chat.has_value();
    choices_[i].in_reasoning = prepared_.prompts[i / static_cast<std::size_t>(request.n)].starts_in_reasoning;
    if (request.chat) reading.format = {choices_[i].in_reasoning, request.chat->tools};
    reading.stop = request.stop;
    reading.include_stop = request.include_stop;
    choices_[i].reader = std::make_unique<ReplyReader>(model_->tokenizer, std::move(reading));
  }
}

Request GenerationJob::engine_request(std::size_t index, const std::shared_ptr<TokenInbox>& inbox) const {
  const GenerationRequest& wanted = prepared_.request;
  const auto n = static_cast<std::size_t>(wanted.n);
  Request request;
  request.prompt = prepared_.prompts[index / n].ids;
  request.sampling = wanted.sampling;
  if (wanted.sampling.seed) request.sampling.seed = *wanted.sampling.seed + index % n;
  if (index % n != 0) request.sampling.prompt_logprobs = -1;  // those of the first choice serve all
  if (!wanted.limits_output) request.sampling.max_tokens = 1;
  request.priority = wanted.priority;
  if (!wanted.stop.empty()) request.stop = make_stop_strings(model_->tokenizer, wanted.stop);
  if (prepared_.grammar != nullptr || wanted.thinking_budget) {
    request.filter =
        make_reply_filter(model_->tokenizer, {prepared_.grammar, choices_[index].in_reasoning, wanted.thinking_budget});
  }
  request.on_event = [inbox, job = id_, choice = static_cast<int>(index)](const TokenEvent& event) {
    inbox->push({job, choice, event});
  };
  return request;
}

void GenerationJob::start(const std::shared_ptr<TokenInbox>& inbox) {
  try {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      choices_[i].request = model_->engine->submit(engine_request(i, inbox));
      choices_[i].submitted = true;
      ++running_;
    }
  } catch (const QueueFullError& error) {
    abort(ApiError(429, error.what()).with_code("queue_full").with_retry_after(retry_after_seconds));
    return;
  } catch (const RequestError& error) {
    abort(ApiError(400, error.what()));
    return;
  } catch (const DeviceError& error) {
    abort(ApiError(503, error.what()));
    return;
  }
  if (!prepared_.request.stream) return;
  status_ = 200;
  exchange_->start_stream(200, "text/event-stream; charset=utf-8",
                          {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}});
}

void GenerationJob::take(int choice, TokenEvent& event) {
  const auto index = static_cast<std::size_t>(choice);
  count(index, event);
  if (!failed_ && event.finish_reason == FinishReason::error) {
    abort(ApiError(event.is_request_fault ? 400 : model_->engine->failed() ? 503 : 500, event.error));
  } else if (!failed_ && event.finish_reason == FinishReason::cancelled) {
    abort(ApiError(503, "the server is shutting down"));
  } else if (!failed_ && event.token) {
    take_prompt(index, event);
    take_token(index, event);
  }
  if (event.finish_reason == FinishReason::none) return;
  choices_[index].ended = true;
  if (failed_) {
    metrics_.finished(outcome_, choices_[index].timings);
  } else {
    end_choice(index, event);
  }
  --running_;
  if (running_ == 0 && !failed_) complete();
}

/// Times and lengths, also of choices whose text nobody reads any more.
void GenerationJob::count(std::size_t index, const TokenEvent& event) {
  Choice& choice = choices_[index];
  Timings& timings = choice.timings;
  const double before = timings.total_ms;
  timings = {milliseconds(event.timings.queued), milliseconds(event.timings.first_token),
             milliseconds(event.timings.total), event.prompt_tokens, event.output_tokens};
  if (!event.token) return;
  ++result_.usage.completion_tokens;
  if (event.output_tokens == 1) {
    metrics_.first_token_after(timings.first_token_ms / 1e3);
  } else {
    metrics_.token_after((timings.total_ms - before) / 1e3);
  }
  if (!choice.in_reasoning) return;
  ++result_.usage.reasoning_tokens;
  choice.in_reasoning = event.token != end_of_reasoning_;
}

void GenerationJob::take_prompt(std::size_t index, TokenEvent& event) {
  const auto n = static_cast<std::size_t>(prepared_.request.n);
  PromptInfo& prompt = result_.prompts[index / n];
  // A prompt of one token has nothing to score, but is complete all the same.
  if (prepared_.request.sampling.prompt_logprobs >= 0 && index % n == 0 && prompt.logprobs.empty()) {
    prompt.logprobs.push_back(reported(prompt.ids.front(), std::nullopt, 0, {}));
    for (const PromptLogprob& scored : event.prompt_logprobs)
      prompt.logprobs.push_back(reported(scored.token, scored.logprob, scored.rank, scored.top));
  }
  begin();
}

/// The first event of the stream, once it is known what it shows of every prompt.
void GenerationJob::begin() {
  if (begun_ || !prepared_.request.stream) return;
  const bool complete = prepared_.request.sampling.prompt_logprobs < 0 ||
                        std::all_of(
                            result_.prompts.begin(), result_.prompts.end(),
                            [](const PromptInfo& prompt) { return !prompt.logprobs.empty(); });
  if (!complete) return;
  begun_ = true;
  writer_->begin(result_, out_);
  for (const std::variant<ChoiceDelta, ChoiceEnd>& event : std::exchange(held_, {})) write(event);
}

/// Held back while another prompt is still being scored.
void GenerationJob::add_event(std::variant<ChoiceDelta, ChoiceEnd> event) {
  if (begun_) {
    write(event);
  } else {
    held_.push_back(std::move(event));
  }
}

void GenerationJob::write(const std::variant<ChoiceDelta, ChoiceEnd>& event) {
  if (const auto* delta = std::get_if<ChoiceDelta>(&event)) {
    writer_->add(*delta, result_, out_);
  } else {
    writer_->end_choice(std::get<ChoiceEnd>(event), result_, out_);
  }
}

bool GenerationJob::ends_turn(const TokenEvent& event) const {
  if (event.finish_reason != FinishReason::stop) return false;
  const SamplingParams& sampling = prepared_.request.sampling;
  const auto& own = sampling.stop_token_ids;
  if (std::find(own.begin(), own.end(), *event.token) != own.end()) return true;
  return !sampling.ignore_eos &&
         std::binary_search(model_->stop_tokens.begin(), model_->stop_tokens.end(), *event.token);
}

ReplyDelta GenerationJob::read(Choice& choice, TokenId token, bool ends_turn) const {
  if (choice.reader) return choice.reader->add(token, ends_turn);
  ReplyDelta delta;
  if (ends_turn) return delta;
  delta.content = choice.ids_text.empty() ? std::to_string(token) : " " + std::to_string(token);
  choice.ids_text += delta.content;
  return delta;
}

void GenerationJob::take_token(std::size_t index, TokenEvent& event) {
  const GenerationRequest& request = prepared_.request;
  if (!request.limits_output) return;
  const bool ends = ends_turn(event);
  ChoiceDelta delta;
  delta.index = static_cast<int>(index);
  delta.text = read(choices_[index], *event.token, ends);
  if (!ends && (request.sampling.top_logprobs >= 0 || request.return_token_ids))
    delta.tokens.push_back(reported(*event.token, event.logprob, event.rank, event.top_logprobs));
  if (event.finish_reason != FinishReason::none && choices_[index].reader)
    append(delta.text, choices_[index].reader->finish());
  if (is_empty(delta)) return;
  if (request.stream) {
    add_event(std::move(delta));
    return;
  }
  auto& tokens = result_.choices[index].tokens;
  for (ReportedToken& token : delta.tokens) tokens.push_back(std::move(token));
}

void GenerationJob::end_choice(std::size_t index, const TokenEvent& event) {
  const GenerationRequest& request = prepared_.request;
  ReplyResult::Choice& choice = result_.choices[index];
  Choice& state = choices_[index];
  if (request.limits_output)
    choice.reply = state.reader ? state.reader->reply() : Reply{"", std::move(state.ids_text), {}};
  choice.end.index = static_cast<int>(index);
  choice.end.reason = event.finish_reason == FinishReason::stop ? ChoiceEnd::Reason::stop : ChoiceEnd::Reason::length;
  if (!request.limits_output) {
    choice.end.reason = ChoiceEnd::Reason::length;
    --result_.usage.completion_tokens;
    state.timings.output_tokens = 0;
  }
  if (choice.end.reason == ChoiceEnd::Reason::stop) {
    const auto& own = request.sampling.stop_token_ids;
    if (event.token && std::find(own.begin(), own.end(), *event.token) != own.end()) {
      choice.end.stop_token = event.token;
    } else if (state.reader) {
      choice.end.stop_string = state.reader->stop_string();
    }
    if (!choice.reply.tool_calls.empty()) choice.end.reason = ChoiceEnd::Reason::tool_calls;
  }
  outcome_ = kind_of(choice.end.reason);
  metrics_.finished(outcome_, state.timings);
  if (request.stream) add_event(choice.end);
}

void GenerationJob::complete() {
  for (const Choice& choice : choices_) {
    Timings& slowest = result_.timings;
    slowest.queued_ms = std::max(slowest.queued_ms, choice.timings.queued_ms);
    slowest.first_token_ms = std::max(slowest.first_token_ms, choice.timings.first_token_ms);
    slowest.total_ms = std::max(slowest.total_ms, choice.timings.total_ms);
    slowest.output_tokens += choice.timings.output_tokens;
  }
  result_.timings.prompt_tokens = result_.usage.prompt_tokens;
  const std::shared_ptr<HttpExchange> exchange = std::exchange(exchange_, nullptr);
  status_ = 200;
  if (prepared_.request.stream) {
    writer_->end(result_, out_);
    exchange->write(std::exchange(out_, {}));
    exchange->end_stream();
  } else {
    HttpResponse response;
    response.body = body_text(writer_->whole(result_));
    exchange->send(std::move(response));
  }
}

void GenerationJob::flush() {
  if (out_.empty() || exchange_ == nullptr) return;
  // A client that is found to have left while this is written drops the exchange.
  const std::shared_ptr<HttpExchange> exchange = exchange_;
  exchange->write(out_);
  out_.clear();
  last_sign_ = Clock::now();
}

void GenerationJob::ping(Clock::time_point now, Clock::duration silence) {
  if (!prepared_.request.stream || failed_ || exchange_ == nullptr || now - last_sign_ < silence) return;
  writer_->ping(out_);
  flush();
}

void GenerationJob::client_left() {
  if (failed_) return;
  failed_ = true;
  outcome_ = EndKind::aborted;
  if (status_ == 0) status_ = 499;
  exchange_ = nullptr;
  cancel_choices();
}

void GenerationJob::abort(const ApiError& error) {
  if (failed_) return;
  failed_ = true;
  outcome_ = EndKind::error;
  const std::shared_ptr<HttpExchange> exchange = std::exchange(exchange_, nullptr);
  if (exchange != nullptr && status_ == 0) {
    status_ = error.status();
    exchange->send(error_response(error, error_json_(error)));
  } else if (exchange != nullptr) {
    writer_->fail(error, out_);
    exchange->write(std::exchange(out_, {}));
    exchange->end_stream();
  }
  cancel_choices();
}

void GenerationJob::cancel_choices() {
  for (const Choice& choice : choices_) {
    if (choice.submitted && !choice.ended) model_->engine->cancel(choice.request);
  }
}

ReportedToken GenerationJob::reported(TokenId token, std::optional<float> logprob, int rank,
                                      const std::vector<TokenLogprob>& top) const {
  auto bytes_of = [this](TokenId id) {
    return model_->tokenizer ? std::string(model_->tokenizer->bytes_of(id)) : std::to_string(id);
  };
  ReportedToken reported{token, bytes_of(token), logprob, {}, rank};
  for (const TokenLogprob& other : top) reported.top.push_back({other.token, bytes_of(other.token), other.logprob});
  return reported;
}

}  // namespace sluice
