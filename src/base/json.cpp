#include "base/json.h"

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice {

namespace {

constexpr size_t max_depth = 128;
constexpr size_t small_object = 16;

/// Builds the value while the text is read. Keys of large objects are hashed: Json itself compares each new key
/// with all before it, which would let a long object take quadratic time.
class Builder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(size_t /*size*/) override { return open(Json::object()); }
  bool start_array(size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    auto& entries = level.value.get_ref<Json::object_t&>();
    const auto [place, is_new] = find_or_count(level, entries, name);
    if (is_new) entries.emplace_back(std::move(name), Json());
    level.place = place;
    return true;
  }

  bool parse_error(size_t /*position*/, const std::string& /*token*/, const Json::exception& error) override {
    error_ = error.what();
    return false;
  }

  bool too_deep() const { return too_deep_; }
  const std::string& error() const { return error_; }
  Json take() { return std::move(result_); }

 private:
  struct Level {
    Json value;
    size_t place = 0;                                // of an object's entry that waits for its value
    std::unordered_map<std::string, size_t> places;  // of a large object's keys
  };

  template <class Entries>
  static auto& entry_at(Entries& entries, size_t place) {
    return *(entries.begin() + static_cast<std::ptrdiff_t>(place));
  }

  static std::pair<size_t, bool> find_or_count(Level& level, const Json::object_t& entries, const std::string& name) {
    if (entries.size() < small_object) {
      for (size_t i = 0; i < entries.size(); ++i)
        if (entry_at(entries, i).first == name) return {i, false};
      return {entries.size(), true};
    }
    if (level.places.empty())
      for (size_t i = 0; i < entries.size(); ++i) level.places.emplace(entry_at(entries, i).first, i);
    const auto [found, is_new] = level.places.emplace(name, entries.size());
    return {found->second, is_new};
  }

  bool add(Json value) {
    if (levels_.empty()) {
      result_ = std::move(value);
      return true;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.get_ref<Json::array_t&>().push_back(std::move(value));
    } else {
      entry_at(level.value.get_ref<Json::object_t&>(), level.place).second = std::move(value);
    }
    return true;
  }

  bool open(Json value) {
    too_deep_ = levels_.size() >= max_depth;
    if (!too_deep_) levels_.push_back({std::move(value), 0, {}});
    return !too_deep_;
  }

  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(value));
  }

  std::vector<Level> levels_;
  Json result_;
  std::string error_;
  bool too_deep_ = false;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view what) {
  // To nlohmann's parser a NUL byte is the end of the text.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    fail<LoadError>("{}: not valid JSON: a NUL byte at offset {}", what, nul);
  }
  Builder builder;
  if (Json::sax_parse(text, &builder)) return builder.take();
  if (builder.too_deep()) fail<LoadError>("{}: JSON nested deeper than {} levels", what, max_depth);
  fail<LoadError>("{}: not valid JSON: {}", what, builder.error());
}

}  // namespace sluice
