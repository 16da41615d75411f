#include "apps/server_url.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace sluice {

namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  fail<UsageError>("--serve: \"{}\" {}, expected http://HOST:PORT or https://HOST:PORT", text, why);
}

void split_authority(std::string_view authority, std::string_view text, ServerUrl& url) {
  const bool bracketed = !authority.empty() && authority.front() == '[';
  const std::size_t close = authority.find(']');
  if (bracketed && close == std::string_view::npos) refuse(text, "has an open bracket");
  url.host = bracketed ? authority.substr(1, close - 1) : authority.substr(0, authority.find(':'));
  std::string_view rest = authority.substr(bracketed ? close + 1 : url.host.size());
  if (url.host.empty()) refuse(text, "names no host");
  if (rest.empty()) return;
  rest.remove_prefix(1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (error != std::errc{} || end != rest.data() + rest.size() || port == 0 || port > 65535) {
    refuse(text, "has a bad port");
  }
  url.port = rest;
}

}  // namespace

std::string ServerUrl::authority() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

std::string ServerUrl::text() const { return fmt::format("{}://{}{}", tls ? "https" : "http", authority(), path); }

ServerUrl parse_server_url(std::string_view text) {
  ServerUrl url;
  std::string_view rest = text;
  const bool control = std::any_of(text.begin(), text.end(), [](char c) { return c >= 0 && c <= ' '; });
  if (control || text.find_first_of("@?#") != std::string_view::npos) refuse(text, "is no address of a server");
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    if (text.substr(0, scheme) != "http" && text.substr(0, scheme) != "https") refuse(text, "has an unknown scheme");
    url.tls = text.substr(0, scheme) == "https";
    rest = text.substr(scheme + 3);
  }
  url.port = url.tls ? "443" : "80";
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  split_authority(rest.substr(0, slash), text, url);
  std::string_view path = rest.substr(slash);
  while (ends_with(path, "/")) path.remove_suffix(1);
  if (ends_with(path, "/v1")) path.remove_suffix(3);
  url.path = path;
  return url;
}

}  // namespace sluice
