// The whole server over loopback: HTTP, jobs, engine and the bundled model.
#include "server/service.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "raw_client.h"
#include "served_tiny.h"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

HttpOptions any_port() {
  HttpOptions options;
  options.port = 0;
  options.header_timeout = 500ms;
  return options;
}

ServiceOptions named_tiny() {
  ServiceOptions options;
  options.model_names = {"tiny", "another name"};
  options.log_requests = false;
  return options;
}

struct TinyService {
  explicit TinyService(ServiceOptions options = named_tiny()) : service(std::move(options), any_port()) {
    service.open(served_tiny());
  }
  Answer ask(std::string_view method, std::string_view path, const Json& body = nullptr,
             const std::string& headers = "") const {
    const std::string request = request_text(method, path, headers, body.is_null() ? "" : body.dump());
    return RawClient(service.port()).ask(request);  // once the client is there, its time runs
  }
  /// The value of a sample of /metrics without labels beside the model's.
  double metric(const std::string& name) const {
    const std::string text = ask("GET", "/metrics").body;
    const std::string line = "\n" + name + "{model_name=\"tiny\"} ";
    const std::size_t at = text.find(line);
    if (at == std::string::npos) ADD_FAILURE() << name << " is not in /metrics";
    return at == std::string::npos ? -1.0 : std::atof(text.c_str() + at + line.size());
  }
  Service service;
};

Json completion(int tokens, bool stream = true) {
  return {{"prompt", "Hello"}, {"max_tokens", tokens}, {"ignore_eos", true}, {"stream", stream}};
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(Service, SaysItIsLoadingUntilTheModelIsOpen) {
  Service service(named_tiny(), any_port());
  auto status_of = [&](std::string_view path) {
    RawClient client(service.port());
    return client.ask(request_text("GET", path)).status;
  };
  EXPECT_EQ(status_of("/health"), 503);
  EXPECT_EQ(status_of("/ready"), 503);
  EXPECT_EQ(status_of("/live"), 200);
  EXPECT_EQ(status_of("/v1/models"), 503);
  EXPECT_EQ(status_of("/"), 200);
  service.open(served_tiny());
  EXPECT_EQ(status_of("/health"), 200);
  EXPECT_EQ(status_of("/v1/models"), 200);
}

TEST(Service, ServesTheModelUnderEachOfItsNames) {
  const TinyService tiny;
  for (const char* name : {"tiny", "another%20name"}) {
    const Answer answer = tiny.ask("GET", std::string("/v1/models/") + name);
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
  Json body = completion(1, false);
  body["model"] = "gpt-oss";
  const Answer answer = tiny.ask("POST", "/v1/completions", body);
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(parse_json(answer.body, "the answer")["error"]["message"],
            "the model \"gpt-oss\" is not served here; served is \"tiny\"");
}

TEST(Service, TellsWhichMethodAPathTakes) {
  const TinyService tiny;
  const Answer answer = tiny.ask("GET", "/v1/completions");
  EXPECT_EQ(answer.status, 405);
  EXPECT_TRUE(answer.has("\r\nallow: post\r\n")) << answer.head;
  EXPECT_EQ(tiny.ask("DELETE", "/health").status, 405);
  EXPECT_EQ(tiny.ask("GET", "/v1/nothing").status, 404);
}

TEST(Service, AsksForTheKeyWhereWorkIsDone) {
  ServiceOptions options = named_tiny();
  options.api_keys = {"secret"};
  const TinyService tiny(options);
  for (const char* path : {"/health", "/ready", "/live", "/", "/metrics", "/version", "/openapi.json"})
    EXPECT_EQ(tiny.ask("GET", path).status, 200) << path;
  EXPECT_EQ(tiny.ask("GET", "/v1/models").status, 401);
  EXPECT_EQ(tiny.ask("GET", "/v1/models", nullptr, "x-api-key: secret\r\n").status, 200);
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages",
                           "/v1/messages/count_tokens", "/tokenize", "/detokenize", "/apply-template"}) {
    const Answer refused = tiny.ask("POST", path, Json::object());
    EXPECT_EQ(refused.status, 401) << path;
    EXPECT_TRUE(refused.has("www-authenticate: bearer")) << path;
    EXPECT_EQ(tiny.ask("POST", path, Json::object(), "Authorization: Bearer secret\r\n").status, 400) << path;
  }
}

TEST(Service, TurnsTextIntoIdsAndBack) {
  const TinyService tiny;
  const Json ids = parse_json(tiny.ask("POST", "/tokenize", {{"prompt", "What is it?"}}).body, "ids");
  EXPECT_EQ(ids["count"], ids["tokens"].size());
  const Json text = parse_json(tiny.ask("POST", "/detokenize", {{"tokens", ids["tokens"]}}).body, "text");
  EXPECT_EQ(text["prompt"], "What is it?");
  EXPECT_EQ(tiny.ask("POST", "/detokenize", {{"tokens", {1, -5}}}).status, 400);
}

TEST(Service, RefusesTextThatCannotFitBeforeItIsTokenized) {
  const TinyService tiny;
  const Answer answer = tiny.ask("POST", "/v1/completions", {{"prompt", std::string(10 << 20, 'a')}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(parse_json(answer.body, "the answer")["error"]["code"], "context_length_exceeded");
}

TEST(Service, LeavesNothingBehindAfterAStorm) {
  const int clients = std::getenv("SLUICE_SANITIZED") != nullptr ? 60 : 200;
  TinyService tiny;
  std::atomic<int> complete{0}, next{0};
  std::atomic<bool> over{false};
  auto one = [&](int i) {
    RawClient client(tiny.service.port());
    if (i % 5 == 0) {
      client.send("POST /v1/completions HTTP/1.1\r\nContent-Len");
      return;
    }
    if (i % 5 == 1) {
      client.send("\x16\x03\x01 no HTTP\r\n\r\n");
      client.read_answer();
      return;
    }
    const int tokens = 1 + i % 23;
    client.send(request_text("POST", "/v1/completions", "", completion(i % 5 == 2 ? 900 : tokens).dump()));
    if (i % 5 == 2) {
      client.read_until("data: ");
      client.vanish();
      return;
    }
    const Answer answer = client.read_answer();
    const bool whole = answer.complete && answer.body.ends_with("data: [DONE]\n\n");
    if (whole && count_of(answer.body, "\"text\":") > 0) ++complete;
  };
  std::thread prober([&] {
    while (!over) {
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(tiny.ask("GET", "/health").status, 200);
      EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
      std::this_thread::sleep_for(20ms);
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      for (int mine = next++; mine < clients; mine = next++) one(mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  prober.join();
  EXPECT_EQ(complete, clients / 5 * 2);
  EXPECT_TRUE(eventually([&] { return tiny.metric("vllm:num_requests_running") == 0.0; }, 60s));
  for (const char* name :
       {"vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "sluice:state_slots_used", "sluice:kv_blocks_used"}) {
    EXPECT_EQ(tiny.metric(name), 0.0) << name;
  }
  // What asks is itself one.
  EXPECT_TRUE(eventually([&] { return tiny.metric("sluice:http_connections") <= 1.0; }));
  EXPECT_EQ(tiny.metric("sluice:http_requests_in_progress"), 1.0);
}

TEST(Service, FinishesStreamsBeforeItStops) {
  TinyService tiny;
  std::vector<RawClient> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(tiny.service.port());
    clients.back().send(request_text("POST", "/v1/completions", "", completion(60).dump()));
  }
  for (RawClient& client : clients) client.read_until("data: ");
  std::thread stopper([&] { tiny.service.drain(60s); });
  EXPECT_TRUE(eventually([&] {
    RawClient probe(tiny.service.port());
    const Answer answer = probe.ask(request_text("GET", "/ready"));
    return answer.status == 503 || !probe.connected();
  }));
  for (RawClient& client : clients) EXPECT_TRUE(client.read_to_end().find("data: [DONE]\n\n") != std::string::npos);
  stopper.join();
}

TEST(Service, EndsStreamsWithAnErrorWhenTimeIsUp) {
  TinyService tiny;
  RawClient client(tiny.service.port());
  client.send(request_text("POST", "/v1/completions", "", completion(1000).dump()));
  client.read_until("data: ");
  tiny.service.drain(0ms);
  const std::string rest = client.read_to_end();
  EXPECT_NE(rest.find("the server is shutting down"), std::string::npos) << rest.substr(0, 300);
}

}  // namespace
}  // namespace sluice::test
