#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/checkpoint.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors_writer.h"
#include "formats/support_files.h"

namespace snug {
namespace {

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

std::string braces(const std::string& fields) { return fmt::format("{{{}}}", fields); }

std::string refusal(const std::string& header, int64_t data_bytes) {
  return refusal_of([&] { parse_safetensors_header(header, data_bytes, "x.safetensors"); });
}

// A file with the given header text and data.
std::string file_of(const std::string& header, const std::string& data) {
  std::string text(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(text.data(), &length, 8);
  return text + header + data;
}

TEST(SafetensorsHeader, TensorsComeInTheOrderOfTheirOffsets) {
  const auto header =
      parse_safetensors_header(braces(tensor("b", "BF16", "[2,3]", "[4,16]") + "," + tensor("a", "F32", "[]", "[0,4]") +
                                      R"(,"__metadata__":{"format":"pt"})") +
                                   "   ",
                               16, "x");
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].elements(), 1);
  EXPECT_EQ(header.tensors[1].dtype(), DType::bf16);
  EXPECT_EQ(header.tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[1].offset, 4);
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, EmptyTensorsAndFilesAreLegal) {
  EXPECT_TRUE(parse_safetensors_header("{}", 0, "x").tensors.empty());
  EXPECT_TRUE(parse_safetensors_header(R"({"__metadata__":null})", 0, "x").tensors.empty());
  EXPECT_EQ(refusal(braces(tensor("a", "F32", "[0,7]", "[0,0]") + "," + tensor("b", "U8", "[0]", "[0,0]")), 0), "accepted");
}

TEST(SafetensorsHeader, TypesWeCannotComputeWithAreListedButRefusedOnUse) {
  const auto header = parse_safetensors_header(braces(tensor("a", "F4", "[4]", "[0,2]")), 2, "x");
  EXPECT_TRUE(says(refusal_of([&] { static_cast<void>(header.tensors[0].dtype()); }), "F4, which is not supported"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "F4", "[3]", "[0,2]")), 2), "its shape and dtype make"));
}

TEST(SafetensorsHeader, HolesOverlapsAndLeftoversAreRefused) {
  const std::string a = tensor("a", "U8", "[4]", "[0,4]");
  EXPECT_TRUE(says(refusal(braces(a + "," + tensor("b", "U8", "[4]", "[5,9]")), 9), "belong to no tensor"));
  EXPECT_TRUE(says(refusal(braces(a + "," + tensor("b", "U8", "[4]", "[3,7]")), 7), "overlaps"));
  EXPECT_TRUE(says(refusal(braces(a + "," + tensor("b", "U8", "[4]", "[0,4]")), 4), "overlaps"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U8", "[4]", "[1,5]")), 5), "belong to no tensor"));
  EXPECT_TRUE(says(refusal(braces(a), 5), "after the last tensor"));
  EXPECT_TRUE(says(refusal(braces(a), 3), "promises 4 bytes of data, the file has 3"));
}

TEST(SafetensorsHeader, SizesThatDoNotAgreeOrOverflowAreRefused) {
  EXPECT_TRUE(says(refusal(braces(tensor("a", "F32", "[4]", "[0,4]")), 4), "its shape and dtype make 16"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "F32", "[4611686018427387904,4]", "[0,0]")), 0), "larger than any file"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "F32", "[1152921504606846976]", "[0,4]")), 4), "larger than any file"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U8", "[-1]", "[0,1]")), 1), "shape must be a whole number"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U8", "[1.0]", "[0,1]")), 1), "shape must be a whole number"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U8", "[4]", "[4,0]")), 4), "before it begins"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U8", "[1]", "[0,18446744073709551615]")), 4), "data_offsets"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]")), 1),
                   "more than 16 dimensions"));
}

TEST(SafetensorsHeader, MalformedHeadersAreRefused) {
  EXPECT_TRUE(says(refusal("", 0), "does not start with '{'"));
  EXPECT_TRUE(says(refusal(" {}", 0), "does not start with '{'"));
  EXPECT_TRUE(says(refusal("{", 0), "not valid JSON"));
  EXPECT_TRUE(says(refusal("{} x", 0), "not valid JSON"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U8", "[0]", "[0,0]") + "," + tensor("a", "U8", "[0]", "[0,0]")), 0),
                   "stands there twice"));
  EXPECT_TRUE(
      says(refusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0), "stands there twice"));
  EXPECT_TRUE(says(refusal(R"({"a":{"shape":[0],"data_offsets":[0,0]}})", 0), "no dtype"));
  EXPECT_TRUE(says(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0), "no shape"));
  EXPECT_TRUE(says(refusal(R"({"a":{"dtype":"U8","shape":[0]}})", 0), "no data_offsets"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U9", "[0]", "[0,0]")), 0), "unknown dtype 'U9'"));
  EXPECT_TRUE(says(refusal(braces(tensor("a", "U8", "[0]", "[0,0,0]")), 0), "two numbers"));
  EXPECT_TRUE(says(refusal(R"({"a":7})", 0), "must be an object"));
  EXPECT_TRUE(says(refusal(R"({"__metadata__":{"step":7}})", 0), "must be a string"));
}

TEST(Checkpoint, AFileOfTheReferenceWriterIsReadBackWhole) {
  const Checkpoint checkpoint(kGolden / "mixed.safetensors");
  EXPECT_EQ(checkpoint.tensors().size(), 10U);
  EXPECT_EQ(checkpoint.data_bytes(), 182);
  const TensorEntry& f32 = checkpoint.at("t.float32");
  EXPECT_EQ(f32.shape, (std::vector<int64_t>{2, 3}));
  float values[6];
  checkpoint.read(f32, 0, std::as_writable_bytes(std::span(values)));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(values[i], static_cast<float>(i));
  float last = 0;
  checkpoint.read(f32, 20, std::as_writable_bytes(std::span(&last, 1)));
  EXPECT_EQ(last, 5.0F);
  EXPECT_TRUE(
      says(refusal_of([&] { checkpoint.read(f32, 21, std::as_writable_bytes(std::span(&last, 1))); }), "were asked for"));
  EXPECT_EQ(checkpoint.find("t.float33"), nullptr);
  EXPECT_TRUE(says(refusal_of([&] { static_cast<void>(checkpoint.at("nothing")); }), "no tensor 'nothing'"));
  checkpoint.drop_behind(f32, 0, f32.bytes);
}

TEST(Checkpoint, ShardsAreReadThroughTheirIndex) {
  const Checkpoint checkpoint(kGolden / "sharded");
  EXPECT_EQ(checkpoint.files().size(), 4U);
  EXPECT_EQ(checkpoint.tensors().size(), 21U);
  EXPECT_EQ(checkpoint.at("model.layers.1.mlp.down_proj.weight").shape, (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(Checkpoint(kGolden / "tied").find("lm_head.weight"), nullptr);
}

class BrokenShards : public ::testing::Test {
 protected:
  BrokenShards() {
    std::filesystem::copy(kGolden / "sharded", scratch_.path() / "m");
    index_ = contents(scratch_ / "m/model.safetensors.index.json");
  }
  std::string open_with(const std::string& from, const std::string& to) {
    std::string text = index_;
    const size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos);
    put(scratch_ / "m/model.safetensors.index.json", text.replace(place, from.size(), to));
    return refusal_of([&] { Checkpoint checkpoint(scratch_ / "m"); });
  }
  Scratch scratch_;
  std::string index_;
};

TEST_F(BrokenShards, AMissingShardIsNamed) {
  std::filesystem::remove(scratch_ / "m/model-00003-of-00004.safetensors");
  EXPECT_TRUE(says(refusal_of([&] { Checkpoint checkpoint(scratch_ / "m"); }),
                   "shard 'model-00003-of-00004.safetensors' is missing"));
}

TEST_F(BrokenShards, TensorsThatDisagreeWithTheIndexAreNamed) {
  EXPECT_TRUE(says(open_with("\"model.norm.weight\"", "\"model.norms.weight\""), "model.norm.weight"));
  EXPECT_TRUE(says(open_with("\"weight_map\": {", "\"weight_map\": {\"extra\": \"model-00001-of-00004.safetensors\","),
                   "tensor 'extra' is not in"));
  EXPECT_TRUE(
      says(open_with("\"model.norm.weight\": \"model-00003", "\"model.norm.weight\": \"model-00001"), "but the index says"));
}

TEST_F(BrokenShards, ShardNamesCannotLeaveTheDirectory) {
  EXPECT_TRUE(
      says(open_with("\"model-00001-of-00004.safetensors\"", "\"../model.safetensors\""), "which is not a file name"));
  EXPECT_TRUE(says(open_with("\"weight_map\"", "\"weight_mop\""), "no weight_map"));
}

TEST(Checkpoint, DamagedFilesAreRefused) {
  Scratch scratch;
  const auto path = scratch / "x.safetensors";
  const auto refused = [&](const std::string& bytes) {
    put(path, bytes);
    return refusal_of([&] { Checkpoint checkpoint(path); });
  };
  const std::string whole = contents(kGolden / "mixed.safetensors");
  for (size_t length = 0; length < whole.size(); ++length) EXPECT_NE(refused(whole.substr(0, length)), "accepted") << length;
  EXPECT_EQ(refused(whole), "accepted");
  EXPECT_TRUE(says(refused(whole + "x"), "after the last tensor"));
  EXPECT_TRUE(says(refused(std::string(16, '\xff')), "not possible"));
  EXPECT_TRUE(says(refused(file_of("{}", "").replace(0, 8, std::string("\x01\xe1\xf5\x05\0\0\0\0", 8))), "not possible"));
  EXPECT_EQ(refused(file_of("{}", "")), "accepted");
}

TEST(Checkpoint, DirectoriesWithoutSafetensorsAreRefusedWithTheReason) {
  Scratch scratch;
  EXPECT_TRUE(says(refusal_of([&] { Checkpoint checkpoint(scratch.path()); }), "no model.safetensors"));
  put(scratch / "pytorch_model.bin", "x");
  EXPECT_TRUE(says(refusal_of([&] { Checkpoint checkpoint(scratch.path()); }), "pickled"));
  EXPECT_TRUE(says(refusal_of([&] { Checkpoint checkpoint(scratch / "gone"); }), "no such file"));
}

TEST(SafetensorsWriter, ReproducesTheReferenceWriterByteForByte) {
  Scratch scratch;
  for (const char* name : {"mixed.safetensors", "tied/model.safetensors", "adapter/adapter_model.safetensors"}) {
    const Checkpoint source(kGolden / name);
    std::vector<TensorToWrite> tensors;
    for (const TensorEntry& entry : source.tensors()) tensors.push_back({entry.name, entry.dtype(), entry.shape});
    std::reverse(tensors.begin(), tensors.end());
    SafetensorsWriter writer(scratch / "out", tensors);
    EXPECT_EQ(writer.file_bytes(), safetensors_file_bytes(tensors));
    for (const TensorEntry& entry : writer.order()) {
      std::vector<std::byte> data(static_cast<size_t>(entry.bytes));
      source.read(source.at(entry.name), 0, data);
      for (size_t at = 0; at < data.size(); at += 7)
        writer.write(std::span(data).subspan(at, std::min<size_t>(7, data.size() - at)));
    }
    const FileSum sum = writer.finish();
    EXPECT_EQ(contents(scratch / "out"), contents(kGolden / name)) << name;
    EXPECT_EQ(sum, checksum_file(scratch / "out"));
  }
}

TEST(SafetensorsWriter, TooManyOrTooFewBytesAreRefused) {
  Scratch scratch;
  SafetensorsWriter writer(scratch / "out", {{"a", DType::f32, {2}}});
  EXPECT_TRUE(says(refusal_of([&] { writer.finish(); }), "0 of 8 bytes"));
  writer.write(bytes_of("12345678"));
  EXPECT_TRUE(says(refusal_of([&] { writer.write(bytes_of("9")); }), "1 bytes more than the 8"));
  writer.finish();
  EXPECT_NE(refusal_of([&] { writer.write({}); }), "accepted");
}

TEST(SafetensorsWriter, ImpossibleTensorsAreRefused) {
  const auto refused = [](std::vector<TensorToWrite> tensors) {
    return refusal_of([&] { safetensors_file_bytes(tensors); });
  };
  EXPECT_TRUE(says(refused({{"a", DType::f32, {1}}, {"a", DType::u8, {1}}}), "given twice"));
  EXPECT_NE(refused({{"a", DType::f32, {-1}}}), "accepted");
  EXPECT_NE(refused({{"a", DType::f32, {INT64_MAX, 2}}}), "accepted");
  EXPECT_NE(refused({{"a", DType::u8, {INT64_MAX}}, {"b", DType::u8, {INT64_MAX}}}), "accepted");
  EXPECT_NE(refused({{"__metadata__", DType::u8, {1}}}), "accepted");
}

TEST(SafetensorsWriter, AFullDiskIsReportedWithThePath) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  EXPECT_TRUE(says(refusal_of([&] {
                     SafetensorsWriter writer("/dev/full", {{"a", DType::f32, {2}}});
                   }),
                   "/dev/full: writing failed: No space left"));
  EXPECT_TRUE(says(refusal_of([&] {
                     SafetensorsWriter writer("/nowhere/x", {{"a", DType::f32, {2}}});
                   }),
                   "/nowhere/x: the file cannot be created"));
}

}  // namespace
}  // namespace snug
