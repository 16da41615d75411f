#include "weights/formats/hints.h"

#include <string>

#include "base/error.h"

namespace sluice {

StorageHints read_storage_hints(const Json& quantization_config) {
  const auto text = [&](const char* name) {
    if (!quantization_config.is_object()) return std::string();
    const auto found = quantization_config.find(name);
    return found != quantization_config.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (text("quant_method") == "awq" && !text("version").empty() && text("version") != "gemm") {
    fail<LoadError>("quantization_config.version is \"{}\"; supported is gemm", text("version"));
  }
  StorageHints hints;
  hints.zero_points_less_one = text("checkpoint_format") != "gptq_v2";
  return hints;
}

}  // namespace sluice
