#include "server/service.h"

#include <algorithm>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <malloc.h>

#include "base/error.h"
#include "base/version.h"
#include "server/generation_api.h"
#include "server/http_format.h"
#include "server/preparation.h"

namespace sluice {

namespace {

constexpr int restart_retry_after_seconds = 2;
constexpr std::size_t most_unknown_fields = 1000;  // that the log names
constexpr std::chrono::milliseconds poll_interval{10}, longest_look{1000};
constexpr int looks_until_calm = 4;
constexpr std::chrono::seconds longest_last_write{2}, longest_cancel{10};

std::string random_name() {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string name(24, ' ');
  for (char& c : name) c = letters[random() % letters.size()];
  return name;
}

std::int64_t seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

Json parse_body(const std::string& body) {
  try {
    return parse_json(body, "the body");
  } catch (const LoadError& error) {
    throw ApiError(400, error.what());
  }
}

}  // namespace

/// A request that a worker thread prepares.
struct Service::Waiting {
  Exchange exchange;
  Json (*error_json)(const ApiError&);
};

Service::Service(ServiceOptions options, HttpOptions http)
    : options_(std::move(options)),
      access_(options_.api_keys, options_.allowed_origins),
      log_(options_.log_style, options_.log_requests),
      http_(std::move(http), [this](const Exchange& exchange) { handle(exchange); }),
      inbox_(std::make_shared<TokenInbox>(
          [this](auto delay, std::function<void()> task) { http_.post_after(delay, std::move(task)); },
          [this](std::span<TokenInbox::Entry> entries) { take(entries); })),
      workers_(options_.workers) {
  http_.start();
  http_.post([this] { look_after(); });
}

Service::~Service() {
  http_.stop();
  // The engine's last events go to the inbox, which outlives it; nobody takes them any more.
  jobs_.clear();
  waiting_.clear();
  model_ = nullptr;
}

void Service::open(ServedModel model) {
  auto shared = std::make_shared<const ServedModel>(std::move(model));
  on_event_thread([&] { model_ = shared; });
}

void Service::on_event_thread(const std::function<void()>& task) {
  std::promise<void> done;
  http_.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void Service::drain(std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  std::size_t left = 0;
  on_event_thread([&] {
    draining_ = true;
    http_.begin_drain();
    left = unfinished();
  });
  log_.note(fmt::format("draining: {} requests are left", left));
  const auto wait_until_done = [&](Clock::time_point end) {
    while (true) {
      on_event_thread([&] { left = unfinished(); });
      if (left == 0 || Clock::now() >= end) return;
      std::this_thread::sleep_for(poll_interval);
    }
  };
  wait_until_done(Clock::now() + timeout);
  if (left > 0) {
    log_.note(fmt::format("ending {} requests that did not finish in time", left));
    on_event_thread([this] {
      const ApiError error(503, "the server is shutting down");
      for (auto& [id, job] : jobs_) job->abort(error);
      std::vector<std::uint64_t> ids;
      for (const auto& [id, waiting] : waiting_) ids.push_back(id);
      for (const std::uint64_t id : ids) refuse(id, error);
    });
    wait_until_done(Clock::now() + longest_cancel);
  }
  for (const auto end = Clock::now() + longest_last_write; http_.stats().exchanges > 0 && Clock::now() < end;)
    std::this_thread::sleep_for(poll_interval);
  http_.stop();
}

void Service::run_in_background(const Exchange& exchange, Json (*error_json)(const ApiError&),
                                std::function<std::function<void()>(std::uint64_t, std::string)> task) {
  const std::uint64_t id = next_id_++;
  logged_.emplace(id, LoggedRequest(exchange->request()));
  waiting_.emplace(id, Waiting{exchange, error_json});
  exchange->on_close([this, id] { leave(id); });
  workers_.push([this, id, body = exchange->take_body(), task = std::move(task)]() mutable {
    std::function<void()> next;
    try {
      next = task(id, std::move(body));
    } catch (const ApiError& error) {
      next = [this, id, error] { refuse(id, error); };
    } catch (const std::exception& error) {
      next = [this, id, failure = ApiError(500, error.what())] { refuse(id, failure); };
    }
    http_.post(std::move(next));
  });
}

void Service::generate(const Exchange& exchange, const GenerationApi& api) {
  run_in_background(exchange, api.error_json, [this, &api, model = model_](std::uint64_t id, const std::string& text) {
    const Json body = parse_body(text);
    GenerationRequest request = api.parse(body, model->defaults);
    check_model_name(request.model);
    struct Ready {
      PreparedRequest prepared;
      std::unique_ptr<ReplyWriter> writer;
    };
    auto ready = std::make_shared<Ready>();
    ready->prepared = prepare(std::move(request), *model);
    const ReplyIdentity identity{random_name(), seconds_since_1970(), options_.model_names.front(),
                                 fmt::format("sluice-{}", commit())};
    ready->writer = api.make_writer(body, ready->prepared.request, identity);
    return
        [this, id, model, ready] { begin_generation(id, model, std::move(ready->prepared), std::move(ready->writer)); };
  });
}

void Service::begin_generation(std::uint64_t id, std::shared_ptr<const ServedModel> model, PreparedRequest prepared,
                               std::unique_ptr<ReplyWriter> writer) {
  auto waiting = waiting_.extract(id);
  if (waiting.empty()) return;  // the client left meanwhile
  note_unknown_fields(prepared.request.unknown_fields);
  auto job =
      std::make_unique<GenerationJob>(id, std::move(model), std::move(prepared), std::move(writer),
                                      waiting.mapped().error_json, std::move(waiting.mapped().exchange), metrics_);
  GenerationJob& begun = *jobs_.emplace(id, std::move(job)).first->second;
  begun.start(inbox_);
  if (begun.finished()) finish(id);
}

void Service::work(const Exchange& exchange, Json (*task)(const Json&, const ServedModel&),
                   Json (*error_json)(const ApiError&)) {
  run_in_background(exchange, error_json, [this, task, model = model_](std::uint64_t id, const std::string& text) {
    const Json body = parse_body(text);
    if (body.is_object() && body.contains("model") && body["model"].is_string())
      check_model_name(body["model"].get<std::string>());
    HttpResponse response = json_response(200, task(body, *model));
    return [this, id, response] { answer(id, response); };
  });
}

void Service::answer(std::uint64_t id, HttpResponse response) {
  const auto waiting = waiting_.extract(id);
  if (waiting.empty()) return;
  auto logged = logged_.extract(id);
  logged.mapped().status = response.status;
  log_.write(logged.mapped());
  waiting.mapped().exchange->send(std::move(response));
}

void Service::refuse(std::uint64_t id, const ApiError& error) {
  const auto waiting = waiting_.find(id);
  if (waiting == waiting_.end()) return;
  HttpResponse response = json_response(error.status(), waiting->second.error_json(error));
  if (error.retry_after()) response.headers.emplace_back("Retry-After", std::to_string(*error.retry_after()));
  answer(id, std::move(response));
}

void Service::leave(std::uint64_t id) {
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    job->second->client_left();
    if (job->second->finished()) finish(id);
  } else if (waiting_.erase(id) > 0) {
    constexpr int client_closed_request = 499;
    auto logged = logged_.extract(id);
    logged.mapped().status = client_closed_request;
    log_.write(logged.mapped());
  }
}

/// Each stream gets what it has new in one piece.
void Service::take(std::span<TokenInbox::Entry> entries) {
  for (TokenInbox::Entry& entry : entries) {
    const auto job = jobs_.find(entry.job);
    if (job == jobs_.end()) continue;
    job->second->take(entry.choice, entry.event);
    if (job->second->finished()) finish(entry.job);
  }
  for (const TokenInbox::Entry& entry : entries) {
    if (const auto job = jobs_.find(entry.job); job != jobs_.end()) job->second->flush();
  }
}

void Service::finish(std::uint64_t id) {
  const auto job = jobs_.extract(id);
  auto logged = logged_.extract(id);
  LoggedRequest& line = logged.mapped();
  line.status = job.mapped()->status();
  line.outcome = job.mapped()->outcome();
  line.model = options_.model_names.front();
  line.usage = job.mapped()->result().usage;
  line.timings = job.mapped()->result().timings;
  log_.write(line);
}

/// What is due every now and then: signs of life on silent streams; when nothing runs any more, freed memory goes back
/// to the system.
void Service::look_after() {
  const auto now = GenerationJob::Clock::now();
  for (auto& [id, job] : jobs_) job->ping(now, options_.ping_after);
  idle_looks_ = unfinished() > 0 ? 0 : std::min(idle_looks_ + 1, looks_until_calm + 1);
  // At once, and again when connections that lingered are gone.
  if (idle_looks_ == 1 || idle_looks_ == looks_until_calm) workers_.push([] { malloc_trim(0); });
  http_.post_after(std::min(options_.ping_after / 4, longest_look), [this] { look_after(); });
}

void Service::check_model_name(const std::string& name) const {
  const auto& names = options_.model_names;
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ApiError(404, fmt::format("the model \"{}\" is not served here; served is \"{}\"", name, names.front()))
      .with_param("model")
      .with_code("model_not_found");
}

void Service::note_unknown_fields(const std::vector<std::string>& fields) {
  for (const std::string& field : fields) {
    if (unknown_fields_.size() >= most_unknown_fields || !unknown_fields_.insert(field.substr(0, 64)).second) continue;
    log_.note(fmt::format("requests have the field {}, which is unknown here and ignored",
                          Json(field.substr(0, 64)).dump(-1, ' ', true, Json::error_handler_t::replace)));
  }
}

void Service::require_open() const {
  if (draining_) throw ApiError(503, "the server is shutting down").with_retry_after(restart_retry_after_seconds);
  if (model_ == nullptr) throw ApiError(503, "the model is being loaded").with_retry_after(restart_retry_after_seconds);
}

}  // namespace sluice
