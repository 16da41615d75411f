#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/request.h"
#include "text/detokenizer.h"

namespace sluice {

/// A StopCheck over text: true at the token that completes one of the strings. Finds them across token
/// borders and inside one token. No string may be empty (RequestError).
std::unique_ptr<StopCheck> make_stop_strings(std::shared_ptr<const Tokenizer> tokenizer,
                                             std::vector<std::string> strings);

/// Holds text back while it may be the beginning of a stop string, and cuts it off at one.
class StopCutter {
 public:
  explicit StopCutter(std::vector<std::string> strings);
  /// The text that can be shown; nothing more once a stop string was found.
  std::string add(std::string_view text);
  /// Text held back that turned out to be no stop string.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace sluice
