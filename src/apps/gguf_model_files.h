#pragma once
#include "apps/model_files.h"

namespace sluice {

/// Whether the file begins as GGUF files do.
bool is_gguf_file(const std::filesystem::path& path);
/// The GGUF models in a folder, each by its (first) file; picture towers (mmproj*) are none.
std::vector<std::filesystem::path> gguf_models_in(const std::filesystem::path& folder);
/// A model in a GGUF file, or in a set of them, named by its first.
std::unique_ptr<ModelFiles> open_gguf_model(const std::filesystem::path& path);

}  // namespace sluice
