// Files that are written tensor by tensor, read back by the readers.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/temporary_directory.h"
#include "weights/ggml_blocks.h"
#include "weights/gguf.h"
#include "weights/gguf_writer.h"
#include "weights/safetensors.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

std::vector<std::byte> counted(std::size_t size, int first) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return bytes;
}

const std::vector<StoredTensor> three{
    {"a.weight", DType::u8, {3, 5}, ""}, {"b \"quoted\"", DType::f32, {2}, ""}, {"c", DType::i64, {}, ""}};

void expect_bytes(const Checkpoint& checkpoint, const StoredTensor& tensor, int first) {
  const StoredTensor* found = checkpoint.find(tensor.name);
  ASSERT_NE(found, nullptr) << tensor.name;
  EXPECT_EQ(found->dtype, tensor.dtype);
  EXPECT_EQ(found->shape, tensor.shape);
  const auto bytes = checkpoint.bytes(*found);
  EXPECT_TRUE(std::ranges::equal(bytes, counted(tensor.byte_size(), first))) << tensor.name;
}

TEST(SafetensorsFolderWriter, WritesOneFileInPiecesOfAnySize) {
  const TemporaryDirectory folder;
  SafetensorsFolderWriter writer(folder.path(), three, 1000);
  std::vector<std::byte> all;
  for (int i = 0; i < 3; ++i) {
    const auto bytes = counted(three[static_cast<std::size_t>(i)].byte_size(), 10 * i);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  for (std::size_t at = 0; at < all.size(); at += 7) {
    writer.write(std::span(all).subspan(at, std::min<std::size_t>(7, all.size() - at)));
  }
  EXPECT_FALSE(fs::exists(folder.path() / "model.safetensors"));
  writer.finish();
  const auto checkpoint = open_safetensors(folder.path());
  EXPECT_EQ(checkpoint->names().size(), 3u);
  for (int i = 0; i < 3; ++i) expect_bytes(*checkpoint, three[static_cast<std::size_t>(i)], 10 * i);
}

TEST(SafetensorsFolderWriter, SplitsWhatIsTooLarge) {
  const TemporaryDirectory folder;
  SafetensorsFolderWriter writer(folder.path(), three, 16);
  for (int i = 0; i < 3; ++i) writer.write(counted(three[static_cast<std::size_t>(i)].byte_size(), 10 * i));
  writer.finish();
  for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
    EXPECT_TRUE(fs::exists(folder.path() / name)) << name;
  }
  const auto checkpoint = open_safetensors(folder.path());
  EXPECT_EQ(checkpoint->names().size(), 3u);
  for (int i = 0; i < 3; ++i) expect_bytes(*checkpoint, three[static_cast<std::size_t>(i)], 10 * i);
}

TEST(SafetensorsFolderWriter, LeavesNothingUnderItsNameWhenItEndsEarly) {
  const TemporaryDirectory folder;
  {
    SafetensorsFolderWriter writer(folder.path(), three, 1000);
    writer.write(counted(4, 0));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

GgufKeys some_keys() {
  GgufKeys keys;
  keys.add("number", std::uint32_t{7});
  keys.add("real", 0.25f);
  keys.add("flag", true);
  keys.add("text", "caf\xc3\xa9");
  const std::vector<std::int32_t> integers{1, -2, 3};
  const std::vector<std::string> texts{"one", "", "three"};
  keys.add("integers", std::span<const std::int32_t>(integers));
  keys.add("flags", std::vector<bool>{true, false});
  keys.add("texts", std::span<const std::string>(texts));
  return keys;
}

TEST(GgufWriter, WritesWhatTheReaderReads) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "x.gguf";
  const std::vector<StoredTensor> tensors{{"odd", DType::i8, {3, 5}, ""},
                                          {"blocks", DType::u8, {2, 64}, "", find_block_type(8)},
                                          {"halves", DType::bf16, {7}, ""}};
  GgufWriter writer(path, some_keys(), tensors);
  for (int i = 0; i < 3; ++i) writer.write(counted(tensors[static_cast<std::size_t>(i)].byte_size(), 10 * i));
  EXPECT_FALSE(fs::exists(path));
  writer.finish();
  const GgufCheckpoint file(path);
  for (int i = 0; i < 3; ++i) expect_bytes(file, tensors[static_cast<std::size_t>(i)], 10 * i);
  EXPECT_EQ(file.find("blocks")->block_type, find_block_type(8));
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(metadata.integer("number"), 7);
  EXPECT_EQ(metadata.number("real"), 0.25);
  EXPECT_EQ(metadata.boolean("flag"), true);
  EXPECT_EQ(metadata.string("text"), "caf\xc3\xa9");
  EXPECT_EQ(metadata.integers("integers"), (std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(metadata.integers("flags"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(metadata.strings("texts"), (std::vector<std::string_view>{"one", "", "three"}));
}

TEST(GgufWriter, RefusesATypeThatGgufLacks) {
  const TemporaryDirectory folder;
  const std::vector<StoredTensor> tensors{{"codes", DType::f8_e4m3, {4}, ""}};
  EXPECT_THROW(GgufWriter(folder.path() / "x.gguf", GgufKeys(), tensors), Error);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(OutputFile, SaysThatTheDiskIsFull) {
  EXPECT_THROW(
      {
        OutputFile file("/dev/full");
        file.write(std::string(1 << 20, 'x'));
        file.commit();
      },
      Error);
  EXPECT_TRUE(fs::exists("/dev/full"));
}

}  // namespace
}  // namespace sluice
