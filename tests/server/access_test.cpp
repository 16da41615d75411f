#include "server/access.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

HttpRequest request_with(HttpHeaders headers, const std::string& method = "POST") {
  HttpRequest request;
  request.method = method;
  request.headers = std::move(headers);
  return request;
}

std::string value_of(const HttpHeaders& headers, const std::string& name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "(none)";
}

TEST(Access, LetsEverybodyInWithoutKeys) { EXPECT_TRUE(Access({}, {}).has_key(request_with({}))); }

TEST(Access, TakesAnyOfItsKeysUnderBothHeaders) {
  const Access access({"first", "second"}, {});
  EXPECT_TRUE(access.has_key(request_with({{"authorization", "Bearer first"}})));
  EXPECT_TRUE(access.has_key(request_with({{"authorization", "bearer  second"}})));
  EXPECT_TRUE(access.has_key(request_with({{"x-api-key", "second"}})));
}

TEST(Access, RefusesKeysThatAreMissingOrDiffer) {
  const Access access({"secret"}, {});
  for (const char* wrong : {"", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer secretsecret", "Basic secret",
                            "secret", "Bearersecret", "Bearer SECRET"}) {
    EXPECT_FALSE(access.has_key(request_with({{"authorization", wrong}}))) << wrong;
  }
  EXPECT_FALSE(access.has_key(request_with({{"x-api-key", "other"}})));
  EXPECT_FALSE(access.has_key(request_with({})));
}

TEST(Access, NamesAllowedOriginsOnly) {
  const Access access({}, {"https://chat.example.org"});
  const HttpHeaders allowed = access.cors_headers(request_with({{"origin", "https://chat.example.org"}}));
  EXPECT_EQ(value_of(allowed, "Access-Control-Allow-Origin"), "https://chat.example.org");
  EXPECT_EQ(value_of(allowed, "Vary"), "Origin");
  EXPECT_TRUE(access.cors_headers(request_with({{"origin", "https://other.example.org"}})).empty());
  EXPECT_TRUE(access.cors_headers(request_with({})).empty());
}

TEST(Access, AnswersAPreflightForAnyOrigin) {
  const Access access({"secret"}, {"*"});
  const HttpRequest preflight = request_with({{"origin", "https://a.example"},
                                              {"access-control-request-method", "POST"},
                                              {"access-control-request-headers", "authorization, x-stainless-os"}},
                                             "OPTIONS");
  EXPECT_TRUE(Access::is_preflight(preflight));
  const HttpHeaders headers = access.cors_headers(preflight);
  EXPECT_EQ(value_of(headers, "Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(value_of(headers, "Access-Control-Allow-Headers"), "authorization, x-stainless-os");
  EXPECT_FALSE(Access::is_preflight(request_with({{"origin", "https://a.example"}}, "OPTIONS")));
}

}  // namespace
}  // namespace sluice
