#include "weights/gguf.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/gguf_file.h"
#include "support/temporary_directory.h"
#include "weights/ggml_blocks.h"

namespace sluice {
namespace {

using test::GgufFile;
using test::message_of;
using test::raw;
using test::raw_text;
using test::TemporaryDirectory;

GgufHeader parse(const std::string& bytes) {
  return parse_gguf_header({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, bytes.size(), "x.gguf");
}

std::string gguf_error(const std::string& bytes) {
  return message_of<LoadError>([&] { parse(bytes); });
}
std::string gguf_error(const GgufFile& file) { return gguf_error(file.bytes()); }

/// Some of everything.
GgufFile sample() {
  GgufFile file;
  file.text("general.architecture", "none").u32("a.count", 7).f32("a.factor", 0.5f).boolean("a.flag", true);
  file.integers("a.sizes", {1, -2, 3}).texts("a.words", {"one", "", "three"});
  file.floats("first", {3, 2}, {1, 2, 3, 4, 5, 6}).tensor("second", {5}, 30, std::string(10, 'x'));
  return file;
}

TEST(GgufHeader, GivesBackWhatWasWritten) {
  const std::string bytes = sample().bytes();
  const GgufHeader header = parse(bytes);
  EXPECT_EQ(header.version, 3u);
  const GgufMetadata& metadata = header.metadata;
  EXPECT_EQ(metadata.values().size(), 6u);
  EXPECT_EQ(metadata.string("general.architecture"), "none");
  EXPECT_EQ(metadata.integer("a.count"), 7);
  EXPECT_EQ(metadata.number("a.count"), 7.0);
  EXPECT_EQ(metadata.number("a.factor"), 0.5);
  EXPECT_EQ(metadata.boolean("a.flag"), true);
  EXPECT_EQ(metadata.integers("a.sizes"), (std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(metadata.strings("a.words"), (std::vector<std::string_view>{"one", "", "three"}));
  EXPECT_EQ(metadata.integer("b"), std::nullopt);
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].tensor.shape, (std::vector<std::int64_t>{2, 3}));  // outermost first
  EXPECT_EQ(header.tensors[0].end - header.tensors[0].begin, 24u);
  EXPECT_EQ(header.tensors[1].tensor.dtype, DType::bf16);
  EXPECT_EQ(header.tensors[1].begin % 32, 0u);
}

TEST(GgufHeader, ReadsVersionTwo) {
  GgufFile file = sample();
  file.version = 2;
  EXPECT_EQ(gguf_error(file), "");
}

TEST(GgufHeader, ReadsEveryTypeOfValue) {
  GgufFile file;
  file.key("u8", 0, raw<std::uint8_t>(200)).key("i8", 1, raw<std::int8_t>(-3)).key("u16", 2, raw<std::uint16_t>(60000));
  file.key("i16", 3, raw<std::int16_t>(-300)).key("u32", 4, raw<std::uint32_t>(4000000000u));
  file.key("i32", 5, raw<std::int32_t>(-70000)).key("u64", 10, raw<std::uint64_t>(1ull << 40));
  file.key("i64", 11, raw<std::int64_t>(-(1ll << 40))).key("f64", 12, raw(0.25));
  file.key("big", 10, raw<std::uint64_t>(1ull << 63));
  file.key("flags", 9, raw<std::uint32_t>(7) + raw<std::uint64_t>(2) + std::string("\1\0", 2));
  const std::string bytes = file.bytes();
  const GgufMetadata metadata = parse(bytes).metadata;
  EXPECT_EQ(metadata.integer("u8"), 200);
  EXPECT_EQ(metadata.integer("i8"), -3);
  EXPECT_EQ(metadata.integer("u16"), 60000);
  EXPECT_EQ(metadata.integer("i16"), -300);
  EXPECT_EQ(metadata.integer("u32"), 4000000000);
  EXPECT_EQ(metadata.integer("i32"), -70000);
  EXPECT_EQ(metadata.integer("u64"), 1ll << 40);
  EXPECT_EQ(metadata.integer("i64"), -(1ll << 40));
  EXPECT_EQ(metadata.number("f64"), 0.25);
  EXPECT_EQ(metadata.integers("flags"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_THROW(metadata.integer("big"), LoadError);
}

TEST(GgufHeader, RefusesToDecodeArraysThatNothingNeeds) {
  GgufFile file;
  const std::uint64_t count = (1 << 24) + 1;
  file.key("a", 9, raw<std::uint32_t>(0) + raw(count) + std::string(count, 'x'));
  const std::string bytes = file.bytes();
  const GgufMetadata metadata = parse(bytes).metadata;
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.integers("a"); }), "has 16777217 elements, more than the limit");
}

TEST(GgufHeader, NamesTheKeyOfAnotherType) {
  const std::string bytes = sample().bytes();
  const GgufMetadata metadata = parse(bytes).metadata;
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.integer("a.flag"); }), "\"a.flag\" is bool, expected an integer");
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.integer("a.factor"); }), "is float32");
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.string("a.count"); }), "is uint32, expected a string");
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.integer("a.sizes"); }), "is an array of int32, expected a single");
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.integers("a.count"); }), "expected an array");
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.strings("a.sizes"); }), "expected strings");
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.integers("a.words"); }), "expected integers");
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.boolean("a.count"); }), "expected a bool");
  EXPECT_SAYS(message_of<LoadError>([&] { metadata.number("a.flag"); }), "expected a number");
}

TEST(GgufHeader, RefusesTruncatedFiles) {
  const std::string whole = sample().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(gguf_error(whole.substr(0, size)), "") << "cut at " << size;
  }
  EXPECT_SAYS(gguf_error(whole.substr(0, whole.size() - 1)), "truncated");
  EXPECT_SAYS(gguf_error(whole.substr(0, 20)), "truncated");
}

TEST(GgufHeader, NoChangedByteReadsPastTheEnd) {
  const std::string whole = sample().bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char value : {'\x00', '\x01', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[i] = value;
      try {
        for (const FileTensor& entry : parse(changed).tensors) EXPECT_LE(entry.end, changed.size());
      } catch (const LoadError&) {
      }
    }
  }
}

TEST(GgufHeader, RefusesOtherFilesAndVersions) {
  GgufFile file;
  file.magic = "GGML";
  EXPECT_SAYS(gguf_error(file), "no GGUF file");
  file.magic = "GGUF";
  file.version = 1;
  EXPECT_SAYS(gguf_error(file), "version 1; supported are 2 and 3");
  file.version = 4;
  EXPECT_SAYS(gguf_error(file), "version 4");
  file.version = 0x03000000;
  EXPECT_SAYS(gguf_error(file), "big-endian");
}

TEST(GgufHeader, RefusesCountsThatClaimTooMuch) {
  GgufFile file = sample();
  file.extra_keys = 1;
  EXPECT_NE(gguf_error(file), "");
  file.extra_keys = ~std::uint64_t{0} - 10;
  EXPECT_SAYS(gguf_error(file), "keys, more than the limit");
  file.extra_keys = 0;
  file.extra_tensors = 1;
  EXPECT_NE(gguf_error(file), "");
  file.extra_tensors = ~std::uint64_t{0} - 10;
  EXPECT_SAYS(gguf_error(file), "tensors, more than the limit");
  file = GgufFile();
  file.key("a", 8, raw(~std::uint64_t{0}) + "abc");
  EXPECT_SAYS(gguf_error(file), "truncated");
  file = GgufFile();
  file.key("a", 9, raw<std::uint32_t>(5) + raw(~std::uint64_t{0}) + "abc");
  EXPECT_SAYS(gguf_error(file), "elements, for which");
  file = GgufFile();
  file.key("a", 9, raw<std::uint32_t>(8) + raw<std::uint64_t>(2) + raw_text("only one") + raw<std::uint64_t>(9));
  EXPECT_SAYS(gguf_error(file), "truncated");
}

TEST(GgufHeader, RefusesBrokenKeys) {
  EXPECT_SAYS(gguf_error(sample().u32("a.count", 8)), "key \"a.count\" stands there twice");
  EXPECT_SAYS(gguf_error(GgufFile().u32("", 8)), "printable ASCII");
  EXPECT_SAYS(gguf_error(GgufFile().u32("a\nb", 8)), "printable ASCII");
  EXPECT_SAYS(gguf_error(GgufFile().u32(std::string(1000, 'a'), 8)), "printable ASCII");
  EXPECT_SAYS(gguf_error(GgufFile().key("a", 13, "")), "unknown value type 13");
  EXPECT_SAYS(gguf_error(GgufFile().key("a", 9, raw<std::uint32_t>(99) + raw<std::uint64_t>(0))),
              "unknown value type 99");
  EXPECT_SAYS(gguf_error(GgufFile().key("a", 9, raw<std::uint32_t>(9) + raw<std::uint64_t>(0))), "array of arrays");
}

TEST(GgufHeader, RefusesBrokenTensors) {
  EXPECT_SAYS(gguf_error(sample().zeros("first", {1})), "tensor \"first\" stands there twice");
  EXPECT_SAYS(gguf_error(GgufFile().zeros("", {1})), "printable ASCII");
  EXPECT_SAYS(gguf_error(GgufFile().entry("a", {}, 0, 0)), "0 dimensions, expected 1 to 4");
  EXPECT_SAYS(gguf_error(GgufFile().entry("a", {1, 1, 1, 1, 1}, 0, 0)), "5 dimensions");
  EXPECT_SAYS(gguf_error(GgufFile().entry("a", {2, 0}, 0, 0)), "dimension of 0");
  EXPECT_SAYS(gguf_error(GgufFile().entry("a", {-1}, 0, 0)), "dimension of -1");
  EXPECT_SAYS(gguf_error(GgufFile().entry("a", {1ll << 40, 1ll << 40}, 0, 0)), "too large");
  EXPECT_SAYS(gguf_error(GgufFile().entry("a", {1ll << 62}, 0, 0)), "too large");
  EXPECT_SAYS(gguf_error(GgufFile().entry("a", {4}, 4711, 0)), "type 4711 of ggml, which is not supported");
}

TEST(GgufHeader, RefusesOffsetsThatDoNotFit) {
  GgufFile file;
  file.data() = std::string(128, 'x');
  EXPECT_EQ(gguf_error(GgufFile(file).entry("a", {32}, 0, 0)), "");
  EXPECT_SAYS(gguf_error(GgufFile(file).entry("a", {33}, 0, 0)), "outside the file's 128 bytes");
  EXPECT_SAYS(gguf_error(GgufFile(file).entry("a", {32}, 0, 32)), "outside");
  EXPECT_SAYS(gguf_error(GgufFile(file).entry("a", {1}, 0, ~std::uint64_t{31})), "outside");
  EXPECT_SAYS(gguf_error(GgufFile(file).entry("a", {1}, 0, 4)), "not a multiple of the alignment 32");
  EXPECT_SAYS(gguf_error(GgufFile(file).entry("a", {9}, 0, 0).entry("b", {1}, 0, 32)), "\"a\" and \"b\" overlap");
  EXPECT_SAYS(gguf_error(GgufFile(file).entry("a", {1}, 0, 32).entry("b", {1}, 0, 32)), "overlap");
}

TEST(GgufHeader, HonoursTheAlignment) {
  GgufFile file;
  file.alignment = 64;
  file.u32("general.alignment", 64).zeros("a", {1}).zeros("b", {1});
  const std::string bytes = file.bytes();
  EXPECT_EQ(parse(bytes).tensors[1].begin % 64, 0u);
  for (const std::uint32_t wrong : {0u, 4u, 24u, 33u}) {
    EXPECT_SAYS(gguf_error(GgufFile().u32("general.alignment", wrong)), "power of two");
  }
  EXPECT_SAYS(gguf_error(GgufFile().text("general.alignment", "32")), "expected an integer");
}

TEST(GgufHeader, KnowsEveryTypeOfPlainNumbers) {
  const std::pair<std::uint32_t, DType> types[] = {{0, DType::f32},  {1, DType::f16},  {24, DType::i8},
                                                   {25, DType::i16}, {26, DType::i32}, {27, DType::i64},
                                                   {28, DType::f64}, {30, DType::bf16}};
  for (const auto& [id, dtype] : types) {
    const std::string bytes = GgufFile().tensor("a", {3}, id, std::string(3 * size_of(dtype), 'x')).bytes();
    const FileTensor entry = parse(bytes).tensors.at(0);
    EXPECT_EQ(entry.tensor.dtype, dtype);
    EXPECT_EQ(entry.end, bytes.size());
    EXPECT_EQ(entry.tensor.block_type, nullptr);
  }
}

TEST(GgufHeader, KnowsEveryBlockType) {
  for (const BlockType& type : block_types()) {
    const std::string data(static_cast<std::size_t>(6 * type.bytes), 'x');
    const std::string bytes = GgufFile().tensor("a", {2 * type.values, 3}, type.id, data).bytes();
    const FileTensor entry = parse(bytes).tensors.at(0);
    EXPECT_EQ(entry.tensor.block_type, &type);
    EXPECT_EQ(entry.end, bytes.size());
    if (type.values == 1) continue;
    EXPECT_SAYS(gguf_error(GgufFile().tensor("a", {2 * type.values + 1, 3}, type.id, data)), "not a multiple");
  }
}

class GgufFiles : public testing::Test {
 protected:
  static GgufFile part(std::uint16_t number, std::uint16_t count) {
    GgufFile file;
    file.u16("split.no", number).u16("split.count", count).i32("split.tensors.count", 2);
    return file;
  }
  void SetUp() override {
    directory_.write("m-00001-of-00002.gguf", part(0, 2).text("name", "set").floats("a", {1}, {1.0f}).bytes());
    directory_.write("m-00002-of-00002.gguf", part(1, 2).floats("b", {1}, {2.0f}).bytes());
  }
  std::string error() {
    return message_of<LoadError>([&] { GgufCheckpoint(directory_.path() / "m-00001-of-00002.gguf"); });
  }
  TemporaryDirectory directory_;
};

TEST_F(GgufFiles, OneFileIsMapped) {
  const auto path = directory_.write("one.gguf", sample().bytes());
  const GgufCheckpoint checkpoint(path);
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"first", "second"}));
  const StoredTensor& first = *checkpoint.find("first");
  const std::vector<float> expected{1, 2, 3, 4, 5, 6};
  ASSERT_EQ(checkpoint.bytes(first).size(), 24u);
  EXPECT_EQ(std::memcmp(checkpoint.bytes(first).data(), expected.data(), 24), 0);
  checkpoint.release(first);
  EXPECT_EQ(std::memcmp(checkpoint.bytes(first).data(), expected.data(), 24), 0);
  EXPECT_EQ(checkpoint.total_bytes(), 34u);
  EXPECT_EQ(checkpoint.metadata().integer("a.count"), 7);
  EXPECT_EQ(first.source, path.string());
}

TEST_F(GgufFiles, ASetIsFoundFromItsFirstFile) {
  const GgufCheckpoint checkpoint(directory_.path() / "m-00001-of-00002.gguf");
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(checkpoint.metadata().string("name"), "set");
  float value = 0;
  std::memcpy(&value, checkpoint.bytes(*checkpoint.find("b")).data(), sizeof value);
  EXPECT_EQ(value, 2.0f);
}

TEST_F(GgufFiles, ALaterFilePointsAtTheFirst) {
  EXPECT_SAYS(message_of<LoadError>([&] { GgufCheckpoint(directory_.path() / "m-00002-of-00002.gguf"); }),
              "is file 2 of 2 of a set; name the first");
}

TEST_F(GgufFiles, AMissingFileIsNamed) {
  std::filesystem::remove(directory_.path() / "m-00002-of-00002.gguf");
  EXPECT_SAYS(error(), "m-00002-of-00002.gguf: missing");
}

TEST_F(GgufFiles, FilesOfAnotherSetAreRefused) {
  directory_.write("m-00002-of-00002.gguf", part(1, 3).zeros("b", {1}).bytes());
  EXPECT_SAYS(error(), "says that it is file 2 of 3, expected 2 of 2");
  directory_.write("m-00002-of-00002.gguf", part(1, 2).zeros("a", {1}).bytes());
  EXPECT_SAYS(error(), "tensor \"a\" is in");
  directory_.write("m-00002-of-00002.gguf", part(1, 2).zeros("b", {1}).zeros("c", {1}).bytes());
  EXPECT_SAYS(error(), "hold 3 tensors, \"split.tensors.count\" says 2");
  directory_.write("m-00002-of-00002.gguf", "GGUF");
  EXPECT_SAYS(error(), "truncated");
}

TEST_F(GgufFiles, ASetUnderAnotherNameIsRefused) {
  directory_.write("renamed.gguf", part(0, 2).zeros("a", {1}).bytes());
  EXPECT_SAYS(message_of<LoadError>([&] { GgufCheckpoint(directory_.path() / "renamed.gguf"); }),
              "must end in -00001-of-00002.gguf");
  directory_.write("wrong.gguf", part(5, 2).zeros("a", {1}).bytes());
  EXPECT_SAYS(message_of<LoadError>([&] { GgufCheckpoint(directory_.path() / "wrong.gguf"); }), "do not fit");
}

TEST(GgufNames, HaveNoPartNumber) {
  EXPECT_EQ(gguf_name("x/Model-9B-00001-of-00003.gguf"), "Model-9B");
  EXPECT_EQ(gguf_name("Model.gguf"), "Model");
  EXPECT_EQ(gguf_name("-00001-of-00003.gguf"), "-00001-of-00003");
  EXPECT_EQ(gguf_name("m-00004-of-00003.gguf"), "m-00004-of-00003");
  EXPECT_TRUE(is_later_gguf_part("m-00002-of-00003.gguf"));
  EXPECT_FALSE(is_later_gguf_part("m-00001-of-00003.gguf"));
  EXPECT_FALSE(is_later_gguf_part("m.gguf"));
}

}  // namespace
}  // namespace sluice
