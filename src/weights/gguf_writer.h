#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "weights/gguf_header.h"
#include "weights/tensor_writer.h"

namespace sluice {

/// The metadata of a GGUF file to be, in the order of adding. Keys must differ.
class GgufKeys {
 public:
  void add(std::string_view key, std::uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, std::span<const std::int32_t> values);
  void add(std::string_view key, const std::vector<bool>& values);
  void add(std::string_view key, std::span<const std::string> values);

  std::uint64_t count() const { return count_; }
  std::string_view packed() const { return packed_; }

 private:
  void begin(std::string_view key, GgufType type);
  void begin_array(std::string_view key, GgufType type, std::uint64_t elements);

  std::uint64_t count_ = 0;
  std::string packed_;
};

/// Writes a GGUF file of version 3, tensors aligned to 32 bytes.
class GgufWriter final : public TensorWriter {
 public:
  /// Of the tensors, names, types and shapes count; the types must be ones that GGUF has.
  GgufWriter(const std::filesystem::path& path, const GgufKeys& keys, std::span<const StoredTensor> tensors);
  void write(std::span<const std::byte> bytes) override;
  void finish() override;

 private:
  void next_tensor();

  OutputFile file_;
  std::vector<std::uint64_t> sizes_;  // bytes of each tensor
  std::size_t begun_ = 0;             // tensors
  std::uint64_t left_ = 0;            // bytes that the tensor begun last lacks
};

}  // namespace sluice
