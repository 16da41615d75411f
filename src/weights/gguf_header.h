#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/mapped_checkpoint.h"

namespace sluice {

/// Types of metadata values, as GGUF numbers them.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// A value of the metadata, checked but not decoded: its bytes are those of the file.
struct GgufValue {
  GgufType type = GgufType::u8;  // of the elements, where it is an array
  bool is_array = false;
  std::uint64_t count = 1;           // of elements
  std::span<const std::byte> bytes;  // of all elements, packed
};

/// Keys to values; views of the file's bytes. Look-ups return nothing for a key that is not there, and throw LoadError
/// for one of another type.
class GgufMetadata {
 public:
  /// `source` names the file in errors.
  explicit GgufMetadata(std::string source) : source_(std::move(source)) {}
  /// False where the key is there already.
  bool add(std::string_view key, const GgufValue& value);

  const std::string& source() const { return source_; }
  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
  bool is_array(std::string_view key) const;

  std::optional<std::int64_t> integer(std::string_view key) const;
  /// Of any numeric type.
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  /// Arrays; of integers also one of booleans.
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<std::string_view>> strings(std::string_view key) const;

 private:
  const GgufValue* find(std::string_view key, bool array) const;
  [[noreturn]] void wrong_type(std::string_view key, const GgufValue& value, std::string_view expected) const;

  std::string source_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

struct GgufHeader {
  std::uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<FileTensor> tensors;
};

/// The header of a GGUF file, version 2 or 3, checked against the file's size; bytes of tensors are not read. `head`
/// holds the file's first bytes (the header at least) and must outlive the metadata. Throws LoadError for anything
/// that does not add up.
GgufHeader parse_gguf_header(std::span<const std::byte> head, std::uint64_t file_size, std::string_view what);

/// ggml's number of the tensor's type. Throws Error for a type that GGUF files do not have.
std::uint32_t ggml_type_of(const StoredTensor& tensor);

}  // namespace sluice
