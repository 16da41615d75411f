#include <cstring>
#include <limits>

#include "base/error.h"
#include "weights/gguf_header.h"

namespace sluice {

namespace {

/// Vocabularies are the longest arrays.
constexpr std::uint64_t max_elements = 1 << 24;

constexpr std::string_view type_names[] = {"uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
                                           "bool",  "string", "array",  "uint64", "int64",  "float64"};

template <class T>
T read_at(const GgufValue& value, std::size_t index) {
  T number;
  std::memcpy(&number, value.bytes.data() + index * sizeof number, sizeof number);
  return number;
}

/// None where the type is no integer, or the value is over 2^63 - 1.
std::optional<std::int64_t> integer_at(const GgufValue& value, std::size_t index) {
  switch (value.type) {
    case GgufType::u8:
    case GgufType::boolean: return read_at<std::uint8_t>(value, index);
    case GgufType::i8: return read_at<std::int8_t>(value, index);
    case GgufType::u16: return read_at<std::uint16_t>(value, index);
    case GgufType::i16: return read_at<std::int16_t>(value, index);
    case GgufType::u32: return read_at<std::uint32_t>(value, index);
    case GgufType::i32: return read_at<std::int32_t>(value, index);
    case GgufType::i64: return read_at<std::int64_t>(value, index);
    case GgufType::u64: {
      const auto wide = read_at<std::uint64_t>(value, index);
      if (wide > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(wide);
    }
    default: return std::nullopt;
  }
}

}  // namespace

bool GgufMetadata::add(std::string_view key, const GgufValue& value) { return values_.emplace(key, value).second; }

bool GgufMetadata::is_array(std::string_view key) const {
  const auto found = values_.find(key);
  return found != values_.end() && found->second.is_array;
}

void GgufMetadata::wrong_type(std::string_view key, const GgufValue& value, std::string_view expected) const {
  fail<LoadError>("{}: \"{}\" is {}{}, expected {}", source_, key, value.is_array ? "an array of " : "",
                  type_names[static_cast<std::size_t>(value.type)], expected);
}

const GgufValue* GgufMetadata::find(std::string_view key, bool array) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return nullptr;
  if (found->second.is_array != array) wrong_type(key, found->second, array ? "an array" : "a single value");
  if (found->second.count > max_elements) {
    fail<LoadError>("{}: \"{}\" has {} elements, more than the limit of {}", source_, key, found->second.count,
                    max_elements);
  }
  return &found->second;
}

std::optional<std::int64_t> GgufMetadata::integer(std::string_view key) const {
  const GgufValue* value = find(key, false);
  if (value == nullptr) return std::nullopt;
  const auto number = value->type == GgufType::boolean ? std::nullopt : integer_at(*value, 0);
  if (!number) wrong_type(key, *value, "an integer below 2^63");
  return number;
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const GgufValue* value = find(key, false);
  if (value == nullptr) return std::nullopt;
  if (value->type == GgufType::f32) return static_cast<double>(read_at<float>(*value, 0));
  if (value->type == GgufType::f64) return read_at<double>(*value, 0);
  const auto whole = value->type == GgufType::boolean ? std::nullopt : integer_at(*value, 0);
  if (!whole) wrong_type(key, *value, "a number");
  return static_cast<double>(*whole);
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* value = find(key, false);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::boolean) wrong_type(key, *value, "a bool");
  return read_at<std::uint8_t>(*value, 0) != 0;
}

std::optional<std::string_view> GgufMetadata::string(std::string_view key) const {
  const GgufValue* value = find(key, false);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::string) wrong_type(key, *value, "a string");
  const auto text = value->bytes.subspan(sizeof(std::uint64_t));
  return std::string_view(reinterpret_cast<const char*>(text.data()), text.size());
}

std::optional<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) const {
  const GgufValue* value = find(key, true);
  if (value == nullptr) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < value->count; ++i) {
    const auto number = integer_at(*value, i);
    if (!number) wrong_type(key, *value, "integers below 2^63");
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
  const GgufValue* value = find(key, true);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::string) wrong_type(key, *value, "strings");
  std::vector<std::string_view> texts;
  texts.reserve(value->count);
  auto rest = value->bytes;
  for (std::size_t i = 0; i < value->count; ++i) {
    std::uint64_t size = 0;
    std::memcpy(&size, rest.data(), sizeof size);
    const auto text = rest.subspan(sizeof size, size);
    texts.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    rest = rest.subspan(sizeof size + size);
  }
  return texts;
}

}  // namespace sluice
