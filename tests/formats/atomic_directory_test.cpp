#include "formats/atomic_directory.h"

#include <gtest/gtest.h>

#include "formats/file.h"
#include "formats/manifest.h"
#include "formats/support_files.h"

namespace snug {
namespace {

int64_t entries(const std::filesystem::path& path) {
  return std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator());
}

TEST(AtomicDirectory, NothingIsSeenBeforeCommit) {
  Scratch scratch;
  {
    AtomicDirectory directory(scratch / "deep/checkpoint-1/");
    put(directory.path() / "a", "new");
    EXPECT_FALSE(std::filesystem::exists(scratch / "deep/checkpoint-1"));
    directory.commit();
    EXPECT_NE(refusal_of([&] { directory.commit(); }), "accepted");
  }
  EXPECT_EQ(contents(scratch / "deep/checkpoint-1/a"), "new");
  EXPECT_EQ(entries(scratch / "deep"), 1);
}

TEST(AtomicDirectory, WithoutCommitNothingIsLeft) {
  Scratch scratch;
  {
    AtomicDirectory directory(scratch / "c");
    put(directory.path() / "a", "new");
  }
  EXPECT_EQ(entries(scratch.path()), 0);
}

TEST(AtomicDirectory, WhatStoodThereIsReplacedAsAWhole) {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "c");
  put(scratch / "c/old", "old");
  AtomicDirectory directory(scratch / "c");
  put(directory.path() / "a", "new");
  directory.commit();
  EXPECT_EQ(contents(scratch / "c/a"), "new");
  EXPECT_FALSE(std::filesystem::exists(scratch / "c/old"));
  EXPECT_EQ(entries(scratch.path()), 1);
}

TEST(AtomicDirectory, ImpossiblePlacesAreNamed) {
  Scratch scratch;
  put(scratch / "file", "x");
  EXPECT_TRUE(says(refusal_of([&] { AtomicDirectory directory(scratch / "file/c"); }), "cannot be created"));
  EXPECT_NE(refusal_of([&] { AtomicDirectory(scratch / "file").commit(); }), "accepted");
  EXPECT_EQ(contents(scratch / "file"), "x");
}

TEST(AtomicDirectory, LeftoversAreRemovedAndNothingElse) {
  Scratch scratch;
  std::filesystem::create_directories(scratch / "c.tmp-17");
  put(scratch / "c.tmp-17" / "a", "x");
  put(scratch / "snug.json.tmp-18", "x");
  for (const char* name : {"c.tmp-", "c.tmp-x1", "c"}) std::filesystem::create_directory(scratch / name);
  EXPECT_EQ(remove_temporaries(scratch.path()), 2);
  EXPECT_EQ(entries(scratch.path()), 3);
  EXPECT_EQ(remove_temporaries("/nowhere"), 0);
}

TEST(AtomicFile, IsReplacedAndLeavesNothingBeside) {
  Scratch scratch;
  write_file_atomically(scratch / "f", "one");
  write_file_atomically(scratch / "f", "two");
  EXPECT_EQ(contents(scratch / "f"), "two");
  EXPECT_EQ(entries(scratch.path()), 1);
  EXPECT_NE(refusal_of([] { write_file_atomically("/nowhere/f", "x"); }), "accepted");
  std::filesystem::create_directory(scratch / "d");
  EXPECT_NE(refusal_of([&] { write_file_atomically(scratch / "d", "x"); }), "accepted");
  EXPECT_EQ(entries(scratch.path()), 2);
}

TEST(File, OnlyRegularFilesAreReadAndOnlyToTheirEnd) {
  Scratch scratch;
  EXPECT_TRUE(says(refusal_of([&] { open_to_read(scratch.path()); }), "not a regular file"));
  put(scratch / "f", "abc");
  const UniqueFd fd = open_to_read(scratch / "f");
  std::byte buffer[4];
  EXPECT_TRUE(
      says(refusal_of([&] { read_at(fd.get(), 0, buffer, scratch / "f"); }), "the file ends at byte 3, 1 too early"));
  EXPECT_TRUE(says(refusal_of([&] { read_text_file(scratch / "f", 2); }), "more than the 2"));
}

Manifest sample(const Scratch& scratch) {
  put(scratch / "model.safetensors", std::string(3'000'000, 'm'));
  put(scratch / "empty", "");
  Manifest manifest{.version = "0.1.0", .step = 12};
  for (const char* name : {"model.safetensors", "empty"}) manifest.files[name] = checksum_file(scratch / name);
  manifest.state = {
      {"loss", 0.1 + 0.2}, {"rows", int64_t{1} << 60}, {"seed", std::string("18446744073709551615")}, {"whole", 2.0}};
  write_manifest(scratch.path(), manifest);
  return manifest;
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  Scratch scratch;
  const Manifest written = sample(scratch);
  const Manifest read = verify_manifest(scratch.path());
  EXPECT_EQ(read.version, "0.1.0");
  EXPECT_EQ(read.step, 12);
  EXPECT_EQ(read.files, written.files);
  EXPECT_EQ(read.state, written.state);
  EXPECT_EQ(read.number("loss"), 0.1 + 0.2);
  EXPECT_EQ(read.integer("rows"), int64_t{1} << 60);
  EXPECT_TRUE(says(refusal_of([&] { static_cast<void>(read.text("rows")); }), "is not text"));
  EXPECT_TRUE(says(refusal_of([&] { static_cast<void>(read.text("x")); }), "no 'x'"));
}

TEST(Manifest, TheDamagedFileIsNamed) {
  Scratch scratch;
  sample(scratch);
  std::string bytes = contents(scratch / "model.safetensors");
  bytes[2'500'000] ^= 1;
  put(scratch / "model.safetensors", bytes);
  EXPECT_TRUE(says(refusal_of([&] { verify_manifest(scratch.path()); }), "model.safetensors: the file's checksum is wrong"));
  put(scratch / "model.safetensors", "short");
  EXPECT_TRUE(says(refusal_of([&] { verify_manifest(scratch.path()); }), "has 5 bytes instead of 3000000"));
  std::filesystem::remove(scratch / "empty");
  EXPECT_TRUE(says(refusal_of([&] { verify_manifest(scratch.path()); }), "empty: the file is missing"));
}

TEST(Manifest, MalformedManifestsAreRefused) {
  const auto refused = [](const std::string& header) { return refusal_of([&] { parse_manifest(header, "snug.json"); }); };
  const std::string rest = R"(,"snug":"0","step":0,"files":{},"state":{}})";
  EXPECT_EQ(refused(R"({"format":1)" + rest), "accepted");
  EXPECT_TRUE(says(refused(R"({"format":2)" + rest), "format 2 is newer"));
  EXPECT_TRUE(says(refused(R"({"format":0)" + rest), "format must be"));
  EXPECT_TRUE(says(refused("{}"), "'format' is missing"));
  for (const char* file : {R"("../x":{"bytes":1,"xxh3":"0000000000000000"})",
                           R"("x":{"bytes":-1,"xxh3":"0000000000000000"})", R"("x":{"bytes":1,"xxh3":"00"})",
                           R"("x":{"bytes":1})", R"("x":7)", R"("x":{"bytes":1,"xxh3":"000000000000000g"})"}) {
    EXPECT_NE(refused(std::string(R"({"format":1,"snug":"0","step":0,"state":{},"files":{)") + file + "}}"), "accepted")
        << file;
  }
  EXPECT_NE(refused(R"({"format":1,"snug":"0","step":0,"files":{},"state":{"a":[]}})"), "accepted");
  Scratch scratch;
  EXPECT_TRUE(says(refusal_of([&] { read_manifest(scratch.path()); }), "no snug.json"));
  EXPECT_NE(refusal_of([&] { write_manifest(scratch.path(), {.version = "0", .state = {{"a", 1.0 / 0.0}}}); }), "accepted");
}

}  // namespace
}  // namespace snug
