#include "apps/model_files.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/gguf_file.h"
#include "support/temporary_directory.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

/// A hub cache with two revisions of one model.
class HubCache : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            (std::string("sluice_hub_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    write("models--Org--Name-1.5/refs/main", "aaa\n");
    write("models--Org--Name-1.5/refs/old", "bbb");
    write("models--Org--Name-1.5/snapshots/aaa/config.json", "{}");
    write("models--Org--Name-1.5/snapshots/bbb/config.json", "{}");
    write("models--Org--Half/snapshots/ccc/tokenizer.json", "{}");
    environment_.hub_cache = root_;
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << text;
  }
  std::string failure(const std::string& name) {
    try {
      find_model(name, environment_);
    } catch (const LoadError& error) {
      return error.what();
    }
    return "";
  }
  fs::path snapshot(const std::string& commit) { return root_ / "models--Org--Name-1.5/snapshots" / commit; }

  fs::path root_;
  Environment environment_;
};

TEST_F(HubCache, ANameMeansTheMainRevision) { EXPECT_EQ(find_model("Org/Name-1.5", environment_), snapshot("aaa")); }

TEST_F(HubCache, ARevisionIsATagOrACommit) {
  EXPECT_EQ(find_model("Org/Name-1.5@old", environment_), snapshot("bbb"));
  EXPECT_EQ(find_model("Org/Name-1.5@bbb", environment_), snapshot("bbb"));
}

TEST_F(HubCache, ADirectoryWinsOverTheCache) { EXPECT_EQ(find_model(root_.string(), environment_), root_); }

TEST_F(HubCache, WhatIsMissingIsNamed) {
  EXPECT_NE(failure("Org/Other").find("models--Org--Other"), std::string::npos);
  EXPECT_NE(failure("Org/Name-1.5@new").find("\"new\""), std::string::npos);
  EXPECT_NE(failure("/no/such/place").find("no such file or directory"), std::string::npos);
  EXPECT_NE(failure("plain").find("no such file or directory"), std::string::npos);
  EXPECT_NE(failure("x/y.gguf").find("no such file or directory"), std::string::npos);
}

TEST_F(HubCache, ARevisionCannotLeaveTheCache) {
  write("outside/config.json", "{}");
  EXPECT_NE(failure("Org/Name-1.5@../../../outside"), "");
  write("models--Org--Name-1.5/refs/evil", "../../outside");
  EXPECT_NE(failure("Org/Name-1.5@evil"), "");
}

TEST_F(HubCache, AGgufFileIsAModelWhateverItsName) {
  const std::string bytes = test::GgufFile().text("general.architecture", "none").bytes();
  write("sha256-abc", bytes);
  EXPECT_EQ(find_model((root_ / "sha256-abc").string(), environment_), root_ / "sha256-abc");
  write("x.gguf", "none");
  EXPECT_NE(failure((root_ / "x.gguf").string()).find("no GGUF file"), std::string::npos);
}

TEST_F(HubCache, ASnapshotWithOneGgufModelIsThatModel) {
  const fs::path folder = "models--Org--Name-GGUF";
  const std::string bytes = test::GgufFile().text("general.architecture", "none").bytes();
  write(folder / "refs/main", "ddd");
  write(folder / "snapshots/ddd/Name-F16-00001-of-00002.gguf", bytes);
  write(folder / "snapshots/ddd/Name-F16-00002-of-00002.gguf", bytes);
  write(folder / "snapshots/ddd/mmproj-F16.gguf", bytes);
  EXPECT_EQ(open_model_files("Org/Name-GGUF", environment_)->name(), "Name-F16");
  EXPECT_EQ(cached_models(root_).back().name, "Org/Name-GGUF");
  write(folder / "snapshots/ddd/Name-BF16.gguf", bytes);
  EXPECT_THROW(open_model_files("Org/Name-GGUF", environment_), LoadError);
}

TEST_F(HubCache, OfSeveralPictureTowersTheBf16OneIsTakenThenTheF16One) {
  const std::string bytes = test::GgufFile().text("general.architecture", "none").bytes();
  test::GgufFile model;
  model.text("general.architecture", "qwen35").zeros("token_embd.weight", {16, 8});
  for (const auto& [name, value] : {std::pair{"block_count", 1},
                                    {"context_length", 64},
                                    {"embedding_length", 16},
                                    {"attention.head_count", 2},
                                    {"attention.head_count_kv", 1},
                                    {"ssm.conv_kernel", 4},
                                    {"ssm.state_size", 16},
                                    {"ssm.group_count", 1},
                                    {"ssm.time_step_rank", 1},
                                    {"ssm.inner_size", 16},
                                    {"feed_forward_length", 16}}) {
    model.u32(std::string("qwen35.") + name, static_cast<std::uint32_t>(value));
  }
  model.f32("qwen35.attention.layer_norm_rms_epsilon", 1e-6f);
  write("m/model.gguf", model.bytes());
  // Each tower is no tower: the error names the one that was opened.
  const auto opened = [&](const std::string& mmproj) {
    return test::message_of<LoadError>(
        [&] { open_model_files((root_ / "m").string(), environment_, mmproj)->config(); });
  };
  EXPECT_EQ(opened(""), "");
  write("m/mmproj-a-Q8_0.gguf", bytes);
  EXPECT_NE(opened("").find("mmproj-a-Q8_0.gguf"), std::string::npos);
  write("m/mmproj-a-F16.gguf", bytes);
  EXPECT_NE(opened("").find("mmproj-a-F16.gguf: \"general.arch"), std::string::npos);
  write("m/mmproj-a-BF16.gguf", bytes);
  EXPECT_NE(opened("").find("mmproj-a-BF16.gguf: \"general.arch"), std::string::npos);
  write("m/mmproj-b-BF16.gguf", bytes);
  EXPECT_NE(opened("").find("mmproj-a-F16.gguf: \"general.arch"), std::string::npos);
  write("m/mmproj-b-F16.gguf", bytes);
  EXPECT_NE(opened("").find("holds 5 picture towers; name one of them with --mmproj"), std::string::npos);
  EXPECT_NE(opened((root_ / "m/mmproj-b-F16.gguf").string()).find("mmproj-b-F16.gguf"), std::string::npos);
  EXPECT_EQ(opened("none"), "");
  EXPECT_THROW(open_model_files(snapshot("aaa").string(), environment_, "x.gguf"), UsageError);
}

TEST_F(HubCache, AFolderIsNamedByItsLastPart) {
  const fs::path folder = snapshot("aaa");
  EXPECT_EQ(open_model_files(folder.string(), environment_)->name(), "aaa");
  EXPECT_EQ(open_model_files(folder.string() + "/", environment_)->name(), "aaa");
}

TEST_F(HubCache, ListsSnapshotsThatHaveAConfig) {
  const std::vector<CachedModel> models = cached_models(root_);
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "Org/Name-1.5");
  EXPECT_EQ(models[0].revision, "bbb");
  EXPECT_EQ(models[1].revision, "main");
  EXPECT_EQ(models[1].bytes, 2u);
}

TEST_F(HubCache, AMissingCacheIsEmpty) { EXPECT_TRUE(cached_models(root_ / "nowhere").empty()); }

TEST(StopTokens, AreANumberOrAList) {
  EXPECT_EQ(stop_tokens_of(Json::parse(R"({"eos_token_id": 5})")), std::vector<TokenId>{5});
  EXPECT_EQ(stop_tokens_of(Json::parse(R"({"eos_token_id": [5, 7]})")), (std::vector<TokenId>{5, 7}));
  EXPECT_TRUE(stop_tokens_of(Json::parse("{}")).empty());
  EXPECT_TRUE(stop_tokens_of(nullptr).empty());
  for (const char* text : {R"({"eos_token_id": "x"})", R"({"eos_token_id": [1.5]})", R"({"eos_token_id": -1})"}) {
    EXPECT_THROW(stop_tokens_of(Json::parse(text)), LoadError) << text;
  }
}

}  // namespace
}  // namespace sluice
