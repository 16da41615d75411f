#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace sluice {

/// Typed look-ups in one object of a config.json; errors name the field by its path.
class ConfigFields {
 public:
  /// `path` is empty for the top level.
  ConfigFields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) fail<LoadError>("config.json: {} is not an object", path_.empty() ? "it" : path_);
  }
  std::string name_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  /// Null when absent or null.
  const Json* find(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<std::int64_t> integer(const std::string& key, std::int64_t low, std::int64_t high) const;
  std::int64_t required(const std::string& key, std::int64_t low, std::int64_t high) const;
  std::optional<double> number(const std::string& key, double low, double high) const;
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& key, std::int64_t low, std::int64_t high) const;

  template <class... Args>
  [[noreturn]] void bad(const std::string& key, fmt::format_string<Args...> format, Args&&... args) const {
    fail<LoadError>("config.json: {} {}", name_of(key), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const Json& object_;
  std::string path_;
};

}  // namespace sluice
