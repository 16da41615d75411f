#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench_statistics.h"
#include "apps/server_url.h"

namespace sluice {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

/// What a server is asked, and how fast.
struct LoadPlan {
  std::string path;  // of the requests: "/v1/completions"
  bool streams = true;
  std::int64_t requests = 0;
  std::int64_t concurrency = 1;                   // most requests at once
  double request_rate = 0;                        // Poisson arrivals a second; 0: the next as soon as there is room
  std::uint64_t seed = 0;                         // of the arrivals
  double timeout = 600;                           // seconds that one request may take
  std::function<std::string(std::int64_t)> body;  // JSON of request i
  std::function<void(std::int64_t done)> on_progress;
  std::function<bool()> interrupted;  // looked at several times a second: true ends the run
};

struct LoadResult {
  std::vector<RequestSample> samples;  // in the order in which they ended; without those cut off by an interrupt
  double duration = 0;                 // seconds from the first request to the end of the last
  bool interrupted = false;
};

/// A server under load, from one thread. Connections stay open from run to run.
class LoadClient {
 public:
  struct Options {
    ServerUrl url;
    std::string api_key;  // empty: none is sent
    bool verify_certificates = true;
  };
  /// Throws RequestError: the host is unknown.
  explicit LoadClient(Options options);
  ~LoadClient();
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  /// One request, waited for. Throws RequestError when there is no answer within the time (seconds), or it is no HTTP.
  HttpAnswer fetch(std::string_view method, std::string_view path, std::string_view body, double timeout);
  /// The same for one request of a load: how it went.
  RequestSample probe(const LoadPlan& plan, const std::string& body);
  LoadResult run(const LoadPlan& plan);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sluice
