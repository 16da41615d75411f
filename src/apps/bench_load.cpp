#include "apps/bench_load.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <random>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "apps/bench_client.h"
#include "apps/bench_reply.h"
#include "base/error.h"

namespace sluice {

namespace {

constexpr std::chrono::milliseconds between_looks{50};
constexpr std::size_t most_answer_bytes = 64u << 20;

using Connection = std::shared_ptr<ClientConnection>;

}  // namespace

struct LoadClient::Implementation {
  explicit Implementation(Options given)
      : options(std::move(given)), context(options.url, options.verify_certificates) {}

  std::string request(std::string_view method, std::string_view path, std::string_view body) const {
    const std::string key = options.api_key.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", options.api_key);
    return fmt::format(
        "{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: sluice-bench\r\nAccept: */*\r\nContent-Type: application/json\r\n"
        "{}Content-Length: {}\r\n\r\n{}",
        method, options.url.path, path, options.url.authority(), key, body.size(), body);
  }

  Options options;
  ClientContext context;
  std::vector<Connection> connections;  // at rest between two runs
};

namespace {

/// One run: starts requests while there is room, watches the time.
class LoadRun {
 public:
  using MakeRequest = std::function<std::string(const std::string& body)>;
  LoadRun(const LoadPlan& plan, ClientContext& context, std::vector<Connection>& connections, MakeRequest make_request)
      : plan_(plan),
        context_(context),
        idle_(connections),
        make_request_(std::move(make_request)),
        timer_(context.io),
        arrivals_(context.io),
        random_(plan.seed) {}

  LoadResult run() {
    start_ = Clock::now();
    look();
    plan_.request_rate > 0 ? await_arrival() : start_all();
    context_.io.restart();
    context_.io.run();
    result_.duration = result_.interrupted ? seconds_since(start_) : last_end_;
    return std::move(result_);
  }

 private:
  struct Running {
    Connection connection;
    CompletionReply reply;
  };

  void start_all() {
    while (next_ < plan_.requests && has_room()) start_next();
  }
  bool has_room() const { return static_cast<std::int64_t>(running_.size()) < plan_.concurrency; }

  /// Arrivals that find no room wait, and go first when there is some.
  void await_arrival() {
    if (arrived_ == plan_.requests) return;
    arrival_time_ += std::exponential_distribution<double>(plan_.request_rate)(random_);
    arrivals_.expires_at(start_ +
                         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(arrival_time_)));
    arrivals_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      ++arrived_;
      if (has_room()) start_next();
      await_arrival();
    });
  }

  Connection take_connection() {
    if (idle_.empty()) return std::make_shared<ClientConnection>(context_);
    Connection connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  void start_next() {
    const std::string request = make_request_(plan_.body(next_++));
    const auto running = running_.insert(running_.end(), std::make_unique<Running>(Running{take_connection(), {}}));
    Running* one = running->get();
    one->reply = CompletionReply(plan_.streams, seconds_since(start_));
    one->connection->exchange(
        request,
        [this, one](std::string_view piece) {
          one->reply.read(one->connection->status(), piece, seconds_since(start_));
        },
        [this, one](const std::string& error) { end(one, error); });
  }

  void end(Running* one, const std::string& error) {
    if (result_.interrupted) return;
    last_end_ = seconds_since(start_);
    result_.samples.push_back(one->reply.end(one->connection->status(), error, last_end_));
    idle_.push_back(std::move(one->connection));
    const auto at = std::find_if(running_.begin(), running_.end(), [one](const auto& r) { return r.get() == one; });
    std::swap(*at, running_.back());
    running_.pop_back();
    if (plan_.on_progress) plan_.on_progress(static_cast<std::int64_t>(result_.samples.size()));
    if (next_ < (plan_.request_rate > 0 ? arrived_ : plan_.requests)) start_next();
    if (static_cast<std::int64_t>(result_.samples.size()) == plan_.requests) timer_.cancel();
  }

  /// Several times a second: was the run interrupted, is a request too slow?
  void look() {
    timer_.expires_after(between_looks);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      if (plan_.interrupted && plan_.interrupted()) {
        stop();
        return;
      }
      end_late_ones();
      if (static_cast<std::int64_t>(result_.samples.size()) < plan_.requests) look();
    });
  }
  void stop() {
    result_.interrupted = true;
    arrivals_.cancel();
    for (const auto& one : running_) one->connection->abort("interrupted");
  }
  void end_late_ones() {
    const double oldest = seconds_since(start_) - plan_.timeout;
    std::vector<Connection> late;
    for (const auto& one : running_) {
      if (one->reply.started() < oldest) late.push_back(one->connection);
    }
    for (const Connection& connection : late) {
      connection->abort(fmt::format("no whole answer within {} s", plan_.timeout));
    }
  }

  const LoadPlan& plan_;
  ClientContext& context_;
  std::vector<Connection>& idle_;
  MakeRequest make_request_;
  boost::asio::steady_timer timer_, arrivals_;
  std::mt19937_64 random_;
  Clock::time_point start_;
  std::int64_t next_ = 0, arrived_ = 0;
  double arrival_time_ = 0, last_end_ = 0;
  std::vector<std::unique_ptr<Running>> running_;
  LoadResult result_;
};

}  // namespace

LoadClient::LoadClient(Options options) : implementation_(std::make_unique<Implementation>(std::move(options))) {}
LoadClient::~LoadClient() = default;

HttpAnswer LoadClient::fetch(std::string_view method, std::string_view path, std::string_view body, double timeout) {
  Implementation& client = *implementation_;
  const auto connection = std::make_shared<ClientConnection>(client.context);
  HttpAnswer answer;
  std::string problem;
  boost::asio::steady_timer timer(client.context.io);
  timer.expires_after(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout)));
  timer.async_wait([&](const boost::system::error_code& error) {
    if (!error) connection->abort(fmt::format("{}: no answer within {} s", client.options.url.text(), timeout));
  });
  connection->exchange(
      client.request(method, path, body),
      [&](std::string_view piece) {
        if (answer.body.size() + piece.size() > most_answer_bytes) fail<RequestError>("the answer is too long");
        answer.body += piece;
      },
      [&](const std::string& error) {
        problem = error;
        answer.status = connection->status();
        timer.cancel();
      });
  client.context.io.restart();
  client.context.io.run();
  if (!problem.empty()) fail<RequestError>("{}", problem);
  return answer;
}

LoadResult LoadClient::run(const LoadPlan& plan) {
  Implementation& client = *implementation_;
  return LoadRun(plan, client.context, client.connections,
                 [&client, &plan](const std::string& body) { return client.request("POST", plan.path, body); })
      .run();
}

RequestSample LoadClient::probe(const LoadPlan& plan, const std::string& body) {
  LoadPlan one = plan;
  one.requests = one.concurrency = 1;
  one.request_rate = 0;
  one.body = [&body](std::int64_t) { return body; };
  one.on_progress = nullptr;
  LoadResult result = run(one);
  if (result.samples.empty()) return {};
  return std::move(result.samples.front());
}

}  // namespace sluice
