#include "base/json.h"

#include "base/error.h"

namespace sluice {

namespace {
constexpr int max_depth = 128;
}

Json parse_json(std::string_view text, std::string_view what) {
  bool too_deep = false;
  auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > max_depth) too_deep = true;
    return !too_deep;
  };
  Json parsed;
  try {
    parsed = Json::parse(text, watch_depth);
  } catch (const Json::exception& error) {
    fail<LoadError>("{}: not valid JSON: {}", what, error.what());
  }
  if (too_deep) fail<LoadError>("{}: JSON nested deeper than {} levels", what, max_depth);
  return parsed;
}

}  // namespace sluice
