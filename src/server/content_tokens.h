#pragma once
#include <string>
#include <string_view>

#include "server/reply.h"

namespace sluice {

/// Tells the tokens of a reply's content from those of its reasoning, its tool calls and the tags between them.
class ContentTokens {
 public:
  /// after_reasoning: the content begins after a </think>.
  explicit ContentTokens(bool after_reasoning) : place_(after_reasoning ? Place::before : Place::inside) {}

  /// Of each token in order: whether it belongs to the content.
  bool takes(const ReportedToken& token) {
    if (place_ == Place::inside && token.bytes == "<tool_call>") place_ = Place::after;
    const bool taken = place_ == Place::inside;
    if (place_ == Place::before && token.bytes == "</think>") place_ = Place::inside;
    return taken;
  }

 private:
  enum class Place : unsigned char { before, inside, after };
  Place place_;
};

}  // namespace sluice
