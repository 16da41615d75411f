#pragma once
#include <string>
#include <string_view>

namespace sluice {

/// One kind of text of a reply (reasoning, or content) without the white space that only separates it from tags.
/// - Line breaks before the text are left out after strip_line_breaks().
/// - White space at the end is left out by drop_space(), where a tag closes the text.
/// - Around tool calls white space is kept once, and only where text stands on both sides.
/// What comes out, joined, does not depend on how the text is cut.
class ReplyText {
 public:
  void add(std::string_view text, std::string& out);
  void strip_line_breaks() { strip_ = true; }
  void drop_space();
  /// A tool call stands here.
  void call_follows();
  /// The end of the reply.
  void finish(std::string& out);

 private:
  void release(std::string& out);

  std::string space_;   // white space that may turn out to be a separator
  bool began_ = false;  // something came out
  bool strip_ = false;
  bool after_call_ = false;  // nothing but white space since a call
  bool space_kept_ = false;  // space_ stands before that call; what follows the call adds none
};

}  // namespace sluice
