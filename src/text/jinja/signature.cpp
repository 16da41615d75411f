#include "text/jinja/signature.h"

#include <algorithm>

namespace sluice::jinja {

namespace {

struct Parameter {
  std::string_view name;
  bool optional;
};

std::vector<Parameter> split_parameters(std::string_view text) {
  std::vector<Parameter> parameters;
  while (!text.empty()) {
    std::string_view name = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    parameters.push_back({name, optional});
  }
  return parameters;
}

}  // namespace

Bound::Bound(std::string_view function, std::string_view parameters, const Arguments& arguments)
    : function_(function), arguments_(arguments) {
  if (parameters == "*") return;
  const auto known = split_parameters(parameters);
  values_.resize(known.size());
  if (arguments.positional.size() > known.size())
    render_error("{}() takes at most {} arguments, {} given", function, known.size(), arguments.positional.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.keyword) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Parameter& row) { return row.name == name; });
    if (found == known.end()) render_error("{}() got an unexpected keyword argument '{}'", function, name);
    const Value*& place = values_[static_cast<size_t>(found - known.begin())];
    if (place != nullptr) render_error("{}() got multiple values for argument '{}'", function, name);
    place = &value;
  }
  for (size_t i = 0; i < known.size(); ++i)
    if (values_[i] == nullptr && !known[i].optional)
      render_error("{}() is missing the argument '{}'", function, known[i].name);
}

const Value* Bound::given(size_t parameter) const {
  const Value* value = values_[parameter];
  return value == nullptr || value->is_none() ? nullptr : value;
}

int64_t Bound::integer(size_t parameter, int64_t fallback) const {
  const Value* value = values_[parameter];
  if (value == nullptr) return fallback;
  if (!value->is_integral()) render_error("{}(): an integer is needed, not '{}'", function_, value->type_name());
  return value->as_integer();
}

bool Bound::truth(size_t parameter, bool fallback) const {
  return values_[parameter] == nullptr ? fallback : values_[parameter]->truthy();
}

std::string_view Bound::text(size_t parameter, std::string_view fallback) const {
  const Value* value = values_[parameter];
  if (value == nullptr) return fallback;
  if (!value->is_string()) render_error("{}(): a string is needed, not '{}'", function_, value->type_name());
  return value->as_string();
}

}  // namespace sluice::jinja
