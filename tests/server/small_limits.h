#pragma once
#include "server/generation_request.h"

namespace sluice {

/// Small limits, so that they can be exceeded.
inline RequestDefaults test_defaults() {
  RequestDefaults defaults;
  defaults.sampling.temperature = 0.6f;
  defaults.sampling.top_p = 0.95f;
  defaults.sampling.top_k = 20;
  defaults.max_model_len = 1000;
  defaults.vocabulary = 100;
  defaults.most_choices = 8;
  defaults.most_logprobs = 5;
  defaults.most_stop_strings = 3;
  return defaults;
}

}  // namespace sluice
