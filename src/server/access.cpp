#include "server/access.h"

#include <algorithm>

namespace sluice {

namespace {

bool equal_in_constant_time(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0u : 1u;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = key.empty() ? '\0' : key[i % key.size()];
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

std::string_view bearer_of(std::string_view header) {
  constexpr std::string_view scheme = "bearer ";
  if (header.size() < scheme.size()) return {};
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    const char c = header[i];
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != scheme[i]) return {};
  }
  header.remove_prefix(scheme.size());
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

}  // namespace

bool Access::has_key(const HttpRequest& request) const {
  if (api_keys_.empty()) return true;
  const std::string_view given[] = {bearer_of(request.header("authorization")), request.header("x-api-key")};
  bool found = false;
  for (const std::string& key : api_keys_) {
    for (const std::string_view text : given) {
      const bool equal = !text.empty() && equal_in_constant_time(text, key);
      found = found || equal;
    }
  }
  return found;
}

HttpHeaders Access::cors_headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return {};
  const bool any = std::find(origins_.begin(), origins_.end(), "*") != origins_.end();
  if (!any && std::find(origins_.begin(), origins_.end(), origin) == origins_.end()) return {};
  HttpHeaders headers = {{"Access-Control-Allow-Origin", any ? "*" : std::string(origin)},
                         {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"}};
  if (!any) headers.emplace_back("Vary", "Origin");
  if (!is_preflight(request)) return headers;
  headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  const std::string_view wanted = request.header("access-control-request-headers");
  headers.emplace_back("Access-Control-Allow-Headers",
                       wanted.empty() ? "Authorization, Content-Type, X-Api-Key, X-Request-Id" : std::string(wanted));
  headers.emplace_back("Access-Control-Max-Age", "600");
  return headers;
}

bool Access::is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && !request.header("access-control-request-method").empty();
}

}  // namespace sluice
