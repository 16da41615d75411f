#include "weights/gguf_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace sluice {

namespace {

constexpr std::uint64_t alignment = 32;
constexpr std::uint32_t version = 3;

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out += text;
}

std::uint64_t padding_of(std::uint64_t size) { return (alignment - size % alignment) % alignment; }

std::string_view zeros(std::uint64_t count) {
  static constexpr std::array<char, alignment> bytes{};
  return {bytes.data(), static_cast<std::size_t>(count)};
}

}  // namespace

void GgufKeys::begin(std::string_view key, GgufType type) {
  ++count_;
  append_text(packed_, key);
  append(packed_, type);
}

void GgufKeys::begin_array(std::string_view key, GgufType type, std::uint64_t elements) {
  begin(key, GgufType::array);
  append(packed_, type);
  append(packed_, elements);
}

void GgufKeys::add(std::string_view key, std::uint32_t value) {
  begin(key, GgufType::u32);
  append(packed_, value);
}

void GgufKeys::add(std::string_view key, float value) {
  begin(key, GgufType::f32);
  append(packed_, value);
}

void GgufKeys::add(std::string_view key, bool value) {
  begin(key, GgufType::boolean);
  append(packed_, std::uint8_t{value});
}

void GgufKeys::add(std::string_view key, std::string_view value) {
  begin(key, GgufType::string);
  append_text(packed_, value);
}

void GgufKeys::add(std::string_view key, std::span<const std::int32_t> values) {
  begin_array(key, GgufType::i32, values.size());
  for (const std::int32_t value : values) append(packed_, value);
}

void GgufKeys::add(std::string_view key, const std::vector<bool>& values) {
  begin_array(key, GgufType::boolean, values.size());
  for (const bool value : values) append(packed_, std::uint8_t{value});
}

void GgufKeys::add(std::string_view key, std::span<const std::string> values) {
  begin_array(key, GgufType::string, values.size());
  for (const std::string& value : values) append_text(packed_, value);
}

GgufWriter::GgufWriter(const std::filesystem::path& path, const GgufKeys& keys, std::span<const StoredTensor> tensors)
    : file_(path) {
  std::string header = "GGUF";
  append(header, version);
  append(header, std::uint64_t{tensors.size()});
  append(header, keys.count());
  header += keys.packed();
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    append_text(header, tensor.name);
    append(header, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) append(header, *size);
    append(header, ggml_type_of(tensor));
    append(header, offset);
    sizes_.push_back(tensor.byte_size());
    offset += sizes_.back() + padding_of(sizes_.back());
  }
  header += zeros(padding_of(header.size()));
  file_.write(header);
}

void GgufWriter::next_tensor() {
  CHECK(left_ == 0 && begun_ < sizes_.size(), "{} bytes left of tensor {} of {}", left_, begun_, sizes_.size());
  file_.write(zeros(padding_of(file_.size())));
  left_ = sizes_[begun_++];
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    while (left_ == 0) next_tensor();
    const std::size_t part = std::min<std::size_t>(left_, bytes.size());
    file_.write(bytes.first(part));
    left_ -= part;
    bytes = bytes.subspan(part);
  }
}

void GgufWriter::finish() {
  CHECK(left_ == 0 && begun_ == sizes_.size(), "{} bytes left of tensor {} of {}", left_, begun_, sizes_.size());
  file_.write(zeros(padding_of(file_.size())));
  file_.commit();
}

}  // namespace sluice
