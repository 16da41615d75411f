// A template, then a zero byte, then the JSON of its variables: anything may fail, nothing may crash or hang.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "text/jinja/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t border = std::min(input.find('\0'), size);
  try {
    const sluice::jinja::Template parsed(input.substr(0, border), "fuzz");
    sluice::Json variables = {{"messages", {{{"role", "user"}, {"content", "Hi é"}}}}, {"n", 3}, {"l", {3, 1.5, "a"}}};
    if (border < size) variables["more"] = sluice::parse_json(input.substr(border + 1), "fuzz");
    parsed.render(variables);
  } catch (const sluice::Error&) {
    return 0;  // said clearly
  }
  return 0;
}
