#include "apps/gguf_model_files.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

#include "apps/gguf_tokenizer.h"
#include "base/error.h"
#include "base/log.h"
#include "server/json_text.h"
#include "weights/gguf_qwen.h"
#include "weights/gguf_qwen_vision.h"
#include "weights/joined_checkpoint.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

class GgufModelFiles final : public ModelFiles {
 public:
  GgufModelFiles(const fs::path& path, std::string mmproj)
      : ModelFiles(path, gguf_name(path)),
        file_(std::make_shared<const GgufCheckpoint>(path)),
        mmproj_(std::move(mmproj)) {}

  Json config() const override;
  Json generation_config() const override;
  std::shared_ptr<const Tokenizer> tokenizer() const override { return gguf_tokenizer(file_->metadata()); }
  std::shared_ptr<const ChatTemplate> chat_template() const override;
  std::unique_ptr<Checkpoint> weights() const override;
  std::map<std::string, std::string> texts() const override;

 private:
  /// Null where there is none.
  std::unique_ptr<GgufQwenVision> picture_tower() const;

  std::shared_ptr<const GgufCheckpoint> file_;
  std::string mmproj_;
};

bool is_mmproj(const fs::path& path) {
  return path.extension() == ".gguf" && path.filename().string().starts_with("mmproj");
}

/// The picture tower beside a model; empty where there is none.
fs::path find_mmproj(const fs::path& model) {
  std::vector<fs::path> found;
  const fs::path folder = model.has_parent_path() ? model.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_mmproj(entry->path()) && is_gguf_file(entry->path())) found.push_back(entry->path());
  }
  if (found.size() < 2) return found.empty() ? fs::path() : found.front();
  std::ranges::sort(found);
  for (const char* type : {"-BF16.gguf", "-F16.gguf"}) {
    std::vector<fs::path> typed;
    std::ranges::copy_if(found, std::back_inserter(typed),
                         [&](const fs::path& path) { return path.filename().string().ends_with(type); });
    if (typed.size() == 1) return typed.front();
  }
  std::vector<std::string> names;
  for (const fs::path& path : found) names.push_back(path.filename().string());
  fail<LoadError>("{}: holds {} picture towers; name one of them with --mmproj, or none: {}", folder.string(),
                  found.size(), fmt::join(names, ", "));
}

std::unique_ptr<GgufQwenVision> GgufModelFiles::picture_tower() const {
  if (mmproj_ == "none") return nullptr;
  if (mmproj_.empty()) {
    if (auto bundled = GgufQwenVision::of_text(file_)) return bundled;
  }
  const fs::path path = mmproj_.empty() ? find_mmproj(this->path()) : fs::path(mmproj_);
  if (path.empty()) return nullptr;
  return GgufQwenVision::of_mmproj(std::make_shared<const GgufCheckpoint>(path));
}

Json GgufModelFiles::config() const {
  Json config = gguf_qwen_config(*file_);
  const auto tower = picture_tower();
  if (!tower) return config;
  config.erase("language_model_only");
  config["vision_config"] = tower->config();
  const Json &made = config["vision_config"]["out_hidden_size"], &taken = config["text_config"]["hidden_size"];
  if (made != taken) {
    fail<LoadError>(
        "{}: the picture tower makes rows of {}, but {} has rows of {}: it belongs to another model; name the right "
        "one with --mmproj, or none",
        tower->describe(), made.dump(), path().string(), taken.dump());
  }
  return config;
}

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
  auto tower = picture_tower();
  if (!tower) return checkpoint;
  return std::make_unique<JoinedCheckpoint>(std::move(checkpoint), std::move(tower));
}

std::map<std::string, std::string> GgufModelFiles::texts() const {
  std::map<std::string, std::string> texts;
  const GgufMetadata& metadata = file_->metadata();
  if (auto tokenizer = gguf_tokenizer_json(metadata)) {
    texts["tokenizer.json"] = *std::move(tokenizer);
    texts["tokenizer_config.json"] = json_text(gguf_special_tokens(metadata));
  }
  if (const auto source = metadata.string("tokenizer.chat_template")) texts["chat_template.jinja"] = *source;
  if (const Json generation = generation_config(); !generation.is_null()) {
    texts["generation_config.json"] = json_text(generation);
  }
  return texts;
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
    const bool is_model =
        path.extension() == ".gguf" && entry->is_regular_file(ignored) && !is_mmproj(path) && !is_later_gguf_part(path);
    if (is_model) found.push_back(path);
  }
  std::ranges::sort(found);
  return found;
}

std::unique_ptr<ModelFiles> open_gguf_model(const fs::path& path, const std::string& mmproj) {
  return std::make_unique<GgufModelFiles>(path, mmproj);
}

}  // namespace sluice
