#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sluice::test {

/// Little-endian bytes of a number; of a string, its length before it.
template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
inline std::string raw_text(std::string_view text) { return raw<std::uint64_t>(text.size()) + std::string(text); }

/// Puts a GGUF file together, piece by piece, so that each piece can be wrong.
class GgufFile {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3, alignment = 32;
  std::uint64_t extra_keys = 0, extra_tensors = 0;  // claimed beyond those that are there

  /// A key with the type and the bytes of its value.
  GgufFile& key(std::string_view name, std::uint32_t type, const std::string& value) {
    keys_ += raw_text(name) + raw(type) + value;
    ++key_count_;
    return *this;
  }
  GgufFile& u16(std::string_view name, std::uint16_t value) { return key(name, 2, raw(value)); }
  GgufFile& u32(std::string_view name, std::uint32_t value) { return key(name, 4, raw(value)); }
  GgufFile& i32(std::string_view name, std::int32_t value) { return key(name, 5, raw(value)); }
  GgufFile& f32(std::string_view name, float value) { return key(name, 6, raw(value)); }
  GgufFile& boolean(std::string_view name, bool value) { return key(name, 7, raw<std::uint8_t>(value)); }
  GgufFile& text(std::string_view name, std::string_view value) { return key(name, 8, raw_text(value)); }
  GgufFile& texts(std::string_view name, const std::vector<std::string>& values) {
    std::string all = raw<std::uint32_t>(8) + raw<std::uint64_t>(values.size());
    for (const std::string& value : values) all += raw_text(value);
    return key(name, 9, all);
  }
  GgufFile& integers(std::string_view name, const std::vector<std::int32_t>& values) {
    std::string all = raw<std::uint32_t>(5) + raw<std::uint64_t>(values.size());
    for (const std::int32_t value : values) all += raw(value);
    return key(name, 9, all);
  }

  /// The tensor's data goes to the next multiple of the alignment. Dimensions are given innermost first.
  GgufFile& tensor(std::string_view name, const std::vector<std::int64_t>& sizes, std::uint32_t type,
                   const std::string& data) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    entry(name, sizes, type, data_.size());
    data_ += data;
    return *this;
  }
  GgufFile& floats(std::string_view name, const std::vector<std::int64_t>& sizes, const std::vector<float>& values) {
    return tensor(name, sizes, 0, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  /// The same of zeros.
  GgufFile& zeros(std::string_view name, const std::vector<std::int64_t>& sizes) {
    std::size_t count = 1;
    for (const std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
    return floats(name, sizes, std::vector<float>(count));
  }
  /// An entry that claims to lie at `offset`; data() is what lies there.
  GgufFile& entry(std::string_view name, const std::vector<std::int64_t>& sizes, std::uint32_t type,
                  std::uint64_t offset) {
    tensors_ += raw_text(name) + raw<std::uint32_t>(static_cast<std::uint32_t>(sizes.size()));
    for (const std::int64_t size : sizes) tensors_ += raw(size);
    tensors_ += raw(type) + raw(offset);
    ++tensor_count_;
    return *this;
  }
  std::string& data() { return data_; }

  std::string bytes() const {
    std::string all = magic + raw(version) + raw(tensor_count_ + extra_tensors) + raw(key_count_ + extra_keys);
    all += keys_ + tensors_;
    if (!data_.empty()) all.resize((all.size() + alignment - 1) / alignment * alignment);
    return all + data_;
  }

 private:
  std::string keys_, tensors_, data_;
  std::uint64_t key_count_ = 0, tensor_count_ = 0;
};

}  // namespace sluice::test
