#include "text/reply_parser.h"

#include <algorithm>
#include <random>
#include <utility>

#include "text/reasoning.h"
#include "text/tool_calls.h"
#include "text/unicode.h"

namespace sluice {

namespace {

constexpr std::string_view open_reasoning_tag = "<think>", close_reasoning_tag = "</think>";
/// White space before an opening tag; more of it begins an ordinary text.
constexpr std::size_t space_limit = 256;

std::string new_call_id() {
  static constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  thread_local std::mt19937_64 generator{std::random_device{}()};
  std::uniform_int_distribution<std::size_t> any(0, letters.size() - 1);
  std::string id = "call_";
  for (int i = 0; i < 24; ++i) id += letters[any(generator)];
  return id;
}

}  // namespace

struct ReplyParser::State : ToolCallEvents {
  explicit State(const ReplyFormat& format) : calls(format.tools, *this), in_reasoning(format.starts_in_reasoning) {
    reasoning.strip_line_breaks();
  }

  void begin_call(const std::string& name) override {
    reply.tool_calls.push_back({new_call_id(), name, {}});
    delta.tool_calls.push_back({static_cast<int>(reply.tool_calls.size()) - 1, reply.tool_calls.back().id, name, {}});
  }

  void add_arguments(std::string_view json) override {
    const int index = static_cast<int>(reply.tool_calls.size()) - 1;
    reply.tool_calls.back().arguments += json;
    if (delta.tool_calls.empty() || delta.tool_calls.back().index != index)
      delta.tool_calls.push_back({index, {}, {}, {}});
    delta.tool_calls.back().arguments += json;
  }

  ReplyText& text() { return in_reasoning ? reasoning : content; }
  void add_text(std::string_view piece) { text().add(piece, in_reasoning ? delta.reasoning : delta.content); }

  ReplyDelta read(bool ends);
  std::size_t read_opening(std::string_view rest, bool ends);
  std::size_t read_text(std::string_view rest, bool ends);

  ToolCallReader calls;
  ReplyText reasoning, content;
  bool in_reasoning;
  bool opening = true;  // nothing but white space so far
  std::string broken;   // bytes of an unfinished character
  std::string unread;   // valid UTF-8 that waits for what comes after it
  ReplyDelta delta;
  Reply reply;
};

/// Reads as far as can be decided.
ReplyDelta ReplyParser::State::read(bool ends) {
  std::size_t used = 0;
  while (used < unread.size()) {
    const std::string_view rest = std::string_view(unread).substr(used);
    const bool was_opening = opening, was_inside = calls.inside();
    const std::size_t step = opening          ? read_opening(rest, ends)
                             : calls.inside() ? calls.read(rest, ends)
                                              : read_text(rest, ends);
    used += step;
    if (step == 0 && opening == was_opening && calls.inside() == was_inside) break;
  }
  unread.erase(0, used);
  if (ends) {
    calls.finish();
    reasoning.finish(delta.reasoning);
    content.finish(delta.content);
  }
  reply.reasoning += delta.reasoning;
  reply.content += delta.content;
  return std::exchange(delta, {});
}

/// <think> at the very beginning opens reasoning, also where the prompt has done so; a </think> that closes nothing
/// is left out.
std::size_t ReplyParser::State::read_opening(std::string_view rest, bool ends) {
  const std::size_t begin = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
  const std::string_view tag = rest.substr(begin);
  const Found open = find_tag(tag, open_reasoning_tag);
  const Found close = in_reasoning ? Found::no : find_tag(tag, close_reasoning_tag);
  const bool unknown = open == Found::unknown_yet || close == Found::unknown_yet;
  if (begin <= space_limit && unknown && !ends) return 0;
  opening = false;
  if (begin > space_limit || (open != Found::yes && close != Found::yes)) return 0;
  in_reasoning = open == Found::yes;
  content.strip_line_breaks();
  return begin + (in_reasoning ? open_reasoning_tag : close_reasoning_tag).size();
}

/// Outside of calls: up to the next tag.
std::size_t ReplyParser::State::read_text(std::string_view rest, bool ends) {
  const std::size_t begin = std::min(rest.find('<'), rest.size());
  add_text(rest.substr(0, begin));
  const std::string_view tag = rest.substr(begin);
  if (tag.empty()) return begin;
  const Found close = in_reasoning ? find_tag(tag, close_reasoning_tag) : Found::no;
  const Found call = calls.enabled() ? calls.find_call(tag) : Found::no;
  if (close == Found::yes) {
    reasoning.drop_space();
    in_reasoning = false;
    content.strip_line_breaks();
    return begin + close_reasoning_tag.size();
  }
  if (call == Found::yes) {
    text().call_follows();
    return begin + calls.open_call(tag);
  }
  const bool unknown = close == Found::unknown_yet || call == Found::unknown_yet;
  if (unknown && !ends) return begin;
  add_text("<");
  return begin + 1;
}

ReplyParser::ReplyParser(ReplyFormat format) : state_(std::make_unique<State>(format)) {}
ReplyParser::~ReplyParser() = default;

ReplyDelta ReplyParser::add(std::string_view text) {
  state_->broken += text;
  state_->broken.erase(0, append_valid_utf8(state_->unread, state_->broken, true));
  return state_->read(false);
}

ReplyDelta ReplyParser::finish() {
  append_valid_utf8(state_->unread, state_->broken);
  state_->broken.clear();
  return state_->read(true);
}

const Reply& ReplyParser::reply() const { return state_->reply; }

}  // namespace sluice
