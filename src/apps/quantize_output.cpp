#include "apps/quantize_output.h"

#include <system_error>
#include <utility>

#include "apps/output.h"
#include "apps/quantize_folder.h"
#include "base/error.h"
#include "base/output_file.h"

namespace sluice {

namespace fs = std::filesystem;

namespace {

/// "models/out/" is the folder "models/out".
fs::path without_slash(const fs::path& path) {
  return path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
}

fs::path with_suffix(fs::path path, const char* suffix) {
  path += suffix;
  return path;
}

void write_text(const fs::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace

OutputFolder::OutputFolder(fs::path path) : path_(without_slash(path)), partial_(with_suffix(path_, ".partial")) {
  std::error_code error;
  if (fs::create_directory(partial_, error)) return;
  if (!error) fail<Error>("{}: is there already, from a run that was ended; remove it", partial_.string());
  fail<Error>("{}: cannot be created: {}", partial_.string(), error.message());
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(partial_, ignored);
}

void OutputFolder::commit() {
  std::error_code error, ignored;
  const fs::path replaced = with_suffix(path_, ".replaced");
  const bool replaces = fs::exists(path_, ignored);
  if (replaces) fs::rename(path_, replaced, error);
  if (!error) fs::rename(partial_, path_, error);
  if (error) fail<Error>("{}: cannot be written: {}", path_.string(), error.message());
  committed_ = true;
  if (replaces) fs::remove_all(replaced, ignored);
}

void check_output(const fs::path& given, const fs::path& source, const QuantizeFormat& format, bool force) {
  const fs::path out = without_slash(given);
  const bool names_file = out.extension() == ".gguf";
  if (format.is_gguf != names_file) {
    fail<UsageError>("{}: --format {} makes a {}", out.string(), format.name,
                     format.is_gguf ? "GGUF file, whose name must end in .gguf"
                                    : "folder of safetensors files, whose name must not end in .gguf");
  }
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return;
  if (fs::equivalent(out, source, ignored) || fs::equivalent(out, source.parent_path(), ignored)) {
    fail<UsageError>("{}: is the source; choose another OUT", out.string());
  }
  if (!force) fail<UsageError>("{}: is there already; --force replaces it", out.string());
  if (fs::is_directory(out, ignored) == format.is_gguf) {
    fail<UsageError>("{}: is a {}, which --force does not replace", out.string(), format.is_gguf ? "folder" : "file");
  }
  if (format.is_gguf) return;
  for (fs::directory_iterator entry(out, ignored), end; entry != end; entry.increment(ignored)) {
    if (entry->is_regular_file(ignored)) continue;
    fail<UsageError>("{}: holds {}, which is no plain file; --force does not replace such a folder", out.string(),
                     entry->path().filename().string());
  }
}

void write_folder_texts(const fs::path& folder, const Json& config, const std::map<std::string, std::string>& texts) {
  for (const auto& [name, text] : texts) write_text(folder / name, text);
  write_text(folder / "config.json", indented_json(config));
  if (const Json other = modelopt_config(config); !other.is_null()) {
    write_text(folder / "hf_quant_config.json", indented_json(other));
  }
}

}  // namespace sluice
