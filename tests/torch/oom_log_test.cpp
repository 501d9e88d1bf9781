#include "torch/oom_log.h"

#include <gtest/gtest.h>

#include <string>

#include "torch/support_oom_texts.h"

namespace snug::torch_tests {

namespace {

constexpr std::string_view kMessage =
    "CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has a total capacity of 23.68 GiB of which 2.38 GiB is free. Of "
    "the "
    "allocated memory 20.16 GiB is allocated by PyTorch, and 544.12 MiB is reserved by PyTorch but unallocated.";

std::string utf16(std::string_view text, bool big) {
  std::string out = big ? "\xFE\xFF" : "\xFF\xFE";
  for (const char c : text) {
    if (big) out += '\0';
    out += c;
    if (!big) out += '\0';
  }
  return out;
}

void expect_whole(const OomLog& log) {
  ASSERT_TRUE(log.first);
  EXPECT_EQ(log.cause().tried_bytes, gib(3.91));
  EXPECT_EQ(log.cause().capacity_bytes, gib(23.68));
  EXPECT_EQ(log.cause().free_bytes, gib(2.38));
  EXPECT_EQ(log.cause().allocated_bytes, gib(20.16));
  EXPECT_EQ(log.cause().unallocated_bytes, mib(544.12));
}

}  // namespace

TEST(OomLog, AKillIsKnownInBoldLettersToo) {
  for (const char* text : {"step 3\n**Killed**\n", "`Killed`\n", "step\n Killed\n"})
    EXPECT_EQ(read_oom_log(text).count, 1) << text;
  EXPECT_EQ(read_oom_log("**Killed** by the authors\n").count, 0);
}

TEST(OomLog, FindsAMessageInAnyDress) {
  const std::string message(kMessage);
  for (const std::string& text : {
           "[rank1]: torch.OutOfMemoryError: " + message + "\r\n",
           "ERROR 04-01 23:46:56 [engine.py:160] torch.OutOfMemoryError: " + message,
           "2025-11-14T03:12:34.1234567Z torch.OutOfMemoryError: " + message + "\n",
           "\x1b[31mtorch.OutOfMemoryError\x1b[0m: \x1b[1m" + message + "\x1b[0m\n",
           "[0;31mOutOfMemoryError[0m: " + message + "\n",
           "\r 10%|#  | 1/10\r 20%|##  | 2/10\rtorch.OutOfMemoryError: " + message + "\r 30%|###| 3/10",
           "\xff\xfe\x80garbage " + message + " \xc3\x28\n",
           "{\"level\": \"error\", \"message\": \"" + message + "\\n\"}\n",
           "      \"\\u001b[0;31mOutOfMemoryError\\u001b[0m: " + message + "\"\n",
           "E       torch.OutOfMemoryError: " + message + "\n",
       })
    expect_whole(read_oom_log(text));
}

TEST(OomLog, ReadsUtf16AndFilesThatChangeTheirEncoding) {
  const std::string line = "torch.OutOfMemoryError: " + std::string(kMessage) + "\r\n";
  expect_whole(read_oom_log(utf16(line, false)));
  expect_whole(read_oom_log(utf16(line, true)));
  expect_whole(read_oom_log("started\r\n" + utf16(line, false)));
}

TEST(OomLog, LinesAreCountedAsEditorsCountThem) {
  const OomLog log = read_oom_log("one\r\ntwo\r\n\r\nbar\rbar\rbar\r\n" + std::string(kMessage));
  ASSERT_TRUE(log.first);
  EXPECT_EQ(log.cause().line, 5);
}

TEST(OomLog, TheFirstIsTheCauseAndRanksAreListed) {
  std::string text;
  for (int rank = 3; rank >= 0; --rank) text += "[rank" + std::to_string(rank) + "]: " + std::string(kMessage) + "\n";
  const OomLog log = read_oom_log(text);
  EXPECT_EQ(log.count, 4);
  EXPECT_EQ(log.cause().rank, 3);
  EXPECT_EQ(log.ranks(), (std::vector<int>{0, 1, 2, 3}));
}

TEST(OomLog, AHintBeforeAMessageIsNotTheCause) {
  const OomLog log = read_oom_log("worker exited with code 137\n" + std::string(kMessage) + "\nKilled\n");
  ASSERT_TRUE(log.first);
  EXPECT_EQ(log.cause().source, OomSource::torch_cuda);
  EXPECT_EQ(log.count, 3);
}

TEST(OomLog, PiecesOfAnySizeGiveTheSame) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "step " + std::to_string(i) + " loss 1.0\r\n";
  text += "[rank2]: " + std::string(kMessage) + "\r\nmore\r\n";
  const OomLog whole = read_oom_log(text);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}}) {
    OomLogReader reader;
    for (size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
    const OomLog log = reader.finish();
    expect_whole(log);
    EXPECT_EQ(log.cause().line, whole.cause().line);
    EXPECT_EQ(log.around, whole.around);
  }
}

TEST(OomLog, ALineOfAHundredMegabytesTakesLittleMemory) {
  OomLogReader reader;
  const std::string noise(size_t{1} << 20, 'x');
  for (int i = 0; i < 60; ++i) reader.feed(noise);
  reader.feed(" " + std::string(kMessage) + " ");
  for (int i = 0; i < 40; ++i) reader.feed(noise);
  const OomLog log = reader.finish();
  expect_whole(log);
  EXPECT_LE(log.around.size(), size_t{640} << 10);
}

TEST(OomLog, AMessageFarBackInALongLogIsFoundWithItsSurroundings) {
  OomLogReader reader;
  std::string noise;
  for (int i = 0; i < 20000; ++i) noise += "step " + std::to_string(i) + ": loss 1.234, memory 12.3 GiB allocated\n";
  for (int i = 0; i < 8; ++i) reader.feed(noise);
  reader.feed("  File \"train.py\", line 7, in main\n" + std::string(kMessage) + "\n");
  for (int i = 0; i < 8; ++i) reader.feed(noise);
  const OomLog log = reader.finish();
  expect_whole(log);
  EXPECT_EQ(log.cause().line, 160002);
  EXPECT_EQ(log.around.substr(log.at, 18), "CUDA out of memory");
  EXPECT_NE(log.around.rfind("train.py", log.at), std::string::npos);
}

TEST(OomLog, ManyMessagesAreCountedAndFewKept) {
  OomLogReader reader;
  for (int i = 0; i < 3000; ++i) reader.feed("torch.OutOfMemoryError: " + std::string(kMessage) + "\n");
  const OomLog log = reader.finish();
  EXPECT_EQ(log.count, 3000);
  EXPECT_LE(log.messages.size(), 256u);
  EXPECT_EQ(log.cause().line, 1);
}

TEST(OomLog, AMessageWithFiguresGoesBeforeItsWordsAlone) {
  const std::string whole = "torch.OutOfMemoryError: " + std::string(kMessage) + "\n";
  expect_whole(read_oom_log("I keep getting \"CUDA out of memory\" with this:\n" + whole));
  expect_whole(read_oom_log("RuntimeError: CUDA out of memory.\n" + whole));
  const OomLog killed =
      read_oom_log("if you see CUDA out of memory, use --small\nslurmstepd: error: Detected 1 oom-kill event(s)\n");
  ASSERT_TRUE(killed.first);
  EXPECT_EQ(killed.cause().source, OomSource::killed);
}

TEST(OomLog, ReadsWhatPeopleMakeOfAMessage) {
  std::string lower(kMessage);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  const OomLog log = read_oom_log(lower.substr(0, lower.find(" gpu")) +
                                  " (gpu 1; 8.00 gib total capacity; 7.04 gib already allocated; "
                                  "0 bytes free; 7.28 gib reserved in total by pytorch)");
  ASSERT_TRUE(log.first);
  EXPECT_EQ(log.cause().tried_bytes, gib(3.91));
  EXPECT_EQ(log.cause().capacity_bytes, gib(8.0));
  EXPECT_EQ(log.cause().reserved_bytes, gib(7.28));
  EXPECT_EQ(log.cause().device, 1);
  std::string indented = "    ";
  for (size_t i = 0; i < std::string(kMessage).size(); ++i) {
    if (i > 0 && i % 40 == 0) indented += "\n    ";
    indented += kMessage[i];
  }
  expect_whole(read_oom_log(indented));
}

TEST(OomLog, TheWordsMayEndWithTheText) {
  const OomLog log = read_oom_log("a\n  x = f(x)\nRuntimeError: CUDA out o\n");
  ASSERT_TRUE(log.first);
  EXPECT_EQ(log.cause().line, 3);
  EXPECT_EQ(log.cause().text, "CUDA out o");
  EXPECT_FALSE(read_oom_log("RuntimeError: CUDA error\n").first);
}

TEST(OomLog, KnowsMoreOfThoseThatRunOutAndWhoDoesNot) {
  const auto source = [](std::string_view text) {
    const OomLog log = read_oom_log(text);
    return log.first ? std::string(name_of(log.cause().source)) : std::string("none");
  };
  EXPECT_EQ(source("THCudaCheck FAIL file=a.cpp line=3 error=11 : invalid argument"), "none");
  EXPECT_EQ(source("THCudaCheck FAIL file=a.cpp line=3 error=2 : out of memory"), "pytorch-thc");
  EXPECT_EQ(source("OSError: le fichier est trop petit (os error 1455)"), "host");
  EXPECT_EQ(source("[WinError 1455] datoteka"), "host");
  EXPECT_EQ(source("srun: error: n7: task 0: Out Of Memory"), "killed");
  EXPECT_EQ(source("The node was low on resource: memory."), "killed");
  EXPECT_EQ(source("Last error:\nFailed to CUDA malloc 512 bytes"), "nccl");
  EXPECT_EQ(read_oom_log("unable to mmap 280 bytes from file </torch_5_1>: Cannot allocate memory (12)").cause().tried_bytes,
            280);
  EXPECT_EQ(source("cuda failed with error 2 out of memory."), "cuda-driver");
  EXPECT_EQ(source("[enforce fail at a.cpp:56] posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0"), "pytorch-cpu");
  EXPECT_EQ(source("Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate 5.00 GiB"),
            "pytorch-xpu");
}

TEST(OomLog, AKillBehindABarAndRaysAreKnown) {
  EXPECT_EQ(read_oom_log("Loading checkpoint shards:   0%|      | 0/2 [00:00<?, ?it/s]Killed\n").count, 1);
  EXPECT_EQ(read_oom_log("RuntimeError: DataLoader worker (pid 8102) is killed by signal: Terminated.\n").count, 1);
  EXPECT_EQ(read_oom_log("see [1]Killed processes\n").count, 0);
  EXPECT_EQ(read_oom_log("12.49GB / 13.15GB (0.950003), which exceeds the memory usage threshold of 0.95.\n").cause().source,
            OomSource::killed);
  EXPECT_EQ(read_oom_log("!!! Exception during processing !!! Allocation on device\n").cause().source,
            OomSource::torch_async);
}

TEST(OomLog, OlderWordsOfAnotherMakersDeviceTellNoRelease) {
  const OomLog log = read_oom_log(
      "RuntimeError: NPU out of memory. Tried to allocate 386.00 MiB (NPU 2; 60.97 GiB total capacity; 59.57 GiB already "
      "allocated; 16.54 MiB free; 60.06 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try\n");
  EXPECT_EQ(log.cause().era, "");
}

}  // namespace snug::torch_tests
