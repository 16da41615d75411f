#include "text/reply_parser.h"

#include <fstream>
#include <iterator>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

/// A reply as a caller of the stream sees it: deltas joined, with ids left out.
struct Joined {
  std::string reasoning, content;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
  bool operator==(const Joined&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Joined& joined) {
  out << "reasoning " << Json(joined.reasoning) << ", content " << Json(joined.content);
  for (const auto& [name, arguments] : joined.calls) out << ", " << name << "(" << arguments << ")";
  return out;
}

void join(Joined& joined, const ReplyDelta& delta) {
  joined.reasoning += delta.reasoning;
  joined.content += delta.content;
  for (const auto& fragment : delta.tool_calls) {
    if (!fragment.id.empty()) {
      EXPECT_EQ(fragment.index, static_cast<int>(joined.calls.size()));
      joined.calls.push_back({fragment.name, {}});
    }
    ASSERT_EQ(fragment.index, static_cast<int>(joined.calls.size()) - 1);
    joined.calls.back().second += fragment.arguments;
  }
}

Joined parse(const std::vector<std::string_view>& pieces, const ReplyFormat& format) {
  ReplyParser parser(format);
  Joined joined;
  for (std::string_view piece : pieces) join(joined, parser.add(piece));
  join(joined, parser.finish());
  const Reply& reply = parser.reply();
  Joined whole{reply.reasoning, reply.content, {}};
  for (const ToolCall& call : reply.tool_calls) whole.calls.push_back({call.name, call.arguments});
  EXPECT_EQ(joined, whole) << "the deltas and the reply disagree";
  return joined;
}

const Json& tools() {
  static const Json declared = Json::parse(R"json([
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties":
        {"a": {"type": "integer"}, "b": {"type": "integer"}}}}},
    {"type": "function", "function": {"name": "note", "parameters": {"type": "object", "properties":
        {"text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
         "urgent": {"type": "boolean"}, "share": {"type": "number"}, "extra": {"type": "object"},
         "due": {"type": ["string", "null"]}, "anything": {}}}}},
    {"type": "function", "function": {"name": "ping"}}
  ])json");
  return declared;
}

ReplyFormat plain() { return {false, nullptr}; }
ReplyFormat thinking() { return {true, nullptr}; }
ReplyFormat with_tools(bool starts_in_reasoning = false) { return {starts_in_reasoning, tools()}; }

Joined parse(std::string_view text, const ReplyFormat& format) { return parse(std::vector{text}, format); }

/// The arguments of the only call of a reply.
std::string arguments_of(std::string_view text) {
  const Joined joined = parse(text, with_tools());
  EXPECT_EQ(joined.calls.size(), 1u) << joined;
  return joined.calls.empty() ? "" : joined.calls[0].second;
}

std::string call(std::string_view name, std::string_view key, std::string_view value) {
  return fmt::format("<tool_call>\n<function={}>\n<parameter={}>\n{}\n</parameter>\n</function>\n</tool_call>", name,
                     key, value);
}

/// The value that a parameter of `note` becomes.
std::string typed(std::string_view key, std::string_view value) {
  const Json arguments = Json::parse(arguments_of(call("note", key, value)));
  return arguments.at(std::string(key)).dump();
}

TEST(ReplyParser, SplitsReasoningFromContentAtTheClosingTag) {
  EXPECT_EQ(parse("I think.\n</think>\n\nIt is so.", thinking()), (Joined{"I think.", "It is so.", {}}));
}

TEST(ReplyParser, KeepsWhiteSpaceInsideReasoningAndContent) {
  EXPECT_EQ(parse("  a\n\n b\n</think>\n\n    code\n\n  more \n", thinking()),
            (Joined{"  a\n\n b", "    code\n\n  more \n", {}}));
}

TEST(ReplyParser, TakesAReplyWithoutAClosingTagAsReasoning) {
  EXPECT_EQ(parse("I think and think", thinking()), (Joined{"I think and think", "", {}}));
}

TEST(ReplyParser, TakesAReplyAsContentWhereThePromptOpensNoReasoning) {
  EXPECT_EQ(parse("\n a <think> b </think> c\n", plain()), (Joined{"", "\n a <think> b </think> c\n", {}}));
}

TEST(ReplyParser, OpensReasoningAtALeadingTag) {
  EXPECT_EQ(parse("\n<think>\nhm\n</think>\n\nyes", plain()), (Joined{"hm", "yes", {}}));
  EXPECT_EQ(parse("<think>\nhm\n</think>\n\nyes", thinking()), (Joined{"hm", "yes", {}}));
}

TEST(ReplyParser, GivesEmptyReasoningForAnEmptyThought) {
  EXPECT_EQ(parse("\n\n</think>\n\nyes", thinking()), (Joined{"", "yes", {}}));
  EXPECT_EQ(parse("</think>\n\nyes", plain()), (Joined{"", "yes", {}}));
}

TEST(ReplyParser, ReadsACallAfterReasoning) {
  const std::string text =
      "I call add.\n</think>\n\n<tool_call>\n<function=add>\n<parameter=a>\n1965\n</parameter>\n<parameter=b>\n2309\n"
      "</parameter>\n</function>\n</tool_call>";
  EXPECT_EQ(parse(text, with_tools(true)), (Joined{"I call add.", "", {{"add", R"({"a": 1965, "b": 2309})"}}}));
}

TEST(ReplyParser, LeavesCallsInTheContentWithoutTools) {
  const std::string text = call("add", "a", "1");
  EXPECT_EQ(parse(text, plain()), (Joined{"", text, {}}));
  EXPECT_EQ(parse(text, {false, Json::array()}), (Joined{"", text, {}}));
}

TEST(ReplyParser, FindsCallsInsideReasoning) {
  const Joined closed = parse("hm\n" + call("add", "a", "1") + "\nok\n</think>\n\nyes", with_tools(true));
  EXPECT_EQ(closed, (Joined{"hm\nok", "yes", {{"add", R"({"a": 1})"}}}));
  EXPECT_EQ(parse("hm\n" + call("add", "a", "1"), with_tools(true)), (Joined{"hm", "", {{"add", R"({"a": 1})"}}}));
}

TEST(ReplyParser, KeepsTextAroundCalls) {
  const std::string one = call("add", "a", "1");
  EXPECT_EQ(parse("Look:\n\n" + one + "\nDone.", with_tools()).content, "Look:\n\nDone.");
  EXPECT_EQ(parse("Look:" + one + "\n" + one + "\n", with_tools()).content, "Look:");
  EXPECT_EQ(parse(one + "\n\nDone.", with_tools()).content, "Done.");
}

TEST(ReplyParser, NumbersSeveralCalls) {
  const Joined joined =
      parse(call("add", "a", "1") + "\n" + call("ping", "x", "2") + call("add", "b", "3"), with_tools());
  EXPECT_EQ(joined.calls,
            (decltype(joined.calls){{"add", R"({"a": 1})"}, {"ping", R"({"x": 2})"}, {"add", R"({"b": 3})"}}));
}

TEST(ReplyParser, ReadsSeveralFunctionsInOneCall) {
  const Joined joined =
      parse("<tool_call>\n<function=add>\n</function>\n<function=ping>\n</function>\n</tool_call>\n", with_tools());
  EXPECT_EQ(joined, (Joined{"", "", {{"add", "{}"}, {"ping", "{}"}}}));
}

TEST(ReplyParser, GivesEachCallItsOwnId) {
  ReplyParser parser(with_tools());
  parser.add(call("add", "a", "1") + call("add", "a", "1"));
  parser.finish();
  const auto& calls = parser.reply().tool_calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_NE(calls[0].id, calls[1].id);
  EXPECT_EQ(calls[0].id.substr(0, 5), "call_");
  EXPECT_EQ(calls[0].id.size(), 29u);
}

TEST(ReplyParser, TypesValuesByTheSchema) {
  EXPECT_EQ(typed("text", "12"), R"("12")");
  EXPECT_EQ(typed("text", "true"), R"("true")");
  EXPECT_EQ(typed("tags", R"(["a", "b"])"), R"(["a","b"])");
  EXPECT_EQ(typed("urgent", "True"), "true");
  EXPECT_EQ(typed("urgent", "false"), "false");
  EXPECT_EQ(typed("share", "0.25"), "0.25");
  EXPECT_EQ(typed("share", "3"), "3");
  EXPECT_EQ(typed("extra", R"({"k": [1, null]})"), R"({"k":[1,null]})");
  EXPECT_EQ(typed("due", "null"), "null");
  EXPECT_EQ(typed("due", "None"), "null");
  EXPECT_EQ(typed("due", "12"), R"("12")");
}

TEST(ReplyParser, KeepsAValueThatDoesNotFitAsItReads) {
  EXPECT_EQ(typed("urgent", "maybe"), R"("maybe")");
  EXPECT_EQ(typed("extra", "{broken"), R"("{broken")");
  EXPECT_EQ(typed("share", "1e999"), R"("1e999")");
  EXPECT_EQ(typed("tags", "7"), "7");
}

TEST(ReplyParser, GuessesTheTypesOfWhatIsNotDeclared) {
  for (const char* key : {"anything", "unknown"}) {
    EXPECT_EQ(typed(key, "12"), "12");
    EXPECT_EQ(typed(key, "007"), R"("007")");
    EXPECT_EQ(typed(key, "true"), "true");
    EXPECT_EQ(typed(key, "null"), "null");
    EXPECT_EQ(typed(key, "[1, 2]"), "[1,2]");
    EXPECT_EQ(typed(key, "hello world"), R"("hello world")");
    EXPECT_EQ(typed(key, "[1, 2"), R"("[1, 2")");
  }
  EXPECT_EQ(arguments_of(call("undeclared", "k", "1.5")), R"({"k": 1.5})");
}

TEST(ReplyParser, LeavesOneLineBreakAtEachSideOfAValueOut) {
  EXPECT_EQ(typed("text", ""), R"("")");
  EXPECT_EQ(typed("text", "\n a \n"), R"("\n a \n")");
  EXPECT_EQ(arguments_of("<tool_call><function=note><parameter=text>in line</parameter></function></tool_call>"),
            R"({"text": "in line"})");
}

TEST(ReplyParser, EscapesStringValues) {
  const std::string value = "say \"hi\"\\\t\x01 \u00e9\U0001F600\r\n<b>";
  EXPECT_EQ(Json::parse(arguments_of(call("note", "text", value))).at("text"), value);
}

TEST(ReplyParser, KeepsTagsThatAreNoEndInsideAValue) {
  for (const std::string value :
       {"a </parameter> b", "</think>", "<tool_call>", "x</function>y", "a\n</parameter>", "<parameter=other>\nv",
        "</tool_call> is a tag", "a < b", "<parameter=text>", "</div>\n</function >", "<function=add>\n", "<"}) {
    EXPECT_EQ(Json::parse(arguments_of(call("note", "text", value))).at("text"), value);
  }
}

TEST(ReplyParser, ToleratesMissingClosingTags) {
  EXPECT_EQ(arguments_of("<tool_call>\n<function=add>\n<parameter=a>\n1\n<parameter=b>\n2\n</function>\n</tool_call>"),
            R"({"a": 1, "b": 2})");
  EXPECT_EQ(arguments_of("<tool_call>\n<function=note>\n<parameter=text>\nhi\n</tool_call>"), R"({"text": "hi"})");
  EXPECT_EQ(arguments_of("<tool_call>\n<function=ping>\n<parameter=x>\nhi\n<parameter=y>\n2\n</function>"),
            R"({"x": "hi", "y": 2})");
  EXPECT_EQ(arguments_of("<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</tool_call>\n"), R"({"a": 1})");
}

TEST(ReplyParser, TakesADeclaredFunctionWithoutTheOuterTagAsACall) {
  EXPECT_EQ(arguments_of("<function=add>\n<parameter=a>\n1\n</parameter>\n</function>"), R"({"a": 1})");
  EXPECT_EQ(parse("<function=other>\n</function>", with_tools()).content, "<function=other>\n</function>");
}

TEST(ReplyParser, LeavesTextThatOnlyLooksLikeACall) {
  for (const std::string text :
       {"Use <tool_call> to call.", "<tool_call>\n{}\n</tool_call>", "<function=", "<tool_call>",
        "<tool_call>\n<function=\n>", "a <b> </tool_call>", "<tool_call>\n<function=add"})
    EXPECT_EQ(parse(text, with_tools()), (Joined{"", text, {}}));
}

TEST(ReplyParser, KeepsOfAnUnfinishedCallWhatCanBeTyped) {
  const std::string begin = "<tool_call>\n<function=note>\n<parameter=";
  EXPECT_EQ(arguments_of(begin + "text>\nhalf a sen"), R"({"text": "half a sen"})");
  EXPECT_EQ(arguments_of(begin + "text>\nline\n</param"), R"({"text": "line"})");
  EXPECT_EQ(arguments_of(begin + "text>\nline\n</parameter>\n"), R"({"text": "line"})");
  EXPECT_EQ(arguments_of(begin + "tags>\n[\"a\", "), "{}");
  EXPECT_EQ(arguments_of(begin + "urgent>\ntr"), "{}");
  EXPECT_EQ(arguments_of(begin + "share>\n1.5"), R"({"share": 1.5})");
  EXPECT_EQ(arguments_of(begin + "te"), "{}");
}

TEST(ReplyParser, StreamsStringValuesBeforeTheyEnd) {
  ReplyParser parser(with_tools());
  parser.add("<tool_call>\n<function=note>\n<parameter=text>\n");
  const ReplyDelta delta = parser.add("a long sentence");
  ASSERT_EQ(delta.tool_calls.size(), 1u);
  EXPECT_EQ(delta.tool_calls[0].arguments, "a long sentence");
}

TEST(ReplyParser, TakesTheFirstOfAParameterGivenTwice) {
  EXPECT_EQ(arguments_of("<tool_call><function=add><parameter=a>1</parameter><parameter=a>2</parameter></function>"),
            R"({"a": 1})");
}

TEST(ReplyParser, ParsesTheRepliesOfTheTinyModelsToolChats) {
  std::ifstream file(SLUICE_SOURCE_DIR "/models/tiny/expected/chats.json");
  const Json chats = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  int calls = 0;
  for (const Json& chat : chats) {
    if (chat["tools"].is_null()) continue;
    std::string text = chat["output_text"];
    text.resize(text.find("<|im_end|>"));
    const Joined joined = parse(text, {chat["enable_thinking"].get<bool>(), chat["tools"]});
    EXPECT_EQ(joined.reasoning.empty(), !chat["enable_thinking"].get<bool>()) << text;
    EXPECT_EQ(joined.content.empty(), !joined.calls.empty()) << text;
    for (const auto& [name, arguments] : joined.calls) {
      ++calls;
      const Json values = Json::parse(arguments);
      for (const auto& [key, value] : values.items()) {
        const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
        EXPECT_NE(text.find(fmt::format("<parameter={}>\n{}\n</parameter>", key, shown)), std::string::npos) << text;
        EXPECT_EQ(value.is_string(), name == "get_weather") << text;
      }
    }
  }
  EXPECT_EQ(calls, 4);
}

TEST(ReplyParser, GivesTheSameForEveryCutOfEveryExpectedReply) {
  std::ifstream file(SLUICE_SOURCE_DIR "/models/tiny/expected/chats.json");
  const Json chats = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  EXPECT_GE(chats.size(), 23u);
  for (const Json& chat : chats) {
    const std::string text = chat["output_text"].get<std::string>();
    const std::string_view reply = std::string_view(text).substr(0, text.find("<|im_end|>"));
    const ReplyFormat format{chat["enable_thinking"].get<bool>(), chat["tools"]};
    const Joined whole = parse(std::string(reply), format);
    for (std::size_t cut = 0; cut <= reply.size(); ++cut)
      ASSERT_EQ(parse({reply.substr(0, cut), reply.substr(cut)}, format), whole) << "cut at " << cut << ": " << text;
    std::vector<std::string_view> bytes;
    for (const char& byte : reply) bytes.push_back({&byte, 1});
    EXPECT_EQ(parse(bytes, format), whole) << text;
  }
}

/// Replies that reach every state, whole and broken off.
std::vector<std::string> samples() {
  const std::string add =
      "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n-2\n</parameter>\n"
      "</function>\n</tool_call>";
  const std::string note = call("note", "text", "a </parameter> \"b\"\n\n<p>\u00e9</p>\n</parameter>");
  return {
      "I think.\n\n</think>\n\n " + add + "\n\n" + note + "\n done <b>.\n",
      "\n<think>\n x </thin </think>\n\nHello <tool_call> and <function=add> it\n</function> \n end",
      "hm " + add + " ok\n</think>\nyes\n" + note + "tail",
      "<tool_call>\n<function=note>\n<parameter=tags>\n[1, 2]\n<parameter=due>\nnone\n</function>\n<function=ping>\n"
      "</function>\n</tool_call>\n\n\n",
      "<tool_call>\n<function=note>\n<parameter=text>\nabc\n</function>\n</tool_call>\n<tool_call>\n<function=add>\n"
      "junk <parameter=a>5</parameter> junk </tool_call> text",
      "  \n </think>  \n\n \u00e9 \xF0\x9F\x98\x80 \xFF <",
  };
}

TEST(ReplyParser, DoesNotDependOnWhereTheTextIsCut) {
  for (const std::string& sample : samples()) {
    for (bool starts_in_reasoning : {false, true}) {
      const ReplyFormat format = with_tools(starts_in_reasoning);
      const Joined whole = parse(sample, format);
      for (std::size_t cut = 0; cut <= sample.size(); ++cut) {
        const std::string_view text = sample;
        ASSERT_EQ(parse({text.substr(0, cut), text.substr(cut)}, format), whole) << "cut at " << cut;
      }
      std::vector<std::string_view> bytes;
      for (const char& byte : sample) bytes.push_back({&byte, 1});
      EXPECT_EQ(parse(bytes, format), whole);
    }
  }
}

TEST(ReplyParser, DoesNotDependOnCutsAtRandomInRandomReplies) {
  const std::vector<std::string_view> parts = {"<think>",
                                               "</think>",
                                               "<tool_call>",
                                               "</tool_call>",
                                               "<function=add>",
                                               "<function=note>",
                                               "<function=x>",
                                               "</function>",
                                               "<parameter=a>",
                                               "<parameter=text>",
                                               "<parameter=tags>",
                                               "<parameter=q>",
                                               "</parameter>",
                                               "\n",
                                               "\n",
                                               "\n",
                                               " ",
                                               "12",
                                               "word",
                                               "[1]",
                                               "\"",
                                               "<",
                                               "\u00e9",
                                               "\xFF",
                                               "</",
                                               "{\"a\":1}",
                                               "null"};
  std::mt19937 random(7);
  for (int round = 0; round < 10000; ++round) {
    std::string text;
    for (auto i = random() % 24; i > 0; --i) text += parts[random() % parts.size()];
    const ReplyFormat format = with_tools(random() % 2 == 0);
    const Joined whole = parse(text, format);
    for (const auto& [name, arguments] : whole.calls) ASSERT_TRUE(Json::accept(arguments)) << text << "\n" << arguments;
    std::vector<std::string_view> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = 1 + random() % 6;
      pieces.push_back(std::string_view(text).substr(at, length));
      at += pieces.back().size();
    }
    ASSERT_EQ(parse(pieces, format), whole) << text;
  }
}

}  // namespace
}  // namespace sluice
