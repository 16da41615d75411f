#include "weights/safetensors.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/mmap.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

void add_file(MappedCheckpoint& checkpoint, const fs::path& path) {
  auto file = std::make_unique<MappedFile>(path);
  auto tensors = parse_safetensors_header(file->bytes(), file->bytes().size(), path.string());
  checkpoint.add_file(std::move(file), std::move(tensors));
}

/// Shard name -> tensor names, from an index file.
std::map<std::string, std::vector<std::string>> read_index(const fs::path& path) {
  const Json index = parse_json(read_text_file(path), path.string());
  const auto weight_map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || weight_map == index.end() || !weight_map->is_object()) {
    fail<LoadError>("{}: has no object \"weight_map\"", path.string());
  }
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [name, shard] : weight_map->items()) {
    if (!shard.is_string()) fail<LoadError>("{}: the file of tensor \"{}\" is not a string", path.string(), name);
    const auto file = shard.get<std::string>();
    if (file.empty() || fs::path(file).filename() != file || file == "..") {
      fail<LoadError>("{}: \"{}\" is not a plain file name", path.string(), file);
    }
    shards[file].push_back(name);
  }
  if (shards.empty()) fail<LoadError>("{}: \"weight_map\" is empty", path.string());
  return shards;
}

std::unique_ptr<Checkpoint> open_sharded(const fs::path& directory, const fs::path& index_path) {
  auto checkpoint = std::make_unique<MappedCheckpoint>();
  const auto shards = read_index(index_path);
  std::size_t listed = 0;
  for (const auto& [file, names] : shards) {
    const fs::path path = directory / file;
    if (!fs::exists(path)) fail<LoadError>("{}: missing, but {} lists it", path.string(), index_path.string());
    add_file(*checkpoint, path);
    listed += names.size();
    for (const std::string& name : names) {
      const StoredTensor* tensor = checkpoint->find(name);
      if (tensor == nullptr || tensor->source != path.string()) {
        fail<LoadError>("{}: tensor \"{}\" is missing, but {} lists it there", path.string(), name,
                        index_path.string());
      }
    }
  }
  if (checkpoint->names().size() != listed) {
    for (const std::string& name : checkpoint->names()) {
      const auto& names = shards.at(fs::path(checkpoint->find(name)->source).filename().string());
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        fail<LoadError>("{}: tensor \"{}\" is not listed in {}", checkpoint->find(name)->source, name,
                        index_path.string());
      }
    }
  }
  checkpoint->set_description(fmt::format("{} ({} safetensors files)", directory.string(), shards.size()));
  return checkpoint;
}

std::unique_ptr<Checkpoint> open_file(const fs::path& path) {
  auto checkpoint = std::make_unique<MappedCheckpoint>();
  add_file(*checkpoint, path);
  checkpoint->set_description(path.string());
  return checkpoint;
}

}  // namespace

std::unique_ptr<Checkpoint> open_safetensors(const fs::path& path) {
  if (!fs::exists(path)) fail<LoadError>("{}: no such file or directory", path.string());
  if (!fs::is_directory(path)) return open_file(path);
  const fs::path index = path / "model.safetensors.index.json";
  if (fs::exists(index)) return open_sharded(path, index);
  if (fs::exists(path / "model.safetensors")) return open_file(path / "model.safetensors");
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
  }
  if (found.size() == 1) return open_file(found.front());
  if (found.empty()) fail<LoadError>("{}: holds no .safetensors file", path.string());
  fail<LoadError>("{}: holds {} .safetensors files and no model.safetensors.index.json that says which belong together",
                  path.string(), found.size());
}

}  // namespace sluice
