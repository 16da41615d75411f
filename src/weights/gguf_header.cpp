#include "weights/gguf_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "weights/ggml_blocks.h"

namespace sluice {

namespace {

constexpr std::uint64_t max_header_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t max_keys = 1 << 16, max_tensors = 1 << 18;
constexpr std::size_t max_name_bytes = 256, max_rank = 4;
constexpr std::uint32_t array_type = static_cast<std::uint32_t>(GgufType::array);
constexpr std::uint32_t last_type = static_cast<std::uint32_t>(GgufType::f64);
constexpr std::int64_t default_alignment = 32;

/// ggml's numbers of the types that are plain numbers.
struct PlainType {
  std::uint32_t id;
  DType dtype;
};
constexpr PlainType plain_types[] = {
    {0, DType::f32},  {1, DType::f16},  {24, DType::i8},  {25, DType::i16},
    {26, DType::i32}, {27, DType::i64}, {28, DType::f64}, {30, DType::bf16},
};

/// Bytes of one element; 0 for strings and arrays.
std::uint64_t element_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64: return 8;
    default: return 0;
  }
}

bool is_plain_text(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

/// Reads a header from the front; every function throws LoadError.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> head, std::uint64_t file_size, std::string_view what)
      : head_(head.first(std::min<std::size_t>({head.size(), file_size, max_header_bytes}))),
        file_size_(file_size),
        what_(what),
        header_{0, GgufMetadata(std::string(what)), {}} {}
  GgufHeader read();

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail<LoadError>("{}: {}", what_, fmt::format(format, std::forward<Args>(args)...));
  }
  std::uint64_t left() const { return head_.size() - at_; }
  void need(std::uint64_t bytes, std::string_view where) const;
  template <class T>
  T number(std::string_view where);
  std::string_view text(std::string_view where);

  void read_version();
  void read_key(std::uint64_t index);
  GgufValue read_value(std::string_view key);
  void read_tensor(std::uint64_t index);
  std::vector<std::int64_t> read_shape(std::string_view name);
  void read_type(StoredTensor& tensor);
  std::uint64_t alignment() const;
  void place_tensors();
  void check_overlaps() const;

  std::span<const std::byte> head_;
  std::uint64_t file_size_;
  std::string_view what_;
  std::size_t at_ = 0;
  GgufHeader header_;
  std::unordered_set<std::string_view> names_;
};

void HeaderReader::need(std::uint64_t bytes, std::string_view where) const {
  if (bytes <= left()) return;
  if (head_.size() == max_header_bytes)
    refuse("{} ends past the limit of {} bytes for a header", where, max_header_bytes);
  refuse("truncated: {} needs {} bytes at byte {}, the file has {}", where, bytes, at_, file_size_);
}

template <class T>
T HeaderReader::number(std::string_view where) {
  need(sizeof(T), where);
  T value;
  std::memcpy(&value, head_.data() + at_, sizeof value);
  at_ += sizeof value;
  return value;
}

std::string_view HeaderReader::text(std::string_view where) {
  const auto size = number<std::uint64_t>(where);
  need(size, where);
  const std::string_view found(reinterpret_cast<const char*>(head_.data()) + at_, size);
  at_ += size;
  return found;
}

void HeaderReader::read_version() {
  constexpr std::string_view magic = "GGUF";
  need(magic.size(), "the magic number");
  if (std::memcmp(head_.data(), magic.data(), magic.size()) != 0) refuse("does not begin with \"GGUF\": no GGUF file");
  at_ = magic.size();
  const auto version = number<std::uint32_t>("the version");
  if (version != 0 && (version & 0xffffu) == 0) refuse("is big-endian; only little-endian GGUF files are supported");
  if (version != 2 && version != 3) refuse("is GGUF version {}; supported are 2 and 3", version);
  header_.version = version;
}

GgufValue HeaderReader::read_value(std::string_view key) {
  GgufValue value;
  auto type = number<std::uint32_t>(key);
  if (type == array_type) {
    value.is_array = true;
    type = number<std::uint32_t>(key);
    if (type == array_type) refuse("\"{}\" is an array of arrays, which is not supported", key);
    value.count = number<std::uint64_t>(key);
  }
  if (type > last_type) refuse("\"{}\" has the unknown value type {}", key, type);
  value.type = static_cast<GgufType>(type);
  const std::size_t begin = at_;
  const std::uint64_t size = element_bytes(value.type);
  const std::uint64_t smallest = size == 0 ? sizeof(std::uint64_t) : size;
  if (value.count > left() / smallest) {
    refuse("truncated: \"{}\" has {} elements, for which {} bytes are too few", key, value.count, left());
  }
  if (size > 0) {
    at_ += value.count * size;
  } else {
    for (std::uint64_t i = 0; i < value.count; ++i) text(key);
  }
  value.bytes = head_.subspan(begin, at_ - begin);
  return value;
}

void HeaderReader::read_key(std::uint64_t index) {
  const std::string_view key = text("a key");
  if (!is_plain_text(key) || key.size() > max_name_bytes) {
    refuse("key {} is not 1 to {} printable ASCII characters", index, max_name_bytes);
  }
  if (!header_.metadata.add(key, read_value(key))) refuse("key \"{}\" stands there twice", key);
}

std::vector<std::int64_t> HeaderReader::read_shape(std::string_view name) {
  const auto rank = number<std::uint32_t>(name);
  if (rank < 1 || rank > max_rank) {
    refuse("tensor \"{}\" has {} dimensions, expected 1 to {}", name, rank, max_rank);
  }
  std::vector<std::int64_t> shape(rank);
  std::int64_t product = 1;
  for (auto size = shape.rbegin(); size != shape.rend(); ++size) {  // the innermost comes first
    *size = number<std::int64_t>(name);
    if (*size < 1) refuse("tensor \"{}\" has a dimension of {}, expected 1 or more", name, *size);
    if (product > std::numeric_limits<std::int64_t>::max() / 512 / *size) refuse("tensor \"{}\" is too large", name);
    product *= *size;
  }
  return shape;
}

void HeaderReader::read_type(StoredTensor& tensor) {
  const auto id = number<std::uint32_t>(tensor.name);
  const auto* plain = std::ranges::find(plain_types, id, &PlainType::id);
  if (plain != std::end(plain_types)) {
    tensor.dtype = plain->dtype;
    return;
  }
  tensor.dtype = DType::u8;
  tensor.block_type = find_block_type(id);
  if (tensor.block_type == nullptr)
    refuse("tensor \"{}\" has the type {} of ggml, which is not supported", tensor.name, id);
  if (tensor.shape.back() % tensor.block_type->values != 0) {
    refuse("tensor \"{}\" has rows of {}, not a multiple of the {} values of a block of {}", tensor.name,
           tensor.shape.back(), tensor.block_type->values, tensor.block_type->name);
  }
}

void HeaderReader::read_tensor(std::uint64_t index) {
  const std::string_view name = text("a tensor's name");
  if (!is_plain_text(name) || name.size() > max_name_bytes) {
    refuse("the name of tensor {} is not 1 to {} printable ASCII characters", index, max_name_bytes);
  }
  if (!names_.insert(name).second) refuse("tensor \"{}\" stands there twice", name);
  FileTensor entry;
  entry.tensor.name = name;
  entry.tensor.source = what_;
  entry.tensor.shape = read_shape(name);
  read_type(entry.tensor);
  entry.begin = number<std::uint64_t>(name);  // of the data, until it is known where that begins
  header_.tensors.push_back(std::move(entry));
}

std::uint64_t HeaderReader::alignment() const {
  const std::int64_t found = header_.metadata.integer("general.alignment").value_or(default_alignment);
  const bool valid =
      found >= 8 && found <= (std::int64_t{1} << 31) && std::has_single_bit(static_cast<std::uint64_t>(found));
  if (!valid) refuse("\"general.alignment\" is {}, expected a power of two from 8 on", found);
  return static_cast<std::uint64_t>(found);
}

void HeaderReader::place_tensors() {
  const std::uint64_t unit = alignment();
  const std::uint64_t data_begin = (at_ + unit - 1) / unit * unit;
  for (FileTensor& entry : header_.tensors) {
    const std::uint64_t offset = entry.begin, size = entry.tensor.byte_size();
    if (offset % unit != 0) {
      refuse("tensor \"{}\" begins at offset {}, not a multiple of the alignment {}", entry.tensor.name, offset, unit);
    }
    const std::uint64_t data_size = file_size_ > data_begin ? file_size_ - data_begin : 0;
    if (offset > data_size || size > data_size - offset) {
      refuse("tensor \"{}\" of {} bytes at offset {} lies outside the file's {} bytes of data (truncated?)",
             entry.tensor.name, size, offset, data_size);
    }
    entry.begin = data_begin + offset;
    entry.end = entry.begin + size;
  }
}

void HeaderReader::check_overlaps() const {
  std::vector<const FileTensor*> sorted;
  for (const FileTensor& entry : header_.tensors) sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, &FileTensor::begin);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->begin < sorted[i - 1]->end) {
      refuse("tensors \"{}\" and \"{}\" overlap", sorted[i - 1]->tensor.name, sorted[i]->tensor.name);
    }
  }
}

GgufHeader HeaderReader::read() {
  read_version();
  const auto tensors = number<std::uint64_t>("the number of tensors");
  const auto keys = number<std::uint64_t>("the number of keys");
  if (tensors > max_tensors) refuse("claims {} tensors, more than the limit of {}", tensors, max_tensors);
  if (keys > max_keys) refuse("claims {} keys, more than the limit of {}", keys, max_keys);
  for (std::uint64_t i = 0; i < keys; ++i) read_key(i);
  for (std::uint64_t i = 0; i < tensors; ++i) read_tensor(i);
  place_tensors();
  check_overlaps();
  return std::move(header_);
}

}  // namespace

GgufHeader parse_gguf_header(std::span<const std::byte> head, std::uint64_t file_size, std::string_view what) {
  return HeaderReader(head, file_size, what).read();
}

std::uint32_t ggml_type_of(const StoredTensor& tensor) {
  if (tensor.block_type != nullptr) return tensor.block_type->id;
  const auto* plain = std::ranges::find(plain_types, tensor.dtype, &PlainType::dtype);
  if (plain != std::end(plain_types)) return plain->id;
  fail<Error>("tensor \"{}\" is {}, a type that GGUF files do not have", tensor.name, tensor.type_name());
}

}  // namespace sluice
