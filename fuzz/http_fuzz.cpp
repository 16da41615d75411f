// Any bytes as requests: whole, and cut into pieces of as many bytes as the first byte says. The cut must not change
// what is read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/http_parser.h"

namespace {

constexpr std::size_t max_header_bytes = 512, max_body_bytes = 2048;

struct Outcome {
  std::vector<std::string> requests;
  int fault = 0;
};

std::string text_of(const sluice::HttpRequest& request) {
  std::string text = request.method + '\n' + request.path + '\n' + request.query + '\n' + request.body + '\n';
  for (const auto& [name, value] : request.headers) text += name + ':' + value + '\n';
  return text;
}

/// Reads one request after the other, as a connection does.
Outcome read(std::string_view bytes, std::size_t step) {
  using State = sluice::HttpParser::State;
  Outcome outcome;
  auto parser = std::make_unique<sluice::HttpParser>(max_header_bytes, max_body_bytes);
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::string_view piece = bytes.substr(at, step);
    while (!piece.empty()) {
      parser->feed(piece);
      CHECK(parser->body_bytes() <= max_body_bytes);
      if (parser->state() == State::failed) {
        outcome.fault = parser->fault().status;
        return outcome;
      }
      if (parser->state() != State::complete) break;
      outcome.requests.push_back(text_of(parser->take()));
      parser = std::make_unique<sluice::HttpParser>(max_header_bytes, max_body_bytes);
    }
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = read(bytes, std::max<std::size_t>(bytes.size(), 1));
  const Outcome cut = read(bytes, 1u + data[0] % 16);
  // Lines that are too long are noticed while they wait for their end, which in one piece they never do.
  const bool stopped_early = cut.fault != 0 && cut.requests.size() < whole.requests.size();
  CHECK(stopped_early || cut.requests.size() == whole.requests.size());
  CHECK(std::ranges::equal(cut.requests, std::span(whole.requests).first(cut.requests.size())));
  return 0;
}
