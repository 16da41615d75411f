#include "text/jinja/functions.h"

#include <array>
#include <ctime>
#include <functional>

#include "base/error.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/signature.h"

namespace sluice::jinja {

namespace {

class Function : public Object {
 public:
  using Run = std::function<Value(Budget&, const Arguments&)>;
  Function(std::string name, Run run) : name_(std::move(name)), run_(std::move(run)) {}
  std::string type_name() const override { return "function"; }
  std::string repr() const override { return fmt::format("<function {}>", name_); }
  bool is_callable() const override { return true; }
  Value call(Budget& budget, const Arguments& arguments) override { return run_(budget, arguments); }

 private:
  std::string name_;
  Run run_;
};

Value range(Budget& budget, const Arguments& arguments) {
  const Bound bound("range", "start stop? step?", arguments);
  const int64_t first = bound.integer(0, 0);
  if (bound.get(1) == nullptr) return make_range(budget, 0, first, 1);
  return make_range(budget, first, bound.integer(1, 0), bound.integer(2, 1));
}

/// Python's dict(mapping or pairs, **more).
Dict make_dict(Budget& budget, const Arguments& arguments, std::string_view function) {
  if (arguments.positional.size() > 1) render_error("{} expected at most 1 argument", function);
  Dict made;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is_dict()) {
      budget.allocate_items(source.as_dict().entries().size() * 3);
      made = source.as_dict();
    } else {
      const SequencePtr pairs = iterate(budget, source);
      budget.allocate_items(pairs->items.size() * 3);
      for (const Value& pair : pairs->items) {
        const SequencePtr parts = iterate(budget, pair);
        if (parts->items.size() != 2) render_error("dictionary update sequence elements must have length 2");
        budget.spend(parts->items[0].weight());
        made.set(parts->items[0], parts->items[1]);
      }
    }
  }
  budget.allocate_items(arguments.keyword.size() * 3);
  for (const auto& [name, value] : arguments.keyword) made.set(Value::text(name), value);
  return made;
}

Value raise_exception(Budget& budget, const Arguments& arguments) {
  const Bound bound("raise_exception", "message", arguments);
  throw RequestError(to_string(budget, bound.value(0)));
}

/// The local date and time, as HF's chat templates ask for it.
Value strftime_now(Budget& budget, const Arguments& arguments) {
  const Bound bound("strftime_now", "format", arguments);
  const std::string format(bound.text(0, {}));
  if (format.size() > 1000) render_error("strftime_now: the format is too long");
  if (format.empty()) return Value::text({});
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 20'000> text{};
  // The space behind makes an empty result differ from one that does not fit.
  const size_t size = std::strftime(text.data(), text.size(), (format + " ").c_str(), &local);
  if (size == 0) render_error("strftime_now: the result is too long");
  return new_text(budget, std::string(text.data(), size - 1));
}

}  // namespace

std::vector<std::pair<std::string, Value>> global_functions(std::vector<std::shared_ptr<Namespace>>& namespaces) {
  const auto make_namespace = [&namespaces](Budget& budget, const Arguments& arguments) {
    budget.allocate(512);
    auto made = std::make_shared<Namespace>(make_dict(budget, arguments, "namespace"));
    namespaces.push_back(made);
    return Value::object(std::move(made));
  };
  const auto dict = [](Budget& budget, const Arguments& arguments) {
    return Value::dict(make_dict(budget, arguments, "dict"));
  };
  std::vector<std::pair<std::string, Value>> functions;
  const auto add = [&](const std::string& name, Function::Run run) {
    functions.emplace_back(name, Value::object(std::make_shared<Function>(name, std::move(run))));
  };
  add("range", range);
  add("dict", dict);
  add("namespace", make_namespace);
  add("raise_exception", raise_exception);
  add("strftime_now", strftime_now);
  return functions;
}

}  // namespace sluice::jinja
