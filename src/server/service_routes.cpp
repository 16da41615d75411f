#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/version.h"
#include "server/anthropic_messages.h"
#include "server/embedded.h"
#include "server/generation_api.h"
#include "server/http_format.h"
#include "server/service.h"
#include "server/text_tasks.h"

namespace sluice {

namespace {

HttpResponse file_response(std::string_view content_type, std::string_view body) {
  HttpResponse response;
  response.content_type = content_type;
  response.body = body;
  response.headers.emplace_back("Cache-Control", "no-cache");
  return response;
}

HttpResponse page_response() {
  HttpResponse response = file_response("text/html; charset=utf-8", page_html());
  response.headers.emplace_back("Content-Security-Policy", page_content_security_policy());
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  return response;
}

}  // namespace

/// What lies under a path.
struct Service::Route {
  std::string_view path, method;
  bool needs_key, needs_model;
  void (*run)(Service& service, const Exchange& exchange);
};

void Service::handle(const Exchange& exchange) {
  for (auto& [name, value] : access_.cors_headers(exchange->request())) exchange->add_header(name, value);
  try {
    dispatch(exchange);
  } catch (const ApiError& error) {
    const bool anthropic = exchange->request().path.rfind("/v1/messages", 0) == 0;
    HttpResponse response =
        json_response(error.status(), anthropic ? anthropic_error_json(error) : openai_error_json(error));
    if (error.retry_after()) response.headers.emplace_back("Retry-After", std::to_string(*error.retry_after()));
    if (error.status() == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    send(exchange, std::move(response));
  }
}

void Service::send(const Exchange& exchange, HttpResponse response) {
  LoggedRequest logged(exchange->request());
  logged.status = response.status;
  // Probes and scrapes come every second: only what is wrong is worth a line.
  const bool is_probe = exchange->request().method == "GET" && response.status < 400;
  if (!is_probe) log_.write(logged);
  exchange->send(std::move(response));
}

void Service::dispatch(const Exchange& exchange) {
  static constexpr Route routes[] = {
      {"/", "GET", false, false, [](Service& s, const Exchange& e) { s.send(e, page_response()); }},
      {"/health", "GET", false, false, [](Service& s, const Exchange& e) { s.show_state(e, false); }},
      {"/ready", "GET", false, false, [](Service& s, const Exchange& e) { s.show_state(e, false); }},
      {"/live", "GET", false, false, [](Service& s, const Exchange& e) { s.show_state(e, true); }},
      {"/version", "GET", false, false,
       [](Service& s, const Exchange& e) {
         s.send(e, json_response(200, {{"version", version()}, {"commit", commit()}, {"engine", "sluice"}}));
       }},
      {"/openapi.json", "GET", false, false,
       [](Service& s, const Exchange& e) { s.send(e, file_response("application/json", openapi_json())); }},
      {"/metrics", "GET", false, false,
       [](Service& s, const Exchange& e) {
         s.send(e, file_response("text/plain; version=0.0.4; charset=utf-8",
                                 s.metrics_.text(s.model_ ? s.model_->engine.get() : nullptr, s.http_.stats(),
                                                 s.options_.model_names.front())));
       }},
      {"/v1/models", "GET", true, true, [](Service& s, const Exchange& e) { s.show_models(e, ""); }},
      {"/v1/messages/count_tokens", "POST", true, true,
       [](Service& s, const Exchange& e) { s.work(e, count_tokens_task, anthropic_error_json); }},
      {"/tokenize", "POST", true, true,
       [](Service& s, const Exchange& e) { s.work(e, tokenize_task, openai_error_json); }},
      {"/detokenize", "POST", true, true,
       [](Service& s, const Exchange& e) { s.work(e, detokenize_task, openai_error_json); }},
      {"/apply-template", "POST", true, true,
       [](Service& s, const Exchange& e) { s.work(e, template_task, openai_error_json); }},
  };
  const std::string& path = exchange->request().path;
  for (const Route& route : routes) {
    if (route.path == path) return run(route, exchange);
  }
  for (const GenerationApi& api : generation_apis()) {
    if (api.path == path) return run({path, "POST", true, true, nullptr}, exchange);
  }
  static constexpr std::string_view models = "/v1/models/";
  if (path.rfind(models, 0) == 0 && path.size() > models.size()) {
    return run({path, "GET", true, true,
                [](Service& s, const Exchange& e) { s.show_models(e, e->request().path.substr(models.size())); }},
               exchange);
  }
  throw ApiError(404, fmt::format("there is nothing under {}; /openapi.json lists what is",
                                  Json(path).dump(-1, ' ', true, Json::error_handler_t::replace)));
}

void Service::run(const Route& route, const Exchange& exchange) {
  const HttpRequest& request = exchange->request();
  const bool allowed = request.method == route.method || (request.method == "HEAD" && route.method == "GET");
  if (Access::is_preflight(request)) {
    HttpResponse response;
    response.status = 204;
    response.content_type.clear();
    return send(exchange, std::move(response));
  }
  if (!allowed) {
    exchange->add_header("Allow", std::string(route.method) + (route.method == "GET" ? ", HEAD" : ""));
    throw ApiError(405, fmt::format("{} takes {}, not {}", route.path, route.method, request.method));
  }
  if (route.needs_key && !access_.has_key(request)) {
    throw ApiError(401,
                   "the API key is missing or wrong: send it as \"Authorization: Bearer KEY\" or \"x-api-key: KEY\"")
        .with_code("invalid_api_key");
  }
  if (route.needs_model) require_open();
  if (route.run != nullptr) return route.run(*this, exchange);
  for (const GenerationApi& api : generation_apis()) {
    if (api.path == route.path) return generate(exchange, api);
  }
}

void Service::show_state(const Exchange& exchange, bool is_liveness) {
  const bool failed = model_ != nullptr && model_->engine->failed();
  if (failed) return send(exchange, json_response(503, {{"status", "failed"}, {"message", model_->engine->failure()}}));
  const bool is_ready = model_ != nullptr && !draining_;
  const std::string_view state = draining_ ? "draining" : model_ == nullptr ? "loading" : "ok";
  send(exchange, json_response(is_ready || is_liveness ? 200 : 503, {{"status", state}}));
}

Json Service::model_json(const std::string& name) const {
  return {{"id", name},
          {"object", "model"},
          {"created", model_->created},
          {"owned_by", "sluice"},
          {"root", options_.model_names.front()},
          {"parent", nullptr},
          {"max_model_len", model_->engine->max_model_len()},
          {"vocab_size", model_->defaults.vocabulary},
          {"has_chat", model_->defaults.has_chat}};
}

void Service::show_models(const Exchange& exchange, const std::string& id) {
  if (!id.empty()) {
    check_model_name(id);
    return send(exchange, json_response(200, model_json(id)));
  }
  Json list = Json::array();
  for (const std::string& name : options_.model_names) list.push_back(model_json(name));
  send(exchange, json_response(200, {{"object", "list"}, {"data", std::move(list)}}));
}

}  // namespace sluice
