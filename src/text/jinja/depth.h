#pragma once
#include "text/jinja/budget.h"

namespace sluice::jinja {

/// One level of nested evaluation; refuses too many before the machine's stack ends.
class Depth {
 public:
  explicit Depth(int& depth) : depth_(depth) {
    if (depth_ >= max_evaluation_depth)
      render_error("the template nests deeper than {} levels while it runs", max_evaluation_depth);
    ++depth_;
  }
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  int& depth_;
};

}  // namespace sluice::jinja
