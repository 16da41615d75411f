#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "weights/gguf.h"

namespace sluice {

/// A GGUF file of the family (architectures qwen35 and qwen35moe) under the published names and with the published
/// shapes. The bytes are the file's: conventions() says what its numbers mean. Experts lie under
/// mlp.experts.{gate,up,down}_proj (or gate_up_proj), each fused over the experts. Names that the family does not have
/// stay as they are.
class GgufQwenCheckpoint final : public Checkpoint {
 public:
  /// Throws LoadError for another architecture, and where two tensors mean the same one.
  explicit GgufQwenCheckpoint(std::shared_ptr<const GgufCheckpoint> file);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override;
  void release(const StoredTensor& tensor) const override;
  std::uint64_t total_bytes() const override { return total_; }
  Conventions conventions() const override { return conventions_; }
  std::string describe() const override { return file_->describe(); }

  /// "v.* (333 tensors): reason" for what the file holds and the names above do not show.
  std::vector<std::string> left_out() const;

 private:
  struct Entry {
    StoredTensor presented;
    const StoredTensor* stored;
  };
  const StoredTensor& stored(const StoredTensor& presented) const;
  void leave_out(std::string group, std::string_view reason);

  std::shared_ptr<const GgufCheckpoint> file_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::pair<std::size_t, std::string_view>> left_out_;  // group to count and reason
  Conventions conventions_;
  std::uint64_t total_ = 0;
};

/// What the blocks of a file are: layers first, then layers of the draft head.
struct GgufQwenBlocks {
  std::string architecture;  // the first part of its keys
  std::int64_t layers = 0, drafts = 0;
};
/// Throws LoadError for another architecture.
GgufQwenBlocks gguf_qwen_blocks(const GgufMetadata& metadata);

/// ggml's name of a published tensor; none for one that its files do not have.
std::optional<std::string> gguf_qwen_name(std::string_view published, const GgufQwenBlocks& blocks);

/// config.json as it would stand beside the published weights; values are checked where that is. Throws LoadError for
/// keys that are missing, contradict each other, or ask for something that the config has no field for.
Json gguf_qwen_config(const GgufCheckpoint& file);

}  // namespace sluice
