#include "text/jinja/loop.h"

#include "text/jinja/operators.h"

namespace sluice::jinja {

const std::optional<Value>& Loop::peek() {
  while (!after_ && items_ && next_ < items_->items.size()) {
    const Value& item = items_->items[next_++];
    if (!condition_ || condition_(item)) after_ = item;
  }
  return after_;
}

bool Loop::advance() {
  if (!peek()) return false;
  before_ = std::exchange(current_, std::move(*after_));
  after_.reset();
  ++index_;
  return true;
}

void Loop::finish() {
  finished_ = true;
  if (!condition_) length_ = length();
  items_ = nullptr;
  condition_ = nullptr;
  last_changed_.reset();
}

int64_t Loop::length() {
  if (length_) return *length_;
  int64_t count = index_ + 1 + (after_ ? 1 : 0);
  if (condition_ && items_ && !finished_) {  // the rest is tested now, once
    Sequence rest;
    for (; next_ < items_->items.size(); ++next_)
      if (condition_(items_->items[next_])) rest.items.push_back(items_->items[next_]);
    items_ = Value::sequence(std::move(rest)).as_sequence();
    next_ = 0;
    condition_ = nullptr;
  }
  if (items_) count += static_cast<int64_t>(items_->items.size() - next_);
  length_ = count;
  return count;
}

std::optional<Value> Loop::attribute(const std::string& name) {
  if (name == "index") return Value::integer(index_ + 1);
  if (name == "index0") return Value::integer(index_);
  if (name == "first") return Value::boolean(index_ == 0);
  if (name == "last") return Value::boolean(!peek());
  if (name == "length") return Value::integer(length());
  if (name == "revindex") return Value::integer(length() - index_);
  if (name == "revindex0") return Value::integer(length() - index_ - 1);
  if (name == "previtem") return index_ == 0 ? Value::undefined("there is no previous item") : before_;
  if (name == "nextitem") return peek().value_or(Value::undefined("there is no next item"));
  if (name == "depth") return Value::integer(1);
  if (name == "depth0") return Value::integer(0);
  const bool is_cycle = name == "cycle";
  if (!is_cycle && name != "changed") return std::nullopt;
  auto method =
      std::make_shared<LoopMethod>(shared_from_this(), is_cycle ? LoopMethod::Kind::cycle : LoopMethod::Kind::changed);
  return Value::object(std::move(method));
}

Value Loop::call(Budget& /*budget*/, const Arguments& /*arguments*/) {
  render_error("The loop must have the 'recursive' marker to be called recursively.");
}

Value Loop::cycle(const Arguments& arguments) const {
  const auto& items = arguments.positional;
  if (items.empty()) render_error("no items for cycling given");
  return items[static_cast<size_t>(index_) % items.size()];
}

bool Loop::changed(Budget& budget, const Arguments& arguments) {
  const auto& values = arguments.positional;
  bool same = last_changed_ && last_changed_->size() == values.size();
  for (size_t i = 0; same && i < values.size(); ++i) same = equal(budget, values[i], (*last_changed_)[i]);
  for (const Value& value : values)
    if (value.is_object() && !value.as_object()->is_storable())
      render_error("a {} cannot be kept in a loop", value.type_name());
  if (!same && !finished_) last_changed_ = values;
  return !same;
}

Value LoopMethod::call(Budget& budget, const Arguments& arguments) {
  if (kind_ == Kind::cycle) return loop_->cycle(arguments);
  return Value::boolean(loop_->changed(budget, arguments));
}

}  // namespace sluice::jinja
