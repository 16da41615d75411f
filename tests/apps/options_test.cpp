#include "apps/options.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "apps/command_options.h"
#include "apps/commands.h"
#include "base/error.h"

namespace sluice {
namespace {

constexpr CommandInfo generate_info{"generate", "[MODEL] [flags]", "Complete a text.", "sluice generate"};

GenerateOptions read_options(const std::vector<std::string>& arguments) {
  GenerateOptions options;
  EXPECT_TRUE(read_into(options, generate_info, arguments));
  return options;
}

std::string usage_error(const std::vector<std::string>& arguments) {
  try {
    read_options(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// A variable of the environment, while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

class OptionsFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    path_ = std::filesystem::temp_directory_path() /
            (std::string("sluice_options_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml");
    std::ofstream(path_) << text;
    return path_.string();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
};

TEST(Options, DefaultsStandUntilSomethingIsGiven) {
  const GenerateOptions options = read_options({});
  EXPECT_EQ(*options.sampling.temperature, 1.0);
  EXPECT_FALSE(options.sampling.temperature.given());
  EXPECT_EQ(*options.engine.device, "auto");
}

TEST(Options, ValuesAreReadBehindABlankOrAnEqualsSign) {
  const GenerateOptions options = read_options({"dir", "--max-tokens", "7", "--top-p=0.5", "--json"});
  EXPECT_EQ(*options.model.model, "dir");
  EXPECT_EQ(*options.sampling.max_tokens, 7);
  EXPECT_EQ(*options.sampling.top_p, 0.5);
  EXPECT_TRUE(*options.json);
}

TEST(Options, NamesOfOtherProgramsAreAliases) {
  const GenerateOptions options =
      read_options({"-m", "dir", "-c", "128", "-t", "2", "-np", "3", "--temp", "0.25", "-ngl", "0"});
  EXPECT_EQ(options.model.name(), "dir");
  EXPECT_EQ(*options.engine.max_model_len, 128);
  EXPECT_EQ(*options.engine.threads, 2);
  EXPECT_EQ(*options.engine.max_num_seqs, 3);
  EXPECT_EQ(*options.sampling.temperature, 0.25);
}

TEST(Options, AValueThatLooksLikeAnOptionIsAValue) {
  EXPECT_EQ(*read_options({"-p", "-np"}).prompt, "-np");
  EXPECT_EQ(*read_options({"--presence-penalty", "-1.5"}).sampling.presence_penalty, -1.5);
}

TEST(Options, RepeatedOptionsCollectAndOthersTakeTheLast) {
  const GenerateOptions options = read_options({"--stop", "a", "dir", "--stop", "b", "--seed", "1", "--seed", "2"});
  EXPECT_EQ(*options.sampling.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*options.engine.seed, 2);
  EXPECT_EQ(options.model.name(), "dir");
}

TEST(Options, WrongUsageNamesTheOption) {
  EXPECT_NE(usage_error({"--no-such-thing"}).find("--no-such-thing"), std::string::npos);
  EXPECT_NE(usage_error({"--max-tokens"}).find("--max-tokens"), std::string::npos);
  EXPECT_NE(usage_error({"--max-tokens", "many"}).find("\"many\" is not a whole number"), std::string::npos);
  EXPECT_NE(usage_error({"--top-p", "1.5"}).find("--top-p: 1.5 is out of range"), std::string::npos);
  EXPECT_NE(usage_error({"--compute", "f8"}).find("expected auto, f32, bf16"), std::string::npos);
  EXPECT_NE(usage_error({"one", "two"}).find("two"), std::string::npos);
}

TEST_F(OptionsFile, CommandLineWinsThenEnvironmentThenFile) {
  const std::string file = write("temperature = 0.1\ntop-k = 11\nmin-p = 0.3\nstop = [\"x\", \"y\"]\n");
  const Variable temperature("SLUICE_TEMPERATURE", "0.2"), top_k("SLUICE_TOP_K", "22");
  const GenerateOptions options = read_options({"--config", file, "--temperature", "0.3"});
  EXPECT_EQ(*options.sampling.temperature, 0.3);
  EXPECT_EQ(*options.sampling.top_k, 22);
  EXPECT_EQ(*options.sampling.min_p, 0.3);
  EXPECT_EQ(*options.sampling.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(options.sampling.min_p.origin, Origin::file);
  EXPECT_EQ(options.sampling.top_k.origin, Origin::environment);
}

TEST_F(OptionsFile, TheSectionOfTheCommandWinsAndOthersArePassedOver) {
  const std::string file = write("top-k = 1\nmin-p = 0.5\njson = true\n[generate]\ntop-k = 2\n[run]\nmin-p = 0.9\n");
  const GenerateOptions options = read_options({"--config", file});
  EXPECT_EQ(*options.sampling.top_k, 2);
  EXPECT_EQ(*options.sampling.min_p, 0.5);
  EXPECT_TRUE(*options.json);
}

TEST_F(OptionsFile, AnUnknownKeyInTheCommandsSectionIsAnError) {
  const std::string file = write("[generate]\nno-such-key = 2\n");
  EXPECT_NE(usage_error({"--config", file}).find("no-such-key"), std::string::npos);
}

TEST_F(OptionsFile, AKeyOrASectionThatNoCommandKnowsIsAnError) {
  EXPECT_NE(usage_error({"--config", write("temperatur = 1\n")}).find("temperatur"), std::string::npos);
  EXPECT_NE(usage_error({"--config", write("[chat]\ntop-k = 1\n")}).find("[chat]"), std::string::npos);
  EXPECT_EQ(usage_error({"--config", write("shape = \"qwen3.5-2b\"\ntop_k = 1\n")}), "");
}

TEST_F(OptionsFile, ABadValueIsReportedWithItsPlace) {
  const std::string file = write("top-k = many\n");
  EXPECT_NE(usage_error({"--config", file}).find(file + ": top-k"), std::string::npos);
  const Variable top_k("SLUICE_TOP_K", "few");
  EXPECT_NE(usage_error({}).find("SLUICE_TOP_K"), std::string::npos);
}

TEST(Options, AFileThatIsMissingIsNoUsageError) {
  GenerateOptions options;
  EXPECT_THROW(read_into(options, generate_info, {"--config", "/nowhere/options.toml"}), LoadError);
}

TEST(Options, WhatThisBuildLacksIsRefusedByName) {
  const std::vector<std::vector<std::string>> refused{
      {"--device", "cuda"},          {"--device", "cuda:1"},      {"--tensor-parallel-size", "2"},
      {"--speculative-tokens", "3"}, {"--kv-cache-dtype", "fp8"}, {"--state-dtype", "bf16"},
      {"--enable-prefix-caching"},   {"--n-gpu-layers", "99"}};
  for (const auto& arguments : refused) {
    const GenerateOptions options = read_options(arguments);
    try {
      options.engine.refuse_unsupported();
      ADD_FAILURE() << arguments.front() << " was accepted";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(arguments.front()), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(read_options({"--image", "x.png"}).chat.refuse_unsupported(), UsageError);
  EXPECT_NO_THROW(
      read_options({"--device", "cpu", "-ngl", "0", "--no-enable-prefix-caching"}).engine.refuse_unsupported());
}

TEST(Options, HelpNamesEveryOptionItsDefaultAndAnExample) {
  GenerateOptions options;
  OptionList list;
  options.list(list);
  const std::string help = help_text(generate_info, list);
  for (const OptionEntry& entry : list.entries()) {
    for (const std::string& name : entry.names) EXPECT_NE(help.find(name), std::string::npos) << name;
  }
  EXPECT_NE(help.find("[0.9]"), std::string::npos);
  EXPECT_NE(help.find("example:\n  sluice generate"), std::string::npos);
}

TEST(Options, NoCommandGivesOneNameToTwoOptions) {
  for (const Command& command : commands()) {
    std::set<std::string> names{"--help", "-h", "--config"};
    for (const OptionEntry& entry : command.options()) {
      for (const std::string& name : entry.names) {
        EXPECT_TRUE(names.insert(name).second) << command.info.name << " " << name;
      }
    }
  }
}

TEST(Options, IdListsAreChecked) {
  EXPECT_EQ(parse_integers("1, 2,3", "ids"), (std::vector<std::int64_t>{1, 2, 3}));
  for (const char* text : {"", "1,,2", "1,2,", "1 2", "x", "99999999999999999999"}) {
    EXPECT_THROW(parse_integers(text, "ids"), UsageError) << text;
  }
}

TEST(Environment, TheHubCacheFollowsTheMostSpecificVariable) {
  const Variable home("HOME", "/h");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HF_HOME");
  unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(read_environment().hub_cache, "/h/.cache/huggingface/hub");
  const Variable hub_home("HF_HOME", "/hf");
  EXPECT_EQ(read_environment().hub_cache, "/hf/hub");
  const Variable hub_cache("HF_HUB_CACHE", "/cache");
  EXPECT_EQ(read_environment().hub_cache, "/cache");
}

}  // namespace
}  // namespace sluice
