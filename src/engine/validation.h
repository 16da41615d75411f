#pragma once
#include <cstdint>

#include "engine/request.h"

namespace sluice {

/// What a request must keep to.
struct RequestLimits {
  std::int64_t max_model_len = 0;  // tokens of prompt and reply
  std::int64_t embedded_ids = 0;   // ids from here on cannot be in a prompt
  std::int64_t vocabulary = 0;     // ids from here on cannot be in a reply
};

/// Throws RequestError that names the parameter, what was found and what is allowed.
void check_request(const Request& request, const RequestLimits& limits);

}  // namespace sluice
