#include "formats/pickle.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/support_files.h"
#include "formats/support_pickle.h"

namespace snug {
namespace {

const std::filesystem::path kPickles = SNUG_SOURCE_DIR "/tests/golden/pickle";

using std::string_literals::operator""s;

std::string read(const std::string& pickle, const PickleLimits& limits = {}) {
  KeepingBuilder builder;
  return builder.render(read_pickle(bytes_of(pickle), "hostile.pickle", builder, limits));
}

std::string pickle_refusal(const std::string& pickle, const PickleLimits& limits = {}) {
  return refusal_of([&] { read(pickle, limits); });
}

// --- what Python writes ---

class PythonPickle : public ::testing::TestWithParam<std::string> {};

TEST_P(PythonPickle, HoldsWhatPythonPutIntoIt) {
  const auto texts = nlohmann::json::parse(contents(kPickles / "values.json"));
  const std::filesystem::path path = kPickles / ("values_" + GetParam() + ".pickle");
  KeepingBuilder from_file;
  const std::string expected = texts.at(GetParam());
  EXPECT_EQ(from_file.render(read_pickle(path, from_file)), expected);
  EXPECT_EQ(read(contents(path)), expected);
}

TEST_P(PythonPickle, IsRefusedWhereverItIsCutOff) {
  const std::string whole = contents(kPickles / ("values_" + GetParam() + ".pickle"));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::string refused = pickle_refusal(whole.substr(0, bytes));
    ASSERT_TRUE(says(refused, "hostile.pickle, byte ")) << bytes;
  }
  EXPECT_TRUE(says(pickle_refusal(whole + "."), "1 bytes follow the end of the pickle"));
}

INSTANTIATE_TEST_SUITE_P(Protocols, PythonPickle, ::testing::Values("2", "3", "4", "5"),
                         [](const auto& name) { return "protocol_" + name.param; });

// --- what executes ---

TEST(Pickle, NamesWhatAFileWantsToCall) {
  const std::string names = "this file wants to call os.system (a memory snapshot holds plain data only";
  EXPECT_TRUE(
      says(pickle_refusal("\x80\x02"s + "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."s), "hostile.pickle, byte 2: " + names));
  EXPECT_TRUE(says(pickle_refusal("cos\nsystem\n(S'ls'\ntR."), "hostile.pickle, byte 0: " + names));
  EXPECT_TRUE(says(pickle_refusal("\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x8c\x02ls\x85R."s), "byte 16: " + names));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02(ios\nsystem\n."s), "byte 3: " + names));
}

TEST(Pickle, RefusesEveryOpcodeThatBuildsObjectsByName) {
  const std::vector<std::pair<std::string, std::string>> opcodes = {{"R", "REDUCE"},
                                                                    {"b", "BUILD"},
                                                                    {"o", "OBJ"},
                                                                    {"\x81", "NEWOBJ"},
                                                                    {"\x92", "NEWOBJ_EX"},
                                                                    {"\x82\x01", "EXT1"},
                                                                    {"\x83\x01\x00"s, "EXT2"},
                                                                    {"\x84\x01\x00\x00\x00"s, "EXT4"},
                                                                    {"P12\n", "PERSID"},
                                                                    {"Q", "BINPERSID"},
                                                                    {"\x97", "NEXT_BUFFER"},
                                                                    {"\x98", "READONLY_BUFFER"}};
  for (const auto& [bytes, name] : opcodes) {
    EXPECT_TRUE(says(pickle_refusal("\x80\x04NN" + bytes + "."), "byte 4: the opcode " + name + " ")) << name;
    EXPECT_TRUE(says(pickle_refusal("\x80\x04NN" + bytes + "."), "is not plain data")) << name;
  }
  for (const auto& [bytes, name] : std::vector<std::pair<std::string, std::string>>{
           {"I1\n", "INT"}, {"L1L\n", "LONG"}, {"F1\n", "FLOAT"}, {"S'a'\n", "STRING"}, {"Va\n", "UNICODE"}})
    EXPECT_TRUE(says(pickle_refusal("\x80\x02" + bytes + "."), "the opcode " + name + " belongs to protocols 0 and 1"))
        << name;
  EXPECT_TRUE(says(pickle_refusal("\x80\x02\xff."), "byte 255 is no pickle opcode"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x04\x88\x88\x93."), "STACK_GLOBAL without two names"));
}

// --- what is no pickle ---

TEST(Pickle, RefusesOtherFilesAndProtocols) {
  EXPECT_TRUE(says(pickle_refusal(""), "this is no pickle of protocol 2 to 5"));
  EXPECT_TRUE(says(pickle_refusal("Traceback (most recent call last):"), "this is no pickle of protocol 2 to 5"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x01N."), "pickle protocol 1 is not known"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x06N."), "pickle protocol 6 is not known"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02."), "the pickle ends with 0 values"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02NN."), "the pickle ends with 2 values"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02(N."), "the pickle ends with"));
}

TEST(Pickle, RefusesLengthsBeyondTheFileBeforeItAllocates) {
  for (const std::string opcode : {"X", "B", "T"})
    EXPECT_TRUE(says(pickle_refusal("\x80\x04" + opcode + "\xff\xff\xff\x7f" + "abc."),
                     "a length of 2147483647 bytes, where the file has 4 left"));
  for (const std::string opcode : {"\x8d", "\x8e", "\x96"})
    EXPECT_TRUE(says(pickle_refusal("\x80\x04" + opcode + "\xff\xff\xff\xff\xff\xff\xff\xff" + "abc."),
                     "a length of 18446744073709551615 bytes, where the file has 4 left"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02\x8b\xff\xff\xff\x7fN."), "a length of 2147483647 bytes"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02\x8b\xff\xff\xff\xffN."), "an integer of a negative length"));
  EXPECT_TRUE(
      says(pickle_refusal("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN."), "a frame of 18446744073709551615 bytes"));
}

TEST(Pickle, RefusesWhatTakesMoreThanThereIs) {
  for (const std::string bytes :
       {"0", "2", "a", "s", "\x85", "\x86", "\x87", "N\x86", "NN\x87", "q\x01", "\x94", "(\x94", "N(\x85"})
    EXPECT_TRUE(says(pickle_refusal("\x80\x04" + bytes + "."), "takes more values than there are")) << bytes;
  for (const std::string bytes : {"t", "e", "u", "l", "d", "1", "\x90", "\x91"})
    EXPECT_TRUE(says(pickle_refusal("\x80\x04]" + bytes + "."), "up to a mark, and there is none")) << bytes;
  for (const std::string bytes : {"NNa", "}Na", "]NNs", "](NNu", "}(Ne", "N(Ne", "(Ne", "](\x90", "Na"})
    EXPECT_TRUE(says(pickle_refusal("\x80\x04" + bytes + "."), "that is not there")) << bytes;
  EXPECT_TRUE(says(pickle_refusal("\x80\x02}(Nu."), "a key without a value"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02h\x07."), "memo 7 was never written"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02j\xff\xff\xff\xff."), "memo 4294967295 was never written"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02Nr\xff\xff\xff\xff."), "memo 4294967295 follows 0"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02Nq\x05h\x03."), "memo 3 was never written"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02gx\n."), "a memo number that is no number"));
}

TEST(Pickle, ReadsTheRarerWaysToWritePlainData) {
  EXPECT_EQ(read("\x80\x02(K\x01K\x02l."s), "[1,2]");
  EXPECT_EQ(read("\x80\x02(K\x01K\x02"
                 "d."s),
            "{1:2}");
  EXPECT_EQ(read("\x80\x02K\x01p7\n0g7\n."s), "1");
  EXPECT_EQ(read("\x80\x02U\x03"
                 "abcT\x02\x00\x00\x00xy\x86."s),
            "(\"abc\",\"xy\")");
  EXPECT_EQ(read("\x80\x02K\x01"
                 "2\x86."s),
            "(1,1)");
  EXPECT_EQ(read("\x80\x02](K\x01"
                 "1K\x02"
                 "a."s),
            "[2]");
}

// --- what is meant to exhaust ---

TEST(Pickle, StaysWithinItsLimits) {
  EXPECT_TRUE(says(pickle_refusal("\x80\x02" + std::string(100'000, '(')), "nested deeper than 10000"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02" + std::string(1000, 'N'), {.stacked = 100}), "more than 100 values wait"));
  EXPECT_TRUE(
      says(pickle_refusal("\x80\x04N" + std::string(1000, '\x94'), {.memoized = 100}), "more than 100 memo entries"));
  EXPECT_TRUE(says(pickle_refusal("\x80\x02X\x65\x00\x00\x00"s + std::string(101, 'x') + ".", {.text_bytes = 100}),
                   "a value of 101 bytes; no more than 100 are read"));
  std::string nested = "\x80\x02";  // Python's pickler gives up at a depth of 1000
  for (int i = 0; i < 9000; ++i) nested += "](";
  for (int i = 0; i < 9000; ++i) nested += "e";
  KeepingBuilder builder;
  EXPECT_TRUE(read_pickle(bytes_of(nested + "."), "nested.pickle", builder).is(PickleKind::list));
}

TEST(Pickle, ReadsValuesThatSpanTheBuffer) {
  const Scratch scratch;
  const std::string text(3'000'000, 'z');
  std::string pickle = "\x80\x04(";
  for (int i = 0; i < 3; ++i) pickle += "X\xc0\xc6\x2d\x00"s + text;
  put(scratch / "long.pickle", pickle + "t.");
  KeepingBuilder builder;
  EXPECT_EQ(builder.render(read_pickle(scratch / "long.pickle", builder)).size(), 3 * (text.size() + 2) + 4);
  put(scratch / "cut.pickle", pickle.substr(0, 5'000'000));
  EXPECT_TRUE(says(refusal_of([&] { read_pickle(scratch / "cut.pickle", builder); }),
                   "cut.pickle, byte 3000008: a length of 3000000 bytes"));
}

}  // namespace
}  // namespace snug
