#pragma once
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"

namespace sluice {

/// The data of a stream of OpenAI's, without the [DONE] that ends it.
inline std::vector<Json> openai_events(std::string_view stream) {
  constexpr std::string_view opening = "data: ", closing = "\n\n";
  std::vector<Json> events;
  for (std::size_t begin = 0; begin < stream.size();) {
    const std::size_t end = stream.find(closing, begin);
    if (end == std::string_view::npos || stream.substr(begin, opening.size()) != opening) {
      ADD_FAILURE() << "no event: " << stream.substr(begin);
      break;
    }
    const std::string_view data = stream.substr(begin + opening.size(), end - begin - opening.size());
    begin = end + closing.size();
    if (data == "[DONE]") {
      EXPECT_EQ(begin, stream.size());
    } else {
      events.push_back(Json::parse(data));
    }
  }
  return events;
}

inline bool is_done(std::string_view stream) { return stream.ends_with("data: [DONE]\n\n"); }

}  // namespace sluice
