#include "server/part_writer.h"

#include <utility>

#include "base/check.h"

namespace sluice {

std::vector<ReplyPart> parts_of(const Reply& reply) {
  std::vector<ReplyPart> parts;
  if (!reply.reasoning.empty()) parts.push_back({ReplyPart::Kind::reasoning, reply.reasoning, {}, {}});
  if (!reply.content.empty()) parts.push_back({ReplyPart::Kind::text, reply.content, {}, {}});
  for (const ToolCall& call : reply.tool_calls)
    parts.push_back({ReplyPart::Kind::tool_call, call.arguments, call.id, call.name});
  return parts;
}

void PartWriter::add_parts(const ReplyDelta& delta, std::string& out) {
  auto fragment = delta.tool_calls.begin();
  // What goes on with the open call comes before whatever else the delta holds.
  for (; fragment != delta.tool_calls.end() && fragment->id.empty(); ++fragment) extend_part(fragment->arguments, out);
  add_text(ReplyPart::Kind::reasoning, delta.reasoning, out);
  add_text(ReplyPart::Kind::text, delta.content, out);
  for (; fragment != delta.tool_calls.end(); ++fragment) {
    if (!fragment->id.empty()) open_part({ReplyPart::Kind::tool_call, {}, fragment->id, fragment->name}, out);
    extend_part(fragment->arguments, out);
  }
}

void PartWriter::add_text(ReplyPart::Kind kind, std::string_view piece, std::string& out) {
  if (piece.empty()) return;
  if (!open_ || parts_.back().kind != kind) open_part({kind, {}, {}, {}}, out);
  extend_part(piece, out);
}

void PartWriter::open_part(ReplyPart part, std::string& out) {
  close_part(out);
  parts_.push_back(std::move(part));
  open_ = true;
  write_opening(out);
}

void PartWriter::extend_part(std::string_view piece, std::string& out) {
  if (piece.empty()) return;
  CHECK(open_, "a piece of {} bytes for no part", piece.size());
  parts_.back().text += piece;
  write_piece(piece, out);
}

void PartWriter::close_part(std::string& out) {
  if (!open_) return;
  open_ = false;
  write_closing(out);
}

}  // namespace sluice
