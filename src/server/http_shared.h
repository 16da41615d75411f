#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "server/http.h"

namespace sluice {

class HttpConnection;
class HttpLoop;

/// What the connections of a server have in common. Belongs to the event thread, but for the counters.
struct HttpShared {
  HttpShared(HttpOptions settings, HttpHandler function) : options(std::move(settings)), handler(std::move(function)) {}

  const HttpOptions options;
  const HttpHandler handler;
  std::shared_ptr<HttpLoop> loop;
  bool draining = false;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections;  // the open ones
  std::unordered_set<HttpConnection*> with_socket;  // all, also closed ones that somebody still holds
  std::size_t turned_away = 0;                      // of the open ones, those that are only told so
  std::atomic<std::size_t> body_bytes{0};           // held for requests that nobody has taken

  std::atomic<std::size_t> admitted{0}, exchanges{0};
  std::atomic<std::uint64_t> accepted{0}, refused{0}, requests{0};
};

using HttpClock = std::chrono::steady_clock;

}  // namespace sluice
