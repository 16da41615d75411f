#include "models/config_fields.h"

#include <cmath>

namespace sluice {

std::optional<std::int64_t> ConfigFields::integer(const std::string& key, std::int64_t low, std::int64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) bad(key, "is {}, expected a whole number", value->dump());
  const bool too_large = value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(high);
  if (too_large || value->get<std::int64_t>() < low) bad(key, "is {}, expected {} to {}", value->dump(), low, high);
  return value->get<std::int64_t>();
}

std::int64_t ConfigFields::required(const std::string& key, std::int64_t low, std::int64_t high) const {
  const auto value = integer(key, low, high);
  if (!value) bad(key, "is missing");
  return *value;
}

std::optional<double> ConfigFields::number(const std::string& key, double low, double high) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) bad(key, "is {}, expected a number", value->dump());
  const auto number = value->get<double>();
  if (!std::isfinite(number) || number < low || number > high) {
    bad(key, "is {}, expected {} to {}", value->dump(), low, high);
  }
  return number;
}

std::optional<bool> ConfigFields::boolean(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) bad(key, "is {}, expected true or false", value->dump());
  return value->get<bool>();
}

std::optional<std::string> ConfigFields::text(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) bad(key, "is {}, expected a string", value->dump());
  return value->get<std::string>();
}

std::optional<std::vector<std::int64_t>> ConfigFields::integers(const std::string& key, std::int64_t low,
                                                                std::int64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) bad(key, "is {}, expected a list", value->dump());
  std::vector<std::int64_t> numbers;
  for (const Json& item : *value) {
    if (!item.is_number_integer() || item.get<std::int64_t>() < low || item.get<std::int64_t>() > high) {
      bad(key, "holds {}, expected whole numbers from {} to {}", item.dump(), low, high);
    }
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

}  // namespace sluice
