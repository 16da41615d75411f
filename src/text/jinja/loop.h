#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

/// The variable "loop". Items are tested by the loop's condition only when they are reached, as jinja2 does.
class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  using Condition = std::function<bool(const Value&)>;  // empty: every item counts
  Loop(SequencePtr items, Condition condition) : items_(std::move(items)), condition_(std::move(condition)) {}

  /// Moves to the next item; false at the end.
  bool advance();
  const Value& current() const { return current_; }
  /// Forgets the items and the condition, which refers to a running evaluation.
  void finish();

  std::string type_name() const override { return "LoopContext"; }
  std::string repr() const override { return "<LoopContext>"; }
  std::optional<Value> attribute(const std::string& name) override;
  Value call(Budget& budget, const Arguments& arguments) override;
  bool is_callable() const override { return true; }
  bool is_storable() const override { return false; }

  Value cycle(const Arguments& arguments) const;
  bool changed(Budget& budget, const Arguments& arguments);

 private:
  const std::optional<Value>& peek();
  int64_t length();

  SequencePtr items_;
  Condition condition_;
  size_t next_ = 0;  // the first item not yet looked at
  std::optional<Value> after_;
  Value current_, before_;
  int64_t index_ = -1;
  std::optional<int64_t> length_;
  std::optional<std::vector<Value>> last_changed_;
  bool finished_ = false;
};

/// Python's call of a bound method of `loop`.
class LoopMethod : public Object {
 public:
  enum class Kind { cycle, changed };
  LoopMethod(std::shared_ptr<Loop> loop, Kind kind) : loop_(std::move(loop)), kind_(kind) {}
  std::string type_name() const override { return "method"; }
  std::string repr() const override { return "<bound method of LoopContext>"; }
  bool is_callable() const override { return true; }
  bool is_storable() const override { return false; }
  Value call(Budget& budget, const Arguments& arguments) override;

 private:
  std::shared_ptr<Loop> loop_;
  Kind kind_;
};

}  // namespace sluice::jinja
