#include "text/chat_template.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/tiny_files.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

Json read_json(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), path.string());
}

template <class ErrorType, class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "(no error)";
}

/// A directory that goes away with the test.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (fs::temp_directory_path() / "sluice-template-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchDirectory() { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Json user(const std::string& content) { return Json::array({{{"role", "user"}, {"content", content}}}); }

TEST(ChatTemplate, RendersEveryTemplateCaseOfTheTinyModelAsHfDoes) {
  const auto chat_template = ChatTemplate::load(tiny_folder());
  ASSERT_NE(chat_template, nullptr);
  const Json cases = read_json(tiny_folder() / "expected/templates.json");
  ASSERT_EQ(cases.size(), 16u);
  for (const Json& row : cases) {
    SCOPED_TRACE(row["name"].get<std::string>());
    TemplateOptions options;
    options.variables = row["options"];
    options.add_generation_prompt = row["options"].value("add_generation_prompt", false);
    options.variables.erase("add_generation_prompt");
    const auto render = [&] { return chat_template->render(row["messages"], row["tools"], options); };
    if (row.contains("error")) {
      EXPECT_EQ(error_of<RequestError>(render), row["error"].get<std::string>());
    } else {
      EXPECT_EQ(render(), row["text"].get<std::string>());
    }
  }
}

TEST(ChatTemplate, RendersEveryChatOfTheTinyModelAsHfDoes) {
  const auto chat_template = ChatTemplate::load(tiny_folder());
  ASSERT_NE(chat_template, nullptr);
  const Json chats = read_json(tiny_folder() / "expected/chats.json");
  ASSERT_EQ(chats.size(), 32u);
  for (const Json& chat : chats) {
    SCOPED_TRACE(chat["name"].get<std::string>());
    TemplateOptions options;
    options.variables["enable_thinking"] = chat["enable_thinking"];
    EXPECT_EQ(chat_template->render(chat["messages"], chat["tools"], options), chat["rendered"].get<std::string>());
  }
}

TEST(ChatTemplate, DecodesArgumentsGivenAsJsonTextAndLeavesTheMessagesAlone) {
  const auto chat_template = ChatTemplate::parse(
      "{% for call in messages[0].tool_calls %}{% set function = call.function if call.function is defined else call %}"
      "{{ function.arguments if function.arguments is string else function.arguments | tojson }};{% endfor %}",
      "test");
  const auto call = [](const Json& arguments) { return Json{{"function", {{"name", "f"}, {"arguments", arguments}}}}; };
  const Json messages = Json::array(
      {{{"role", "assistant"},
        {"tool_calls", Json::array({call("{\"b\":1,\"a\":[\"\\u00e9\"]}"), call(""), call("[1,2]"), call("{broken"),
                                    call(Json{{"x", nullptr}}), Json{{"arguments", "{\"y\":2}"}}})}}});
  const Json before = messages;
  EXPECT_EQ(chat_template->render(messages, nullptr, {}),
            "{\"b\": 1, \"a\": [\"é\"]};{};[1,2];{broken;{\"x\": null};{\"y\": 2};");
  EXPECT_EQ(messages, before);
}

TEST(ChatTemplate, PassesToolsAsNoneWhenThereAreNone) {
  const auto chat_template = ChatTemplate::parse("{{ tools is none }} {{ tools }} {{ documents is none }}", "test");
  EXPECT_EQ(chat_template->render(user("a"), nullptr, {}), "True None True");
  EXPECT_EQ(chat_template->render(user("a"), Json::array({1}), {}), "False [1] True");
}

TEST(ChatTemplate, GivesTemplatesTheVariablesOfTheRequest) {
  const auto chat_template =
      ChatTemplate::parse("{{ enable_thinking }} {{ add_generation_prompt }} {{ level }}", "test");
  TemplateOptions options;
  options.add_generation_prompt = false;
  options.variables = {{"enable_thinking", true}, {"level", "low"}};
  EXPECT_EQ(chat_template->render(user("a"), nullptr, options), "True False low");
}

TEST(ChatTemplate, KeepsItsOwnVariablesFromBeingReplacedByARequest) {
  const auto chat_template = ChatTemplate::parse("{{ messages[0].content }} {{ add_generation_prompt }}", "test");
  TemplateOptions options;
  options.variables = {{"messages", "other"}, {"add_generation_prompt", "other"}};
  EXPECT_EQ(chat_template->render(user("a"), nullptr, options), "a True");
}

TEST(ChatTemplate, GivesTemplatesTheSpecialTokensOfTheTokenizerConfiguration) {
  const ScratchDirectory directory;
  directory.write("chat_template.jinja", "{{ bos_token }}|{{ eos_token }}|{{ pad_token is defined }}\n");
  directory.write("tokenizer_config.json",
                  R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null})");
  EXPECT_EQ(ChatTemplate::load(directory.path())->render(user("a"), nullptr, {}), "<s>|</s>|False");
}

TEST(ChatTemplate, PrefersTheTemplateFileThenTheJsonFileThenTheTokenizerConfiguration) {
  const ScratchDirectory directory;
  EXPECT_EQ(ChatTemplate::load(directory.path()), nullptr);
  directory.write("tokenizer_config.json", R"({"chat_template": "from the tokenizer"})");
  EXPECT_EQ(ChatTemplate::load(directory.path())->render(user("a"), nullptr, {}), "from the tokenizer");
  directory.write("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(ChatTemplate::load(directory.path())->render(user("a"), nullptr, {}), "from json");
  directory.write("chat_template.jinja", "from the file");
  EXPECT_EQ(ChatTemplate::load(directory.path())->render(user("a"), nullptr, {}), "from the file");
}

TEST(ChatTemplate, ServesRequestsWithToolsByTheTemplateNamedToolUse) {
  const ScratchDirectory directory;
  directory.write("tokenizer_config.json",
                  R"({"chat_template": [{"name": "tool_use", "template": "with tools"},
                                        {"name": "default", "template": "without"}]})");
  const auto chat_template = ChatTemplate::load(directory.path());
  EXPECT_EQ(chat_template->render(user("a"), nullptr, {}), "without");
  EXPECT_EQ(chat_template->render(user("a"), Json::array(), {}), "without");
  EXPECT_EQ(chat_template->render(user("a"), Json::array({1}), {}), "with tools");
}

TEST(ChatTemplate, RefusesAListOfTemplatesWithoutADefault) {
  const ScratchDirectory directory;
  directory.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  const std::string error = error_of<LoadError>([&] { ChatTemplate::load(directory.path()); });
  EXPECT_NE(error.find("none of the chat templates is named 'default'"), std::string::npos) << error;
}

TEST(ChatTemplate, RefusesATemplateThatIsNeitherStringNorList) {
  const ScratchDirectory directory;
  for (const char* wrong : {"5", "[5]", R"([{"name": "default"}])", R"({"default": "x"})"}) {
    directory.write("tokenizer_config.json", std::string(R"({"chat_template": )") + wrong + "}");
    const std::string error = error_of<LoadError>([&] { ChatTemplate::load(directory.path()); });
    EXPECT_NE(error.find("chat_template must be a string"), std::string::npos) << wrong << ": " << error;
  }
}

TEST(ChatTemplate, NamesTheFileLineAndColumnOfASyntaxError) {
  const ScratchDirectory directory;
  directory.write("chat_template.jinja", "fine\n  {% if x %}{{ 1 + }}{% endif %}");
  const std::string error = error_of<LoadError>([&] { ChatTemplate::load(directory.path()); });
  EXPECT_NE(error.find("chat_template.jinja, line 2, column 20: expected an expression, found '}}'"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace sluice
