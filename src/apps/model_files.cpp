#include "apps/model_files.h"

#include <algorithm>
#include <system_error>

#include "apps/gguf_model_files.h"
#include "base/error.h"
#include "base/mmap.h"
#include "weights/safetensors.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

fs::path bundled_model() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path places[] = {folder / "../models/tiny", folder / "../share/sluice/models/tiny"};
  for (const fs::path& place : places) {
    if (is_file(place / "config.json")) return place.lexically_normal();
  }
  fail<LoadError>("the bundled tiny model is neither at {} nor at {}; name a model directory",
                  places[0].lexically_normal().string(), places[1].lexically_normal().string());
}

bool is_plain_word(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.front() != '.' && std::all_of(text.begin(), text.end(), allowed);
}

struct HubName {
  std::string organization, name, revision;
  fs::path folder(const fs::path& hub_cache) const { return hub_cache / ("models--" + organization + "--" + name); }
};

/// ORG/NAME[@revision]; an empty name where the text has another form.
HubName parse_hub_name(const std::string& text) {
  const std::size_t at = text.find('@');
  const std::string path = text.substr(0, at);
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos) return {};
  HubName hub{path.substr(0, slash), path.substr(slash + 1), at == std::string::npos ? "main" : text.substr(at + 1)};
  if (!is_plain_word(hub.organization) || !is_plain_word(hub.name)) return {};
  return hub;
}

std::string first_word(std::string text) {
  text.erase(std::find_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == ' '; }),
             text.end());
  return text;
}

fs::path find_in_hub(const HubName& hub, const std::string& name, const fs::path& hub_cache) {
  const fs::path folder = hub.folder(hub_cache);
  if (!is_folder(folder)) {
    fail<LoadError>(
        "{}: no such directory, and no such model in the cache ({} is missing); download it, or set HF_HUB_CACHE", name,
        folder.string());
  }
  const bool safe = hub.revision.find("..") == std::string::npos && !hub.revision.empty();
  const fs::path reference = folder / "refs" / hub.revision;
  std::string commit = hub.revision;
  if (safe && is_file(reference)) commit = first_word(read_text_file(reference, 1024));
  const fs::path snapshot = folder / "snapshots" / commit;
  if (!safe || !is_plain_word(commit) || !is_folder(snapshot)) {
    fail<LoadError>("{}: the cache has the model, but not the revision \"{}\" (looked in {} and {})", name,
                    hub.revision, (folder / "refs").string(), (folder / "snapshots").string());
  }
  return snapshot;
}

/// A JSON list, or the list under `key` of an object.
Json read_list(const std::string& file, const std::string& key) {
  Json value = parse_json(read_text_file(file), file);
  if (value.is_object() && value.contains(key)) value = Json(value[key]);
  if (!value.is_array())
    fail<LoadError>("{}: expected a list, or an object with \"{}\"; found {}", file, key, value.type_name());
  return value;
}

std::uint64_t bytes_below(const fs::path& directory) {
  std::uint64_t total = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) total += entry->file_size(ignored);
  }
  return total;
}

/// A JSON object in a file of a model's folder; null where it is not there.
Json read_object(const fs::path& path) {
  if (!is_file(path)) return nullptr;
  Json config = parse_json(read_text_file(path), path.string());
  if (!config.is_object()) fail<LoadError>("{}: is no JSON object", path.string());
  return config;
}

std::string folder_name(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

class FolderFiles final : public ModelFiles {
 public:
  explicit FolderFiles(const fs::path& folder) : ModelFiles(folder, folder_name(folder)) {}

  Json config() const override {
    Json config = read_object(path() / "config.json");
    if (!config.is_null()) return config;
    fail<LoadError>("{}: has no config.json; MODEL is a directory with config.json and *.safetensors, or a GGUF file",
                    path().string());
  }
  Json generation_config() const override { return read_object(path() / "generation_config.json"); }
  std::shared_ptr<const Tokenizer> tokenizer() const override {
    return is_file(path() / "tokenizer.json") ? Tokenizer::load(path()) : nullptr;
  }
  std::shared_ptr<const ChatTemplate> chat_template() const override { return ChatTemplate::load(path()); }
  std::unique_ptr<Checkpoint> weights() const override { return open_safetensors(path()); }
  std::map<std::string, std::string> texts() const override {
    constexpr const char* names[] = {"tokenizer.json",
                                     "tokenizer_config.json",
                                     "vocab.json",
                                     "merges.txt",
                                     "special_tokens_map.json",
                                     "added_tokens.json",
                                     "chat_template.jinja",
                                     "chat_template.json",
                                     "generation_config.json",
                                     "preprocessor_config.json",
                                     "processor_config.json",
                                     "video_preprocessor_config.json"};
    std::map<std::string, std::string> texts;
    for (const char* name : names) {
      if (is_file(path() / name)) texts[name] = read_text_file(path() / name);
    }
    return texts;
  }
};

}  // namespace

std::shared_ptr<const Tokenizer> ModelFiles::require_tokenizer() const {
  if (auto found = tokenizer()) return found;
  fail<LoadError>("{}: has no {}, which text needs; logits, generate --ids and inspect work without", path_.string(),
                  is_folder(path_) ? "tokenizer.json" : "tokenizer");
}

std::shared_ptr<const ChatTemplate> ModelFiles::require_chat_template(const std::string& file) const {
  if (!file.empty()) return read_chat_template(file);
  if (auto found = chat_template()) return found;
  fail<LoadError>("{}: has no chat template ({}); name one with --chat-template", path_.string(),
                  is_folder(path_) ? "chat_template.jinja, or in tokenizer_config.json" : "tokenizer.chat_template");
}

std::shared_ptr<const ChatTemplate> read_chat_template(const std::string& file) {
  return ChatTemplate::parse(read_text_file(file, std::size_t{16} << 20), file);
}

std::filesystem::path find_model(const std::string& name, const Environment& environment) {
  if (name.empty()) return bundled_model();
  if (is_folder(name) || is_gguf_file(name)) return name;
  const bool is_gguf = name.ends_with(".gguf");
  if (is_file(name) && is_gguf) fail<LoadError>("{}: does not begin with \"GGUF\": no GGUF file", name);
  if (is_file(name)) {
    fail<LoadError>("{}: is a file; MODEL is a directory with config.json and *.safetensors, or a GGUF file", name);
  }
  const HubName hub = parse_hub_name(name);
  if (is_gguf || hub.name.empty() || environment.hub_cache.empty())
    fail<LoadError>("{}: no such file or directory", name);
  return find_in_hub(hub, name, environment.hub_cache);
}

std::unique_ptr<ModelFiles> open_model_files(const std::string& name, const Environment& environment,
                                             const std::string& mmproj) {
  const fs::path path = find_model(name, environment);
  if (!is_folder(path)) return open_gguf_model(path, mmproj);
  const std::vector<fs::path> models = is_file(path / "config.json") ? std::vector<fs::path>{} : gguf_models_in(path);
  if (models.size() == 1) return open_gguf_model(models.front(), mmproj);
  if (models.empty() && !mmproj.empty()) {
    fail<UsageError>("--mmproj {}: {} is no GGUF model; its picture tower lies with its other weights", mmproj,
                     path.string());
  }
  if (models.empty()) return std::make_unique<FolderFiles>(path);
  std::vector<std::string> names;
  for (const fs::path& model : models) names.push_back(model.filename().string());
  fail<LoadError>("{}: holds {} GGUF models; name one of them: {}", path.string(), models.size(),
                  fmt::join(names, ", "));
}

std::vector<CachedModel> cached_models(const std::filesystem::path& hub_cache) {
  std::vector<CachedModel> models;
  std::error_code error;
  for (fs::directory_iterator entry(hub_cache, error), end; !error && entry != end; entry.increment(error)) {
    const std::string folder = entry->path().filename().string();
    const std::string_view prefix = "models--";
    if (folder.substr(0, prefix.size()) != prefix) continue;
    std::string name = folder.substr(prefix.size());
    const std::size_t dashes = name.find("--");
    if (dashes == std::string::npos) continue;
    name.replace(dashes, 2, "/");
    std::error_code inner;
    for (fs::directory_iterator snapshot(entry->path() / "snapshots", inner), last; !inner && snapshot != last;
         snapshot.increment(inner)) {
      const std::string commit = snapshot->path().filename().string();
      if (!is_file(snapshot->path() / "config.json") && gguf_models_in(snapshot->path()).empty()) continue;
      const fs::path main = entry->path() / "refs" / "main";
      const bool is_main = is_file(main) && first_word(read_text_file(main, 1024)) == commit;
      models.push_back({name, is_main ? "main" : commit, snapshot->path(), bytes_below(snapshot->path())});
    }
  }
  std::sort(models.begin(), models.end(), [](const CachedModel& a, const CachedModel& b) {
    return std::tie(a.name, a.revision) < std::tie(b.name, b.revision);
  });
  return models;
}

std::vector<TokenId> stop_tokens_of(const Json& generation_config) {
  std::vector<TokenId> tokens;
  if (!generation_config.is_object()) return tokens;
  const auto found = generation_config.find("eos_token_id");
  if (found == generation_config.end() || found->is_null()) return tokens;
  const Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json& id : list) {
    const bool is_id =
        id.is_number_integer() && id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() < (std::int64_t{1} << 31);
    if (!is_id)
      fail<LoadError>("generation_config.json: eos_token_id is {}, expected a token id or a list of them",
                      found->dump());
    tokens.push_back(id.get<TokenId>());
  }
  return tokens;
}

Json read_messages(const std::string& file) { return read_list(file, "messages"); }

Json read_tools(const std::string& file) { return file.empty() ? Json(nullptr) : read_list(file, "tools"); }

}  // namespace sluice
