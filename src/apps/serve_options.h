#pragma once
#include "apps/command_options.h"

namespace sluice {

struct ServeOptions {
  ModelOptions model;
  Text shape{"--shape", "NAME",
             "random weights of a published shape, for load tests: prompts are token ids, texts are ids in decimal"};
  Text format{"--format", "NAME", "format of the random weights (only bf16 in this build)", "bf16"};
  Texts served_model_name{"--served-model-name --alias", "NAME",
                          "what clients call the model; may be repeated; absent: the name of MODEL"};

  Text host{"--host", "ADDRESS", "where to listen; 0.0.0.0: everywhere", "127.0.0.1"};
  Integer port{"--port", "N", "port to listen on; 0: any free one", 8000, 0, 65535};
  Texts api_key{"--api-key", "KEY", "clients must send this key; may be repeated"};
  Text ssl_certfile{"--ssl-certfile", "FILE", "certificate chain (PEM) for HTTPS", ""};
  Text ssl_keyfile{"--ssl-keyfile", "FILE", "its private key (PEM)", ""};
  Texts allowed_origins{"--allowed-origins", "ORIGIN",
                        "web pages of this origin may use the server (CORS); *: of any; may be repeated"};

  Integer max_queued_requests{"--max-queued-requests",
                              "N",
                              "requests that may wait for a place in the batch; more get a 429; 0: no limit",
                              4096,
                              0,
                              1e9};
  Integer max_connections{"--max-connections", "N", "open connections; more get a 503", 4096, 1, 1e6};
  Integer max_body_size{"--max-body-size", "MIB", "largest body of a request", 64, 1, 65536};
  Number header_timeout{"--header-timeout", "SECONDS", "for a client to send the headers", 10, 0.05, 86400};
  Number body_timeout{"--body-timeout", "SECONDS", "for a client to send the body", 60, 0.05, 86400};
  Number write_timeout{"--write-timeout", "SECONDS", "for a client to take anything of an answer", 60, 0.05, 86400};
  Number shutdown_timeout{"--shutdown-timeout",
                          "SECONDS",
                          "for running requests to finish after SIGTERM or Ctrl-C, before they end with an error",
                          30,
                          0,
                          86400};
  Text log_format{"--log-format", "text|json", "of the log, one line a request on standard error", "text"};
  Flag disable_log_requests{"--disable-log-requests", "", "no line for each request"};
  Text chat_template{"--chat-template", "FILE", "a Jinja template instead of the checkpoint's own"};
  SamplingFlags sampling;
  EngineFlags engine;

  void list(OptionList& options) {
    model.list(options);
    options.add(shape, format, served_model_name, chat_template);
    options.group("Network");
    options.add(host, port, api_key, ssl_certfile, ssl_keyfile, allowed_origins);
    options.group("Limits");
    options.add(max_queued_requests, max_connections, max_body_size, header_timeout, body_timeout, write_timeout,
                shutdown_timeout);
    options.group("Log");
    options.add(log_format, disable_log_requests);
    sampling.list(options);
    engine.list(options);
  }
};

}  // namespace sluice
