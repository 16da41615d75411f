#pragma once
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "server/api_error.h"
#include "server/generation_request.h"
#include "server/small_limits.h"

namespace sluice {

/// Fields of a request that is refused.
struct RefusedRow {
  std::string fields;   // JSON: they are added to a body that is right, or replace its own
  std::string message;  // of the error
  std::string param;
};

using ParseRequest = GenerationRequest (*)(const Json& body, const RequestDefaults& defaults);

inline Json with_fields(Json body, const std::string& fields) {
  body.update(Json::parse(fields));
  return body;
}

inline void expect_refused(ParseRequest parse, const Json& right_body, const std::vector<RefusedRow>& rows) {
  for (const RefusedRow& row : rows) {
    SCOPED_TRACE(row.fields);
    try {
      parse(with_fields(right_body, row.fields), test_defaults());
      ADD_FAILURE() << "accepted; expected: " << row.message;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_EQ(error.what(), row.message);
      EXPECT_EQ(error.json()["error"]["param"].get<std::string>(), row.param);
    }
  }
}

}  // namespace sluice
