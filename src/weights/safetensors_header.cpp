#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>

#include <simdjson.h>

#include "base/error.h"
#include "weights/safetensors.h"

namespace sluice {

namespace {

constexpr std::uint64_t max_header_bytes = std::uint64_t{100} << 20;
constexpr std::size_t max_rank = 8;

struct NamedType {
  std::string_view name;
  DType dtype;
};
constexpr NamedType types[] = {
    {"F64", DType::f64},         {"F32", DType::f32},         {"F16", DType::f16},         {"BF16", DType::bf16},
    {"F8_E4M3", DType::f8_e4m3}, {"F8_E5M2", DType::f8_e5m2}, {"F8_E8M0", DType::f8_e8m0}, {"I64", DType::i64},
    {"I32", DType::i32},         {"I16", DType::i16},         {"I8", DType::i8},           {"U64", DType::u64},
    {"U32", DType::u32},         {"U16", DType::u16},         {"U8", DType::u8},           {"BOOL", DType::boolean},
};

/// A position in a header, for errors.
struct Where {
  std::string_view file, tensor;
};

template <class... Args>
[[noreturn]] void bad(const Where& where, fmt::format_string<Args...> format, Args&&... args) {
  fail<LoadError>("{}: tensor \"{}\": {}", where.file, where.tensor, fmt::format(format, std::forward<Args>(args)...));
}

DType read_dtype(const simdjson::dom::element& value, const Where& where) {
  std::string_view name;
  if (value.get_string().get(name) != simdjson::SUCCESS) bad(where, "\"dtype\" is missing or not a string");
  for (const NamedType& type : types) {
    if (type.name == name) return type.dtype;
  }
  bad(where, "dtype \"{}\" is not known", name);
}

std::vector<std::int64_t> read_shape(const simdjson::dom::element& value, const Where& where) {
  simdjson::dom::array sizes;
  if (value.get_array().get(sizes) != simdjson::SUCCESS) bad(where, "\"shape\" is missing or not an array");
  std::vector<std::int64_t> shape;
  std::int64_t product = 1;
  for (const auto size_value : sizes) {
    std::int64_t size = 0;
    if (size_value.get_int64().get(size) != simdjson::SUCCESS || size < 0) {
      bad(where, "\"shape\" holds something other than sizes");
    }
    if (size > 0 && product > std::numeric_limits<std::int64_t>::max() / 16 / size)
      bad(where, "\"shape\" is too large");
    product *= size;
    shape.push_back(size);
    if (shape.size() > max_rank) bad(where, "more than {} dimensions", max_rank);
  }
  return shape;
}

std::pair<std::uint64_t, std::uint64_t> read_offsets(const simdjson::dom::element& value, const Where& where) {
  simdjson::dom::array pair;
  std::uint64_t begin = 0, end = 0;
  if (value.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
      pair.at(0).get_uint64().get(begin) != simdjson::SUCCESS ||
      pair.at(1).get_uint64().get(end) != simdjson::SUCCESS) {
    bad(where, "\"data_offsets\" is missing or not two sizes");
  }
  return {begin, end};
}

simdjson::dom::element field(const simdjson::dom::element& entry, const char* key, const Where& where) {
  simdjson::dom::element value;
  if (entry[key].get(value) != simdjson::SUCCESS) bad(where, "\"{}\" is missing", key);
  return value;
}

FileTensor read_entry(std::string_view name, const simdjson::dom::element& value, std::uint64_t data_begin,
                      std::uint64_t data_size, std::string_view file) {
  const Where where{file, name};
  if (!value.is_object()) bad(where, "is not an object");
  FileTensor entry;
  entry.tensor.name = name;
  entry.tensor.source = file;
  entry.tensor.dtype = read_dtype(field(value, "dtype", where), where);
  entry.tensor.shape = read_shape(field(value, "shape", where), where);
  const auto [begin, end] = read_offsets(field(value, "data_offsets", where), where);
  if (begin > end || end > data_size) {
    bad(where, "bytes {} to {} lie outside the file's {} bytes of data (truncated?)", begin, end, data_size);
  }
  if (end - begin != entry.tensor.byte_size()) {
    bad(where, "{} {} needs {} bytes, the file gives {}", name_of(entry.tensor.dtype), entry.tensor.shape_text(),
        entry.tensor.byte_size(), end - begin);
  }
  entry.begin = data_begin + begin;
  entry.end = data_begin + end;
  return entry;
}

void check_coverage(std::vector<FileTensor>& entries, std::uint64_t data_begin, std::uint64_t file_size,
                    std::string_view file) {
  std::sort(entries.begin(), entries.end(), [](const FileTensor& a, const FileTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t expected = data_begin;
  const FileTensor* previous = nullptr;
  for (const FileTensor& entry : entries) {
    if (entry.begin < expected) {
      fail<LoadError>("{}: tensors \"{}\" and \"{}\" overlap", file, previous->tensor.name, entry.tensor.name);
    }
    if (entry.begin > expected) {
      fail<LoadError>("{}: {} bytes before tensor \"{}\" belong to no tensor", file, entry.begin - expected,
                      entry.tensor.name);
    }
    expected = entry.end;
    previous = &entry;
  }
  if (expected != file_size) {
    fail<LoadError>("{}: {} bytes behind the last tensor belong to no tensor", file, file_size - expected);
  }
}

}  // namespace

std::vector<FileTensor> parse_safetensors_header(std::span<const std::byte> head, std::uint64_t file_size,
                                                 std::string_view what) {
  std::uint64_t header_size = 0;
  if (file_size < 8 || head.size() < 8) fail<LoadError>("{}: {} bytes, too short for safetensors", what, file_size);
  std::memcpy(&header_size, head.data(), 8);
  if (header_size > max_header_bytes) {
    fail<LoadError>("{}: header of {} bytes, more than the limit of {}: not a safetensors file?", what, header_size,
                    max_header_bytes);
  }
  if (header_size > file_size - 8 || header_size > head.size() - 8) {
    fail<LoadError>("{}: truncated: header of {} bytes in a file of {}", what, header_size, file_size);
  }
  const std::uint64_t data_begin = 8 + header_size;

  simdjson::dom::parser parser;
  simdjson::dom::object header;
  const simdjson::padded_string text(reinterpret_cast<const char*>(head.data()) + 8, header_size);
  const auto error = parser.parse(text).get_object().get(header);
  if (error != simdjson::SUCCESS) {
    fail<LoadError>("{}: header is not a JSON object: {}", what, simdjson::error_message(error));
  }
  std::vector<FileTensor> entries;
  std::unordered_set<std::string> seen;
  for (const auto [name, value] : header) {
    if (!seen.emplace(name).second) fail<LoadError>("{}: tensor \"{}\" stands there twice", what, name);
    if (name == "__metadata__") continue;
    entries.push_back(read_entry(name, value, data_begin, file_size - data_begin, what));
  }
  check_coverage(entries, data_begin, file_size, what);
  return entries;
}

}  // namespace sluice
