#pragma once
#include "apps/model_files.h"

namespace sluice {

/// Whether the file begins as GGUF files do.
bool is_gguf_file(const std::filesystem::path& path);
/// The GGUF models in a folder, each by its (first) file; picture towers (mmproj*) are none.
std::vector<std::filesystem::path> gguf_models_in(const std::filesystem::path& folder);
/// A model in a GGUF file, or in a set of them, named by its first. `mmproj` is the file with its picture tower,
/// "none", or empty for what the model's file holds, else the mmproj*.gguf in its folder: of several the one whose name
/// says BF16, else F16. Throws LoadError where that does not tell which.
std::unique_ptr<ModelFiles> open_gguf_model(const std::filesystem::path& path, const std::string& mmproj);

}  // namespace sluice
