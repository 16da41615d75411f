#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/options.h"
#include "base/json.h"
#include "engine/request.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice {

/// The directory that MODEL means: itself, the snapshot of ORG/NAME[@revision] in the hub cache, or for an empty name
/// the bundled model, which lies at ../models/tiny or ../share/sluice/models/tiny seen from the program.
/// Throws LoadError that says where it looked.
std::filesystem::path find_model(const std::string& name, const Environment& environment);

/// One model of the hub cache.
struct CachedModel {
  std::string name;      // "ORG/NAME"
  std::string revision;  // a branch or tag, else the commit
  std::filesystem::path directory;
  std::uint64_t bytes = 0;
};
/// Snapshots that have a config.json, sorted by name.
std::vector<CachedModel> cached_models(const std::filesystem::path& hub_cache);

/// config.json of a model directory. Throws LoadError.
Json read_config(const std::filesystem::path& directory);
/// generation_config.json; null where there is none.
Json read_generation_config(const std::filesystem::path& directory);
/// Null where there is no tokenizer.json.
std::shared_ptr<const Tokenizer> find_tokenizer(const std::filesystem::path& directory);
/// The same, but throws LoadError where there is none.
std::shared_ptr<const Tokenizer> require_tokenizer(const std::filesystem::path& directory);
/// The template in `file`, or the directory's own when that is empty. Throws LoadError where there is none.
std::shared_ptr<const ChatTemplate> require_chat_template(const std::filesystem::path& directory,
                                                          const std::string& file);

/// eos_token_id of generation_config.json: a number, or a list of numbers. Throws LoadError for anything else.
std::vector<TokenId> stop_tokens_of(const Json& generation_config);

/// A list of messages, from a file that holds it or an object with "messages". Throws LoadError.
Json read_messages(const std::string& file);
/// A list of tools, likewise; null for an empty name.
Json read_tools(const std::string& file);

}  // namespace sluice
