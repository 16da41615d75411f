#include "weights/safetensors.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/temporary_directory.h"

namespace sluice {
namespace {

using test::message_of;
using test::TemporaryDirectory;

std::string file_bytes(const std::string& header, std::size_t data_size) {
  const std::uint64_t size = header.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes += header;
  for (std::size_t i = 0; i < data_size; ++i) bytes += static_cast<char>(i);
  return bytes;
}

std::string error_of(const std::string& bytes) {
  const TemporaryDirectory directory;
  const auto path = directory.write("x.safetensors", bytes);
  return message_of<LoadError>([&] { open_safetensors(path); });
}

TEST(Safetensors, GivesBackWhatWasWritten) {
  const TemporaryDirectory directory;
  std::vector<float> a{1.0f, -2.0f, 3.5f, 4.0f, 5.0f, 6.0f};
  std::vector<std::int64_t> b{7, -8};
  const auto path = directory.path() / "out.safetensors";
  write_safetensors(path, {{"a", Tensor(a.data(), DType::f32, {2, 3})}, {"b", Tensor(b.data(), DType::i64, {2})}});
  const auto checkpoint = open_safetensors(path);
  ASSERT_EQ(checkpoint->names(), (std::vector<std::string>{"a", "b"}));
  const StoredTensor& tensor = *checkpoint->find("a");
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(checkpoint->bytes(tensor).data(), a.data(), 24), 0);
  EXPECT_EQ(std::memcmp(checkpoint->bytes(*checkpoint->find("b")).data(), b.data(), 16), 0);
  EXPECT_EQ(checkpoint->total_bytes(), 40u);
  EXPECT_EQ(checkpoint->find("c"), nullptr);
}

TEST(Safetensors, KeepsTheBytesAfterTheirPagesWereReleased) {
  const TemporaryDirectory directory;
  std::vector<float> values(100000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto path = directory.path() / "out.safetensors";
  write_safetensors(path, {{"a", Tensor(values.data(), DType::f32, {100000})}});
  const auto checkpoint = open_safetensors(path);
  checkpoint->release(*checkpoint->find("a"));
  EXPECT_EQ(std::memcmp(checkpoint->bytes(*checkpoint->find("a")).data(), values.data(), 400000), 0);
}

TEST(Safetensors, KnowsTheTypeOfPowersOfTwo) {
  const TemporaryDirectory directory;
  const auto path =
      directory.write("x.safetensors", file_bytes(R"({"a":{"dtype":"F8_E8M0","shape":[3],"data_offsets":[0,3]}})", 3));
  const auto checkpoint = open_safetensors(path);
  EXPECT_EQ(checkpoint->find("a")->dtype, DType::f8_e8m0);
  EXPECT_EQ(checkpoint->find("a")->type_name(), "float8_e8m0");
  EXPECT_EQ(checkpoint->find("a")->byte_size(), 3u);
}

TEST(Safetensors, RefusesTruncatedFiles) {
  const std::string whole = file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(error_of(whole.substr(0, size)), "") << "cut at " << size;
  }
  EXPECT_EQ(error_of(whole), "");
  EXPECT_SAYS(error_of(whole.substr(0, whole.size() - 1)), "truncated");
}

TEST(Safetensors, RefusesAHeaderThatClaimsTooMuch) {
  std::string bytes = file_bytes("{}", 0);
  bytes[7] = '\x7f';
  EXPECT_SAYS(error_of(bytes), "more than the limit");
}

TEST(Safetensors, RefusesOverlaps) {
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                  R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                                  12)),
              "overlap");
}

TEST(Safetensors, RefusesBytesThatBelongToNoTensor) {
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9)),
              "behind the last tensor");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12)), "before tensor");
}

TEST(Safetensors, RefusesSizesThatDoNotAddUp) {
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)), "needs 12 bytes");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", 8)),
              "too large");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8)), "shape");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8)), "outside");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", 8)),
              "dimensions");
}

TEST(Safetensors, RefusesBrokenEntries) {
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}})", 8)), "dtype \"Q9\"");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8)), "\"dtype\" is missing");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":[1]})", 8)), "not an object");
  EXPECT_SAYS(error_of(file_bytes(R"([1])", 8)), "not a JSON object");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":)", 8)), "not a JSON object");
  EXPECT_SAYS(error_of(file_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                  R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                                  8)),
              "twice");
}

TEST(Safetensors, RefusesMissingPaths) {
  EXPECT_SAYS(message_of<LoadError>([] { open_safetensors("/does/not/exist"); }), "no such file");
  const TemporaryDirectory directory;
  EXPECT_SAYS(message_of<LoadError>([&] { open_safetensors(directory.path()); }), "holds no .safetensors file");
  directory.write("a.safetensors", file_bytes("{}", 0));
  directory.write("b.safetensors", file_bytes("{}", 0));
  EXPECT_SAYS(message_of<LoadError>([&] { open_safetensors(directory.path()); }), "holds 2 .safetensors files");
}

class ShardedSafetensors : public testing::Test {
 protected:
  ShardedSafetensors() {
    directory_.write("one.safetensors", file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
    directory_.write("two.safetensors", file_bytes(R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3));
  }
  std::string error_with(const std::string& weight_map) {
    directory_.write("model.safetensors.index.json", R"({"weight_map":)" + weight_map + "}");
    return message_of<LoadError>([&] { open_safetensors(directory_.path()); });
  }
  TemporaryDirectory directory_;
};

TEST_F(ShardedSafetensors, JoinsTheFilesOfAnIndex) {
  EXPECT_EQ(error_with(R"({"a":"one.safetensors","b":"two.safetensors"})"), "");
  EXPECT_EQ(open_safetensors(directory_.path())->names(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(ShardedSafetensors, RefusesAnIndexThatDoesNotMatch) {
  EXPECT_SAYS(error_with(R"({"a":"one.safetensors","b":"one.safetensors"})"), "tensor \"b\" is missing");
  EXPECT_SAYS(error_with(R"({"a":"one.safetensors","b":"three.safetensors"})"), "three.safetensors: missing");
  EXPECT_SAYS(error_with(R"({"a":"one.safetensors","c":"two.safetensors"})"), "tensor \"c\" is missing");
  EXPECT_SAYS(error_with(R"({"a":"../one.safetensors"})"), "not a plain file name");
  EXPECT_SAYS(error_with(R"({"a":1})"), "not a string");
  EXPECT_SAYS(error_with("[]"), "weight_map");
}

TEST_F(ShardedSafetensors, RefusesATensorThatTheIndexDoesNotList) {
  directory_.write("two.safetensors", file_bytes(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                                 R"("c":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                                                 3));
  EXPECT_SAYS(error_with(R"({"a":"one.safetensors","b":"two.safetensors"})"), "\"c\" is not listed");
}

TEST_F(ShardedSafetensors, RefusesATensorThatTwoFilesHold) {
  directory_.write("two.safetensors", file_bytes(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3));
  EXPECT_SAYS(error_with(R"({"a":"one.safetensors","b":"two.safetensors"})"), "is in ");
}

TEST(SafetensorsWriter, LeavesNothingBehindWhenTheDiskIsFull) {
  std::vector<float> values(1 << 16);
  const Tensor tensor(values.data(), DType::f32, {1 << 16});
  EXPECT_SAYS(message_of<Error>([&] { write_safetensors("/dev/full", {{"a", tensor}}); }), "No space left");
  EXPECT_SAYS(message_of<Error>([&] { write_safetensors("/does/not/exist/x.safetensors", {{"a", tensor}}); }),
              "cannot be created");
}

}  // namespace
}  // namespace sluice
