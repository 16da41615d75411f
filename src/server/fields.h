#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice {

/// One object of a request body, read strictly: a field of a wrong type or out of range is a 400 that names it by its
/// path and shows what was found. A null is an absent field. The object must outlive this.
class Fields {
 public:
  /// path: of the object itself, "" for the body. Throws ApiError if `object` is none.
  explicit Fields(const Json& object, std::string path = "");

  /// Present and not null.
  bool has(std::string_view key) { return find(key) != nullptr; }
  /// The field as it is, or null.
  const Json* find(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view key, double low, double high);
  std::optional<std::string> text(std::string_view key);
  /// One of some words.
  std::optional<std::string> word(std::string_view key, const std::vector<std::string>& allowed);
  const Json* object(std::string_view key);
  const Json* array(std::string_view key);
  /// The same for fields that must be there.
  std::string required_text(std::string_view key);
  const Json& required_array(std::string_view key);
  const Json& required_object(std::string_view key);

  /// A 400 that names the field, if it is there.
  void refuse(std::string_view key, std::string_view reason);
  /// Known, but of no effect here.
  void ignore(std::string_view key) { find(key); }
  /// "PATH.KEY", or the key alone in the body.
  std::string path_of(std::string_view key) const;
  /// Names of fields that nobody asked for so far; the first of them, if there are many.
  std::vector<std::string> unknown() const;

 private:
  const Json& required(std::string_view key);

  const Json& object_;
  std::string path_;
  std::vector<std::string> asked_;
};

/// "PATH[INDEX]": the path of a list's element.
std::string element_path(const std::string& path, std::size_t index);
/// What stands in an error for a value that was found: its JSON text, cut to 60 bytes.
std::string shown(const Json& value);

/// A 400: "PATH: expected WHAT, found VALUE".
[[noreturn]] void fail_type(const std::string& path, std::string_view what, const Json& found);

}  // namespace sluice
