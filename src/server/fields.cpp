#include "server/fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "server/api_error.h"

namespace sluice {

namespace {
constexpr std::size_t longest_shown = 60;
constexpr std::size_t most_unknown = 32;

/// Cuts before a character that would be split.
std::string cut(std::string text) {
  if (text.size() <= longest_shown) return text;
  std::size_t end = longest_shown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

/// A whole number, also when it is written as 3.0.
std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr double exact = 9007199254740992.0;
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (std::trunc(number) != number || std::fabs(number) > exact) return std::nullopt;
  return static_cast<std::int64_t>(number);
}
}  // namespace

std::string element_path(const std::string& path, std::size_t index) { return fmt::format("{}[{}]", path, index); }

std::string shown(const Json& value) {
  // Containers are named rather than written out: they may be large.
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return Json(cut(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return cut(value.dump());
}

void fail_type(const std::string& path, std::string_view what, const Json& found) {
  fail_field(path, fmt::format("expected {}, found {}", what, shown(found)));
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (object.is_object()) return;
  if (path_.empty()) throw ApiError(400, "the body must be a JSON object, found " + shown(object));
  fail_type(path_, "an object", object);
}

const Json* Fields::find(std::string_view key) {
  asked_.emplace_back(key);
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> Fields::boolean(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail_type(path_of(key), "true or false", *value);
  return value->get<bool>();
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> number = whole_number(*value);
  if (!number || *number < low || *number > high) {
    const bool any = low == INT64_MIN && high == INT64_MAX;
    fail_type(path_of(key),
              any                 ? "an integer of 64 bits"
              : high == INT64_MAX ? fmt::format("an integer of {} or more", low)
                                  : fmt::format("an integer from {} to {}", low, high),
              *value);
  }
  return number;
}

std::optional<double> Fields::number(std::string_view key, double low, double high) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number() && value->get<double>() >= low && value->get<double>() <= high;
  if (!fits) fail_type(path_of(key), fmt::format("a number from {} to {}", low, high), *value);
  return value->get<double>();
}

std::optional<std::string> Fields::text(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail_type(path_of(key), "a string", *value);
  return value->get<std::string>();
}

std::optional<std::string> Fields::word(std::string_view key, const std::vector<std::string>& allowed) {
  const std::optional<std::string> word = text(key);
  if (word && std::find(allowed.begin(), allowed.end(), *word) == allowed.end()) {
    fail_type(path_of(key), fmt::format("one of \"{}\"", fmt::join(allowed, "\", \"")), *word);
  }
  return word;
}

const Json* Fields::object(std::string_view key) {
  const Json* value = find(key);
  if (value != nullptr && !value->is_object()) fail_type(path_of(key), "an object", *value);
  return value;
}

const Json* Fields::array(std::string_view key) {
  const Json* value = find(key);
  if (value != nullptr && !value->is_array()) fail_type(path_of(key), "an array", *value);
  return value;
}

const Json& Fields::required(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) fail_field(path_of(key), "this field is required");
  return *value;
}

std::string Fields::required_text(std::string_view key) {
  required(key);
  return *text(key);
}

const Json& Fields::required_array(std::string_view key) {
  required(key);
  return *array(key);
}

const Json& Fields::required_object(std::string_view key) {
  required(key);
  return *object(key);
}

void Fields::refuse(std::string_view key, std::string_view reason) {
  if (find(key) != nullptr) fail_field(path_of(key), fmt::format("not supported: {}", reason));
}

std::string Fields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_.items()) {
    if (names.size() == most_unknown) break;
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) names.push_back(key);
  }
  return names;
}

}  // namespace sluice
