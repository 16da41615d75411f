#include "apps/gguf_model_files.h"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "apps/gguf_tokenizer.h"
#include "base/log.h"
#include "weights/gguf_qwen.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

class GgufModelFiles final : public ModelFiles {
 public:
  explicit GgufModelFiles(const fs::path& path)
      : ModelFiles(path, gguf_name(path)), file_(std::make_shared<const GgufCheckpoint>(path)) {}

  Json config() const override { return gguf_qwen_config(*file_); }
  Json generation_config() const override;
  std::shared_ptr<const Tokenizer> tokenizer() const override { return gguf_tokenizer(file_->metadata()); }
  std::shared_ptr<const ChatTemplate> chat_template() const override;
  std::unique_ptr<Checkpoint> weights() const override;

 private:
  std::shared_ptr<const GgufCheckpoint> file_;
};

Json GgufModelFiles::generation_config() const {
  constexpr std::pair<const char*, const char*> keys[] = {{"general.sampling.temp", "temperature"},
                                                          {"general.sampling.top_p", "top_p"},
                                                          {"general.sampling.min_p", "min_p"},
                                                          {"general.sampling.penalty_repeat", "repetition_penalty"}};
  const GgufMetadata& metadata = file_->metadata();
  Json config = Json::object();
  for (const auto& [key, name] : keys) {
    if (const auto value = metadata.number(key)) config[name] = *value;
  }
  if (const auto top_k = metadata.integer("general.sampling.top_k")) config["top_k"] = *top_k;
  if (const auto ids = gguf_stop_tokens(metadata); !ids.empty()) config["eos_token_id"] = ids;
  return config.empty() ? Json(nullptr) : config;
}

std::shared_ptr<const ChatTemplate> GgufModelFiles::chat_template() const {
  const GgufMetadata& metadata = file_->metadata();
  const auto source = metadata.string("tokenizer.chat_template");
  if (!source) return nullptr;
  return ChatTemplate::parse(*source, fmt::format("{}, tokenizer.chat_template", path().string()),
                             gguf_special_tokens(metadata));
}

std::unique_ptr<Checkpoint> GgufModelFiles::weights() const {
  auto checkpoint = std::make_unique<GgufQwenCheckpoint>(file_);
  for (const std::string& line : checkpoint->left_out()) log_info("{}: not loaded: {}", path().string(), line);
  return checkpoint;
}

}  // namespace

bool is_gguf_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  char magic[4] = {};
  return std::ifstream(path, std::ios::binary).read(magic, sizeof magic) && std::string_view(magic, 4) == "GGUF";
}

std::vector<fs::path> gguf_models_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    const bool is_model = path.extension() == ".gguf" && entry->is_regular_file(ignored) &&
                          !path.filename().string().starts_with("mmproj") && !is_later_gguf_part(path);
    if (is_model) found.push_back(path);
  }
  std::ranges::sort(found);
  return found;
}

std::unique_ptr<ModelFiles> open_gguf_model(const fs::path& path) { return std::make_unique<GgufModelFiles>(path); }

}  // namespace sluice
