#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/options.h"
#include "base/json.h"
#include "engine/request.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace sluice {

/// The folder or GGUF file that MODEL means: itself, the snapshot of ORG/NAME[@revision] in the hub cache, or for an
/// empty name the bundled model, which lies at ../models/tiny or ../share/sluice/models/tiny seen from the program.
/// Throws LoadError that says where it looked.
std::filesystem::path find_model(const std::string& name, const Environment& environment);

/// The files of one model: a folder as the hub has them, or a GGUF file. Everything is read when asked for, and throws
/// LoadError where it is wrong.
class ModelFiles {
 public:
  ModelFiles(std::filesystem::path path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}
  virtual ~ModelFiles() = default;

  const std::filesystem::path& path() const { return path_; }
  /// That of the folder or of the file, without what says its kind.
  const std::string& name() const { return name_; }

  virtual Json config() const = 0;
  /// Null where there is none.
  virtual Json generation_config() const = 0;
  /// Null where there is none.
  virtual std::shared_ptr<const Tokenizer> tokenizer() const = 0;
  virtual std::shared_ptr<const ChatTemplate> chat_template() const = 0;
  virtual std::unique_ptr<Checkpoint> weights() const = 0;
  /// Names to contents of what a folder holds beside weights and config.json: tokenizer, templates, defaults of
  /// generation and of pictures.
  virtual std::map<std::string, std::string> texts() const = 0;

  /// The same, but throws LoadError where there is none.
  std::shared_ptr<const Tokenizer> require_tokenizer() const;
  /// The template in `file`, or the model's own when that is empty. Throws LoadError where there is none.
  std::shared_ptr<const ChatTemplate> require_chat_template(const std::string& file) const;

 private:
  std::filesystem::path path_;
  std::string name_;
};

/// What find_model finds; a folder without config.json that holds one GGUF model is that model. `mmproj` is --mmproj:
/// the file with a GGUF model's picture tower, "none", or empty for the one beside it.
std::unique_ptr<ModelFiles> open_model_files(const std::string& name, const Environment& environment,
                                             const std::string& mmproj = "");

/// One model of the hub cache.
struct CachedModel {
  std::string name;      // "ORG/NAME"
  std::string revision;  // a branch or tag, else the commit
  std::filesystem::path directory;
  std::uint64_t bytes = 0;
};
/// Snapshots that have a config.json or GGUF models, sorted by name.
std::vector<CachedModel> cached_models(const std::filesystem::path& hub_cache);

/// A chat template in a file of its own.
std::shared_ptr<const ChatTemplate> read_chat_template(const std::string& file);

/// eos_token_id of generation_config.json: a number, or a list of numbers. Throws LoadError for anything else.
std::vector<TokenId> stop_tokens_of(const Json& generation_config);

/// A list of messages, from a file that holds it or an object with "messages". Throws LoadError.
Json read_messages(const std::string& file);
/// A list of tools, likewise; null for an empty name.
Json read_tools(const std::string& file);

}  // namespace sluice
