#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <malloc.h>

#include "apps/bench_shapes.h"
#include "apps/commands.h"
#include "apps/generation.h"
#include "apps/interrupt.h"
#include "apps/model_files.h"
#include "apps/serve_options.h"
#include "apps/session.h"
#include "base/error.h"
#include "base/log.h"
#include "server/service.h"

namespace sluice {

namespace {

constexpr std::chrono::milliseconds poll_interval{20};

/// Large bodies get mappings of their own, whose memory the system has back when they are freed; glibc would raise
/// these limits by itself and keep it.
void bound_the_heap() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 18);
}

std::chrono::milliseconds milliseconds(const Number& seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1e3));
}

void check_usage(const ServeOptions& options) {
  options.engine.refuse_unsupported();
  if (options.shape.given() && !options.model.name().empty())
    fail<UsageError>("serve takes MODEL or --shape, not both");
  if (options.shape.given()) shape_config(*options.shape);  // names are checked before anything is opened
  if (*options.format != "bf16") fail<UsageError>("--format {}: only bf16 is in this build", *options.format);
  if (options.sampling.stop.given()) fail<UsageError>("--stop: clients send stop strings with each request");
  if (options.ssl_certfile->empty() != options.ssl_keyfile->empty())
    fail<UsageError>("--ssl-certfile and --ssl-keyfile go together");
  for (const std::string& key : *options.api_key) {
    if (key.empty()) fail<UsageError>("--api-key: a key must not be empty");
  }
}

/// What clients call the model: the names given, else the one it has in the hub, else that of its folder or file.
std::vector<std::string> model_names(const ServeOptions& options, const ModelFiles* files) {
  if (options.served_model_name.given()) return *options.served_model_name;
  if (options.shape.given()) return {*options.shape};
  const std::string& name = options.model.name();
  std::error_code ignored;
  if (!name.empty() && !std::filesystem::exists(name, ignored)) return {name.substr(0, name.find('@'))};
  return {files->name()};
}

ServiceOptions service_options(const ServeOptions& options, const ModelFiles* files) {
  ServiceOptions service;
  service.model_names = model_names(options, files);
  service.api_keys = *options.api_key;
  service.allowed_origins = *options.allowed_origins;
  service.log_style = *options.log_format == "json" ? LogStyle::json : LogStyle::text;
  service.log_requests = !*options.disable_log_requests;
  return service;
}

HttpOptions http_options(const ServeOptions& options) {
  HttpOptions http;
  http.host = *options.host;
  http.port = static_cast<std::uint16_t>(*options.port);
  http.ssl_certfile = *options.ssl_certfile;
  http.ssl_keyfile = *options.ssl_keyfile;
  http.max_connections = static_cast<std::size_t>(*options.max_connections);
  http.max_body_bytes = static_cast<std::size_t>(*options.max_body_size) << 20;
  http.header_timeout = milliseconds(options.header_timeout);
  http.body_timeout = milliseconds(options.body_timeout);
  http.write_timeout = milliseconds(options.write_timeout);
  return http;
}

ServedModel load(const ServeOptions& options, std::shared_ptr<const ModelFiles> files, const Environment& environment) {
  const EngineLoad engine_load{0, static_cast<int>(*options.max_queued_requests)};
  Session session = options.shape.given()
                        ? open_shape_session(*options.shape, options.engine, environment, engine_load)
                        : open_session(std::move(files), options.engine, environment, true, engine_load);
  ServedModel model;
  model.tokenizer = session.tokenizer;
  model.stop_tokens = session.stop_tokens;
  if (!options.shape.given()) {
    model.chat_template =
        options.chat_template->empty() ? session.files->chat_template() : read_chat_template(*options.chat_template);
  }
  RequestDefaults& defaults = model.defaults;
  defaults.sampling = sampling_params(options.sampling, options.engine, session.generation_config);
  defaults.sampling.seed.reset();  // --seed is the engine's: requests differ from each other, runs do not
  defaults.max_model_len = session.engine->max_model_len();
  defaults.vocabulary =
      session.tokenizer ? session.tokenizer->size() : static_cast<int>(session.engine->model_info().vocabulary);
  defaults.has_chat = model.chat_template != nullptr;
  if (model.tokenizer) model.grammars = make_grammar_compiler(model.tokenizer, defaults.vocabulary, model.stop_tokens);
  model.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  // The weights may be views of the checkpoint's mapping.
  auto holder = std::make_shared<Session>(std::move(session));
  model.engine = std::shared_ptr<Engine>(holder, holder->engine.get());
  return model;
}

std::string url_of(const ServeOptions& options, std::uint16_t port) {
  const bool is_v6 = options.host->find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", options.ssl_certfile->empty() ? "http" : "https",
                     is_v6 ? "[" + *options.host + "]" : *options.host, port);
}

}  // namespace

int serve_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  ServeOptions options;
  if (!read_into(options, info, arguments)) return 0;
  check_usage(options);
  bound_the_heap();
  const Environment environment = read_environment();
  std::shared_ptr<const ModelFiles> files;
  if (!options.shape.given()) files = open_model_files(options.model.name(), environment, *options.model.mmproj);
  const ServiceOptions of_service = service_options(options, files.get());
  if (of_service.log_style == LogStyle::text) set_log_level(LogLevel::info);
  const RequestLog log(of_service.log_style, true);
  Service service(of_service, http_options(options));
  log.note(fmt::format("loading {}", of_service.model_names.front()));
  ServedModel model = load(options, std::move(files), environment);
  // From the first request on a signal lets what runs finish; while the model loads it ends the program.
  const InterruptGuard interrupt{SIGINT, SIGTERM};
  service.open(std::move(model));
  log.note(fmt::format("serving {}; listening on {}", fmt::join(of_service.model_names, ", "),
                       url_of(options, service.port())));
  while (!interrupt.interrupted()) std::this_thread::sleep_for(poll_interval);
  service.drain(milliseconds(options.shutdown_timeout));
  log.note("stopped");
  return 0;
}

}  // namespace sluice
