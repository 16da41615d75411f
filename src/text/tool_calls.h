#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tool_calls_schema.h"

namespace sluice {

/// Whether something stands at the front of a text that is still growing.
enum class Found { no, unknown_yet, yes };

/// Whether text begins with a tag, or may once it is longer.
Found find_tag(std::string_view text, std::string_view tag);

/// What a ToolCallReader finds.
class ToolCallEvents {
 public:
  virtual ~ToolCallEvents() = default;
  virtual void begin_call(const std::string& name) = 0;
  /// More of the JSON text of the call's arguments.
  virtual void add_arguments(std::string_view json) = 0;
};

/// Reads the family's tool calls from a stream of text:
///
///     <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n...</function>\n</tool_call>
///
/// Values are not escaped, so what ends one is decided by what follows:
/// - </parameter> if the next thing after white space is another tag of the format or the end of the reply;
/// - a missing </parameter> is noticed at <parameter=KEY>, where KEY is a declared parameter not given yet (any key at
///   the beginning of a line for functions that declare none), at </function> before the end of the call, and at
///   </tool_call> before another call or the end of the reply.
/// Everything else is part of the value, of which one line break at each side is left out.
/// A <function=NAME> without <tool_call> is a call if NAME is declared. Of parameters given twice the first counts.
class ToolCallReader {
 public:
  ToolCallReader(const Json& tools, ToolCallEvents& events)
      : schemas_(tools), enabled_(tools.is_array() && !tools.empty()), events_(events) {}
  /// Without tools there are no calls.
  bool enabled() const { return enabled_; }
  /// Inside a call, or between the calls of one <tool_call>.
  bool inside() const { return place_ != Place::outside; }
  /// Whether a call opens at the front of text (which begins with "<").
  Found find_call(std::string_view text) const;
  /// Opens the call that find_call found; returns the bytes that its tags take.
  std::size_t open_call(std::string_view text);
  /// Reads on inside a call; returns the bytes used. Those left are needed again, with more after them.
  /// ends: nothing follows the text.
  std::size_t read(std::string_view text, bool ends);
  /// The reply is over, and read() has seen the last text.
  void finish();

 private:
  enum class Place { outside, between_functions, in_function, in_value };
  struct Header {
    Found found = Found::no;
    std::size_t length = 0;
    std::string name;
  };
  static Header read_header(std::string_view text, std::string_view tag);
  Header read_opening(std::string_view text) const;
  std::size_t read_between_functions(std::string_view text);
  std::size_t read_in_function(std::string_view text, bool ends);
  std::size_t read_in_value(std::string_view text, bool ends);
  Found ends_value(std::string_view text, bool ends) const;
  Found is_next_parameter(std::string_view text) const;
  void begin_function(const std::string& name);
  void begin_value(const std::string& key);
  void add_value(std::string_view text);
  void pass_on(std::string_view text);
  void end_value(bool closed);
  void end_function();
  void write_key();

  ToolSchemas schemas_;
  bool enabled_;
  ToolCallEvents& events_;
  Place place_ = Place::outside;
  bool in_tool_call_ = false;  // a </tool_call> is due
  std::string function_, key_;
  std::vector<std::string> given_;  // keys so far
  ParameterType type_;
  bool any_written_ = false;      // arguments have a member already
  bool ignored_ = false;          // the value of a key that was given before
  bool value_begun_ = false;      // past the first byte, which is left out if it is a line break
  bool held_line_break_ = false;  // the value's last byte so far, left out if it stays the last
  bool at_line_start_ = false;    // nothing of this line of the value was read yet
  std::string value_;             // of a value that is not passed on as it comes
};

}  // namespace sluice
