#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

/// A call's arguments, matched to the parameters of a built-in function.
class Bound {
 public:
  /// parameters: names in order, "?" behind the optional ones ("old new count?"), or "*" for a function that reads
  /// all() itself. Throws RenderError for missing, unknown and repeated arguments.
  Bound(std::string_view function, std::string_view parameters, const Arguments& arguments);

  /// The argument, or null when it was not given.
  const Value* get(size_t parameter) const { return values_[parameter]; }
  /// As get, but None counts as not given.
  const Value* given(size_t parameter) const;
  const Value& value(size_t parameter) const { return *values_[parameter]; }
  int64_t integer(size_t parameter, int64_t fallback) const;
  bool truth(size_t parameter, bool fallback) const;
  /// Must be a string.
  std::string_view text(size_t parameter, std::string_view fallback) const;
  const Arguments& all() const { return arguments_; }
  std::string_view function() const { return function_; }

 private:
  std::string_view function_;
  const Arguments& arguments_;
  std::vector<const Value*> values_;
};

}  // namespace sluice::jinja
