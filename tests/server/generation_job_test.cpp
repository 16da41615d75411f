// A generating request between the engine and its client, on an event thread that the test plays.
#include "server/generation_job.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>

#include <gtest/gtest.h>

#include "fake_exchange.h"
#include "served_tiny.h"
#include "server/generation_api.h"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

/// The event thread, run by hand.
class EventThread {
 public:
  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    arrived_.notify_one();
  }
  /// Runs tasks until the condition holds; false if that takes more than half a minute.
  bool run_until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        if (!arrived_.wait_until(lock, end, [this] { return !tasks_.empty(); })) return false;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> tasks_;
};

struct Setting {
  explicit Setting(EngineOptions options = {})
      : model(std::make_shared<const ServedModel>(served_tiny(options))),
        inbox(std::make_shared<TokenInbox>([this](auto, auto task) { events.post(std::move(task)); },
                                           [this](std::span<TokenInbox::Entry> entries) { take(entries); })) {}
  ~Setting() { model = nullptr; }

  /// Begins the request of a body under one of the APIs.
  GenerationJob& begin(const std::string& path, const Json& body) {
    for (const GenerationApi& api : generation_apis()) {
      if (api.path != path) continue;
      PreparedRequest prepared = prepare(api.parse(body, model->defaults), *model);
      auto writer = api.make_writer(body, prepared.request, {"abc", 1, "tiny", "test"});
      exchanges.push_back(std::make_shared<FakeExchange>());
      jobs.push_back(std::make_unique<GenerationJob>(jobs.size(), model, std::move(prepared), std::move(writer),
                                                     api.error_json, exchanges.back(), metrics));
      jobs.back()->start(inbox);
      return *jobs.back();
    }
    throw std::logic_error("no such API");
  }
  void finish(const GenerationJob& job) {
    ASSERT_TRUE(events.run_until([&] { return job.finished(); })) << "the request does not end";
  }
  /// The reply to a request that is not streamed.
  Json whole(const std::string& path, const Json& body) {
    finish(begin(path, body));
    EXPECT_EQ(exchanges.back()->response.status, 200) << exchanges.back()->response.body;
    return parse_json(exchanges.back()->response.body, "the reply");
  }
  void take(std::span<TokenInbox::Entry> entries) {
    for (TokenInbox::Entry& entry : entries) {
      jobs.at(entry.job)->take(entry.choice, entry.event);
      jobs.at(entry.job)->flush();
    }
  }

  EventThread events;
  Metrics metrics;
  std::vector<std::shared_ptr<FakeExchange>> exchanges;
  std::vector<std::unique_ptr<GenerationJob>> jobs;
  std::shared_ptr<const ServedModel> model;
  std::shared_ptr<TokenInbox> inbox;
};

const Json question = {{{"role", "user"}, {"content", "What is the capital of Peru?"}}};

std::vector<Json> events_of(const std::string& stream) {
  std::vector<Json> events;
  for (std::size_t begin = 0; begin < stream.size();) {
    const std::size_t end = stream.find("\n\n", begin);
    const std::string line = stream.substr(begin, end - begin);
    if (line.rfind("data: {", 0) == 0) events.push_back(parse_json(line.substr(6), "an event"));
    begin = end == std::string::npos ? stream.size() : end + 2;
  }
  return events;
}

TEST(GenerationJob, StreamsTheTextOfTheWholeReply) {
  Setting setting;
  Json body = {{"messages", question}, {"max_tokens", 40}};
  const Json whole = setting.whole("/v1/chat/completions", body);
  body["stream"] = true;
  setting.finish(setting.begin("/v1/chat/completions", body));
  std::string content, reasoning;
  for (const Json& event : events_of(setting.exchanges.back()->written)) {
    for (const Json& choice : event["choices"]) {
      const Json& delta = choice["delta"];
      if (delta.contains("content") && delta["content"].is_string()) content += delta["content"].get<std::string>();
      if (delta.contains("reasoning_content") && delta["reasoning_content"].is_string())
        reasoning += delta["reasoning_content"].get<std::string>();
    }
  }
  const Json& message = whole["choices"][0]["message"];
  EXPECT_EQ(Json(content), message["content"]);
  EXPECT_EQ(Json(reasoning), message["reasoning_content"]);
  EXPECT_FALSE(reasoning.empty());
  EXPECT_EQ(setting.exchanges.back()->answers, 1);
  EXPECT_NE(setting.exchanges.back()->written.find("data: [DONE]"), std::string::npos);
  EXPECT_GT(setting.exchanges.back()->writes, 3) << "tokens are sent when they come";
}

TEST(GenerationJob, CountsTheTokensOfAllChoicesAndThePromptOnce) {
  Setting setting;
  const Json body = {{"prompt", Json::array({5, 6, 7, 8, 9})}, {"max_tokens", 6}, {"ignore_eos", true}, {"n", 3}};
  const Json reply = setting.whole("/v1/completions", body);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(reply["usage"]["completion_tokens"], 18);
  EXPECT_EQ(reply["usage"]["total_tokens"], 23);
  EXPECT_EQ(reply["choices"].size(), 3u);
}

TEST(GenerationJob, GivesChoicesTheSeedsThatFollow) {
  Setting setting;
  Json body = {{"prompt", "Once upon a time"}, {"max_tokens", 12}, {"temperature", 2.0}, {"seed", 40}, {"n", 3}};
  const Json together = setting.whole("/v1/completions", body);
  for (int i = 0; i < 3; ++i) {
    body["seed"] = 40 + i;
    body["n"] = 1;
    const Json alone = setting.whole("/v1/completions", body);
    EXPECT_EQ(together["choices"][static_cast<std::size_t>(i)]["text"], alone["choices"][0]["text"]) << "choice " << i;
  }
}

TEST(GenerationJob, TellsWhichStopStringEndedTheReply) {
  Setting setting;
  const Json body = {
      {"messages", question}, {"max_tokens", 200}, {"chat_template_kwargs", {{"enable_thinking", false}}}};
  const Json full = setting.whole("/v1/chat/completions", body);
  const auto text = full["choices"][0]["message"]["content"].get<std::string>();
  ASSERT_GT(text.size(), 8u);
  Json stopped = body;
  stopped["stop"] = Json::array({"never said", text.substr(4, 3)});
  const Json reply = setting.whole("/v1/chat/completions", stopped);
  EXPECT_EQ(reply["choices"][0]["message"]["content"], text.substr(0, text.find(text.substr(4, 3))));
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(reply["choices"][0]["stop_reason"], text.substr(4, 3));
}

TEST(GenerationJob, EchoesAPromptWithItsLogProbabilitiesAndNoReply) {
  Setting setting;
  const Json body = {{"prompt", "Hello there"}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 1}};
  const Json reply = setting.whole("/v1/completions", body);
  EXPECT_EQ(reply["choices"][0]["text"], "Hello there");
  EXPECT_EQ(reply["usage"]["completion_tokens"], 0);
  const Json& logprobs = reply["choices"][0]["logprobs"];
  ASSERT_EQ(logprobs["token_logprobs"].size(), reply["usage"]["prompt_tokens"].get<std::size_t>());
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_LT(logprobs["token_logprobs"][1].get<double>(), 0.0);
}

TEST(GenerationJob, StreamsOfSeveralScoredPromptsBeginWithAllOfThem) {
  Setting setting;
  const Json prompts = Json::array({"One", "Two and more words of a longer prompt, which is scored later"});
  const Json body = {{"prompt", prompts}, {"max_tokens", 3}, {"echo", true},
                     {"logprobs", 0},     {"stream", true},  {"ignore_eos", true}};
  setting.finish(setting.begin("/v1/completions", body));
  std::vector<std::string> texts(2);
  for (const Json& event : events_of(setting.exchanges.back()->written)) {
    for (const Json& choice : event["choices"])
      texts.at(choice["index"].get<std::size_t>()) += choice["text"].get<std::string>();
  }
  EXPECT_EQ(texts[0].rfind("One", 0), 0u);
  EXPECT_GT(texts[0].size(), 3u);
  EXPECT_EQ(texts[1].rfind(prompts[1].get<std::string>(), 0), 0u);
}

TEST(GenerationJob, CancelsWhatRunsWhenTheClientLeaves) {
  Setting setting;
  GenerationJob& job = setting.begin(
      "/v1/completions", {{"prompt", "Hello"}, {"max_tokens", 900}, {"ignore_eos", true}, {"n", 2}, {"stream", true}});
  ASSERT_TRUE(setting.events.run_until([&] { return setting.exchanges.back()->writes > 2; }));
  EXPECT_FALSE(job.finished());
  job.client_left();
  setting.finish(job);
  EXPECT_EQ(job.outcome(), "abort");
  EXPECT_EQ(setting.exchanges.back()->answers, 0);
  EXPECT_LT(job.result().usage.completion_tokens, 1800);
  EXPECT_TRUE(setting.events.run_until([&] { return setting.model->engine->stats().running == 0; }));
}

TEST(GenerationJob, AnswersAFullQueueWith429AndCancelsItsOtherChoices) {
  EngineOptions options;
  options.max_num_seqs = 1;
  options.max_queued = 1;
  Setting setting(options);
  const Json body = {{"prompt", "Hello"}, {"max_tokens", 300}, {"ignore_eos", true}, {"n", 8}};
  GenerationJob& job = setting.begin("/v1/completions", body);
  setting.finish(job);
  const HttpResponse& response = setting.exchanges.back()->response;
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(parse_json(response.body, "the reply")["error"]["code"], "queue_full");
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_EQ(response.headers[0].first, "Retry-After");
  EXPECT_EQ(setting.exchanges.back()->answers, 1);
}

TEST(GenerationJob, AnswersParametersThatLeaveNoTokenWith400) {
  Setting setting;
  const Json body = {
      {"prompt", "Hello"}, {"guided_choice", Json::array({"yes"})}, {"min_tokens", 30}, {"max_tokens", 40}};
  setting.finish(setting.begin("/v1/completions", body));
  const HttpResponse& response = setting.exchanges.back()->response;
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("no token is left to choose from"), std::string::npos) << response.body;
}

TEST(GenerationJob, SendsASignOfLifeOnlyAfterSilence) {
  Setting setting;
  GenerationJob& job =
      setting.begin("/v1/chat/completions", {{"messages", question}, {"max_tokens", 8}, {"stream", true}});
  FakeExchange& exchange = *setting.exchanges.back();
  const auto now = GenerationJob::Clock::now();
  job.ping(now, 1h);
  EXPECT_EQ(exchange.written, "");
  job.ping(now + 2h, 1h);
  EXPECT_EQ(exchange.written, ": ping\n\n");
  setting.finish(job);
  job.ping(now + 9h, 1h);
  EXPECT_EQ(exchange.answers, 1);
}

TEST(GenerationJob, EndsAStreamWithAnErrorWhenItIsAborted) {
  Setting setting;
  GenerationJob& job = setting.begin(
      "/v1/completions", {{"prompt", "Hello"}, {"max_tokens", 900}, {"ignore_eos", true}, {"stream", true}});
  ASSERT_TRUE(setting.events.run_until([&] { return setting.exchanges.back()->writes > 1; }));
  job.abort(ApiError(503, "the server is shutting down"));
  setting.finish(job);
  const std::vector<Json> events = events_of(setting.exchanges.back()->written);
  EXPECT_EQ(events.back()["error"]["message"], "the server is shutting down");
  EXPECT_EQ(setting.exchanges.back()->answers, 1);
}

}  // namespace
}  // namespace sluice::test
