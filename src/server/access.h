#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace sluice {

/// Who may use the server: API keys, and the web pages of other origins.
class Access {
 public:
  /// No keys: everybody. origins: as browsers send them ("https://chat.example.org"), or "*".
  Access(std::vector<std::string> api_keys, std::vector<std::string> origins)
      : api_keys_(std::move(api_keys)), origins_(std::move(origins)) {}

  /// "Authorization: Bearer KEY" or "x-api-key: KEY", compared in a time that does not depend on how far they agree.
  bool has_key(const HttpRequest& request) const;
  /// The CORS headers of an answer to this request; none for an origin that is not allowed.
  HttpHeaders cors_headers(const HttpRequest& request) const;
  /// A browser asks whether it may send a request (OPTIONS).
  static bool is_preflight(const HttpRequest& request);

 private:
  std::vector<std::string> api_keys_, origins_;
};

}  // namespace sluice
