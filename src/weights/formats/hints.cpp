#include "weights/formats/hints.h"

#include <string>

#include "base/error.h"

namespace sluice {

void check_quantization_hints(const Json& quantization_config) {
  const auto text = [&](const char* name) {
    if (!quantization_config.is_object()) return std::string();
    const auto found = quantization_config.find(name);
    return found != quantization_config.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string method = text("quant_method");
  if (method == "gptq" && text("checkpoint_format") == "gptq_v2") {
    fail<LoadError>("quantization_config.checkpoint_format is gptq_v2; supported is gptq (zero points less one)");
  }
  if (method == "awq" && !text("version").empty() && text("version") != "gemm") {
    fail<LoadError>("quantization_config.version is \"{}\"; supported is gemm", text("version"));
  }
}

}  // namespace sluice
