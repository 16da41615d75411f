#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/reply.h"

namespace sluice {

/// A reply as a row of parts.
struct ReplyPart {
  enum class Kind : unsigned char { reasoning, text, tool_call };
  Kind kind = Kind::text;
  std::string text;        // of a call: its arguments, a JSON object
  std::string call, name;  // of a call: id ("call_...") and function
};

/// The parts of a whole reply: reasoning, text, calls; none that is empty.
std::vector<ReplyPart> parts_of(const Reply& reply);

/// Base of the writers whose streams show one part after the other, each opened, extended and closed before the next.
class PartWriter : public ReplyWriter {
 protected:
  void add_parts(const ReplyDelta& delta, std::string& out);
  /// Closes the last part, if it is open.
  void close_part(std::string& out);
  const std::vector<ReplyPart>& parts() const { return parts_; }
  /// Of the last part.
  std::size_t part_index() const { return parts_.size() - 1; }

  /// The last of parts() is new, and empty.
  virtual void write_opening(std::string& out) = 0;
  /// The last of parts() grew by a piece.
  virtual void write_piece(std::string_view piece, std::string& out) = 0;
  /// The last of parts() is complete.
  virtual void write_closing(std::string& out) = 0;

 private:
  void open_part(ReplyPart part, std::string& out);
  void extend_part(std::string_view piece, std::string& out);
  void add_text(ReplyPart::Kind kind, std::string_view piece, std::string& out);

  std::vector<ReplyPart> parts_;
  bool open_ = false;
};

}  // namespace sluice
