#pragma once
#include <filesystem>
#include <memory>

#include "text/tokenizer.h"

namespace sluice {

inline std::filesystem::path tiny_folder() { return std::filesystem::path(SLUICE_SOURCE_DIR) / "models/tiny"; }

inline const std::shared_ptr<const Tokenizer>& tiny_tokenizer() {
  static const std::shared_ptr<const Tokenizer> loaded = Tokenizer::load(tiny_folder());
  return loaded;
}

}  // namespace sluice
