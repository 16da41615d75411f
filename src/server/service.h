#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/access.h"
#include "server/generation_job.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/served_model.h"
#include "server/token_inbox.h"
#include "server/work_queue.h"

namespace sluice {

struct ServiceOptions {
  std::vector<std::string> model_names;      // what clients may call the model; the first is the one that replies show
  std::vector<std::string> api_keys;         // none: everybody may ask
  std::vector<std::string> allowed_origins;  // of web pages
  std::chrono::milliseconds ping_after{10'000};  // silence of a stream
  std::size_t workers = 2;                       // threads for templates, tokenizer and grammars
  LogStyle log_style = LogStyle::text;
  bool log_requests = true;
};

struct GenerationApi;

/// The server: HTTP in front of an engine. It listens from the start, and says 503 until the model is open.
class Service {
 public:
  /// Throws LoadError when it cannot listen.
  Service(ServiceOptions options, HttpOptions http);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::uint16_t port() const { return http_.port(); }
  /// Loading is over.
  void open(ServedModel model);
  /// No more work is taken; what runs goes on until it ends, or with an error after the timeout. Then the server is
  /// stopped.
  void drain(std::chrono::milliseconds timeout);

 private:
  using Exchange = std::shared_ptr<HttpExchange>;
  struct Waiting;

  struct Route;

  // What is asked for (service_routes.cpp).
  void handle(const Exchange& exchange);
  void dispatch(const Exchange& exchange);
  void run(const Route& route, const Exchange& exchange);
  void send(const Exchange& exchange, HttpResponse response);
  void show_state(const Exchange& exchange, bool is_liveness);
  void show_models(const Exchange& exchange, const std::string& id);
  Json model_json(const std::string& name) const;

  // Work that is prepared on other threads.
  void require_open() const;
  void generate(const Exchange& exchange, const GenerationApi& api);
  void work(const Exchange& exchange, Json (*task)(const Json& body, const ServedModel& model),
            Json (*error_json)(const ApiError&));
  /// task: on a worker thread; what it returns runs on the event thread.
  void run_in_background(const Exchange& exchange, Json (*error_json)(const ApiError&),
                         std::function<std::function<void()>(std::uint64_t id, std::string body)> task);
  void begin_generation(std::uint64_t id, std::shared_ptr<const ServedModel> model, PreparedRequest prepared,
                        std::unique_ptr<ReplyWriter> writer);
  void answer(std::uint64_t id, HttpResponse response);
  void refuse(std::uint64_t id, const ApiError& error);
  /// The client went away.
  void leave(std::uint64_t id);
  void check_model_name(const std::string& name) const;
  void note_unknown_fields(const std::vector<std::string>& fields);

  void take(std::span<TokenInbox::Entry> entries);
  void finish(std::uint64_t id);
  void look_after();
  std::size_t unfinished() const { return waiting_.size() + jobs_.size(); }
  /// Runs on the event thread, and waits for it.
  void on_event_thread(const std::function<void()>& task);

  const ServiceOptions options_;
  Access access_;
  RequestLog log_;

  // Of the event thread.
  Metrics metrics_;
  std::shared_ptr<const ServedModel> model_;  // null while it loads
  bool draining_ = false;
  int idle_looks_ = 0;  // since something ran
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, Waiting> waiting_;  // being prepared
  std::unordered_map<std::uint64_t, std::unique_ptr<GenerationJob>> jobs_;
  std::unordered_map<std::uint64_t, LoggedRequest> logged_;
  std::set<std::string> unknown_fields_;  // that the log named

  HttpServer http_;
  std::shared_ptr<TokenInbox> inbox_;
  WorkQueue workers_;  // ends first
};

}  // namespace sluice
