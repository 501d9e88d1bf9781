#include "explain/cause.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "explain/explanation.h"
#include "torch/support_oom_texts.h"

namespace snug::explain_tests {

namespace {

namespace fs = std::filesystem;
using torch_tests::gib;
using torch_tests::kEraTexts;
using torch_tests::mib;

OomMessage torch_message(double tried, double capacity, double free, double allocated, double unallocated) {  // GiB
  OomMessage m;
  m.device = 0;
  m.tried_bytes = gib(tried);
  m.capacity_bytes = gib(capacity);
  m.free_bytes = gib(free);
  m.allocated_bytes = gib(allocated);
  m.unallocated_bytes = gib(unallocated);
  return m;
}

bool has_line(const std::vector<std::string>& lines, std::string_view part) {
  for (const std::string& line : lines)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST(Cause, OfEachWording) {
  for (const torch_tests::EraText& text : kEraTexts) {
    const OomLog log = read_oom_log(text.text);
    ASSERT_TRUE(log.first) << text.name;
    const Diagnosis d = diagnose(log);
    EXPECT_EQ(name_of(d.cause), text.cause) << text.name << ": " << d.answer;
    EXPECT_FALSE(d.answer.empty()) << text.name;
    for (const std::string& line : d.arithmetic) EXPECT_LE(line.size(), 78u) << line;
  }
}

TEST(Cause, FragmentationIsWhenTheUnusedWouldSuffice) {
  EXPECT_EQ(diagnose(torch_message(1.0, 24, 0.5, 18, 4.0)).cause, Cause::fragmentation);
  EXPECT_EQ(diagnose(torch_message(1.0, 24, 0.5, 22, 0.6)).cause, Cause::shortage);
  const Diagnosis d = diagnose(torch_message(1.0, 24, 0.5, 18, 4.0));
  EXPECT_EQ(d.unused_bytes, gib(4));
  EXPECT_TRUE(has_line(d.arithmetic, "unused 4.00 GiB >= asked 1.00 GiB"));
}

TEST(Cause, AFullCardWithTheUsualSlackIsNotFragmented) {
  EXPECT_EQ(diagnose(torch_message(0.125, 80, 0.1, 78.4, 0.5)).cause, Cause::shortage);
}

TEST(Cause, AnotherProcessIsToldByItsListOrByTheRest) {
  OomMessage m = torch_message(2.0, 24, 0.5, 3, 0.1);
  EXPECT_EQ(diagnose(m).cause, Cause::other_process);
  EXPECT_EQ(diagnose(m).outside_bytes, gib(24) - gib(0.5) - gib(3) - gib(0.1));
  m.process_bytes = gib(23.4);  // this process itself, with libraries
  EXPECT_EQ(diagnose(m).cause, Cause::shortage);
  m.process_bytes.reset();
  m.processes = {{7, gib(20)}, {8, gib(3.6)}};  // the second is this one, seen from outside of its container
  const Diagnosis d = diagnose(m);
  EXPECT_EQ(d.cause, Cause::other_process);
  EXPECT_EQ(d.own_pid, 8);
  EXPECT_EQ(d.others_bytes, gib(20));
}

TEST(Cause, OthersThatHoldMostOfTheDeviceGoBeforePieces) {
  OomMessage m = torch_message(0.03, 80, 0.01, 9.5, 0.5);  // enough is unused, and 69 GiB are another's
  m.processes = {{7, gib(69)}};
  m.process_bytes = gib(10.9);
  const Diagnosis d = diagnose(m);
  EXPECT_EQ(d.cause, Cause::other_process);
  EXPECT_TRUE(has_line(d.remarks, "512.00 MiB are reserved and unused, in pieces"));
  m.processes = {{7, gib(5)}};
  m.allocated_bytes = gib(66);
  m.unallocated_bytes = gib(8);
  m.process_bytes = gib(75);
  EXPECT_EQ(diagnose(m).cause, Cause::fragmentation);
  EXPECT_EQ(diagnose(torch_message(0.01, 8, 0.005, 5.5, 0.03)).cause, Cause::other_process) << "the usual slack";
}

TEST(Cause, AProcessThatHasLessThanItsTensorsIsNotBelieved) {
  OomMessage m = torch_message(0.875, 22, 0.74, 20.5, 0.1);
  m.process_bytes = 0;
  EXPECT_EQ(diagnose(m).cause, Cause::shortage);
}

TEST(Cause, WhatIsFreeUntoldAndRoomLeftIsNoShortage) {
  OomMessage m = torch_message(1.7, 16, 0, 0.2, 0);
  m.free_bytes.reset();
  const Diagnosis d = diagnose(m);
  EXPECT_EQ(d.cause, Cause::unknown);
  EXPECT_TRUE(has_line(d.remarks, "missing: what is free"));
  m.allocated_bytes = gib(15);
  EXPECT_EQ(diagnose(m).cause, Cause::shortage);
}

TEST(Cause, ABlockThatTheDeviceNeverGrantsIsALimit) {
  const Diagnosis d =
      diagnose(read_oom_log("RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! "
                            "Tried to allocate 6.85 GiB (GPU  0; 15.56 GiB total capacity; 0 bytes already "
                            "allocated; 0 bytes reserved in total by PyTorch)"));
  EXPECT_EQ(d.cause, Cause::memory_limit);
  EXPECT_EQ(d.answer, "XPU 0 allows no block above 4.00 GiB: one tensor of 6.85 GiB was asked for");
}

TEST(Cause, TheAsynchronousPoolMayHoldWhatSeemsAnothers) {
  OomMessage m = torch_message(0.3, 24, 0.01, 7, 0);
  m.source = OomSource::torch_async;
  m.unallocated_bytes.reset();
  EXPECT_EQ(diagnose(m).cause, Cause::unknown);
  m.allocated_bytes = gib(23);
  EXPECT_EQ(diagnose(m).cause, Cause::shortage);
}

TEST(Cause, WhereTheFiguresAreMissingTheyAreNamed) {
  const Diagnosis d = diagnose(read_oom_log("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."));
  EXPECT_EQ(d.cause, Cause::unknown);
  EXPECT_TRUE(has_line(d.remarks, "missing: what the device has, what is free, what PyTorch holds"));
  const Diagnosis jax =
      diagnose(read_oom_log("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes."));
  EXPECT_EQ(jax.cause, Cause::unknown);
  EXPECT_EQ(jax.answer, "JAX (XLA) found no room for 1.00 GiB on the device; its message tells no more");
}

TEST(Cause, AHairMoreFreeThanAskedIsStillALack) {
  EXPECT_EQ(diagnose(torch_message(0.0781, 24, 0.0784, 4.0, 0.01)).cause, Cause::other_process);
  EXPECT_EQ(diagnose(torch_message(0.0781, 24, 0.0784, 23.4, 0.01)).cause, Cause::shortage);
  EXPECT_EQ(diagnose(torch_message(0.0781, 24, 0.5, 23.0, 0.01)).cause, Cause::driver);
}

TEST(Cause, ADeviceIsOnlyCalledFullWhereLittleIsFree) {
  EXPECT_EQ(diagnose(torch_message(1.7, 6, 1.0, 3.5, 0.01)).answer,
            "1.70 GiB did not fit on GPU 0: 1.00 GiB were free, and tensors fill 3.50 GiB of 6.00 GiB");
  EXPECT_TRUE(diagnose(torch_message(1.7, 24, 0.1, 23.0, 0.01)).answer.starts_with("GPU 0 is full"));
}

TEST(Cause, ARequestBeyondTheDeviceOrOfHalfOfItIsImpossible) {
  EXPECT_EQ(diagnose(torch_message(341, 80, 70, 8, 0.1)).cause, Cause::impossible_request);
  EXPECT_EQ(diagnose(torch_message(14, 18.5, 13, 4, 0.1)).cause, Cause::impossible_request);
  EXPECT_EQ(diagnose(torch_message(14, 24, 6, 16, 0.1)).cause, Cause::shortage);
}

TEST(Cause, ALimitIsTheCauseAlsoOfARequestBeyondIt) {
  OomMessage m = torch_message(2, 192, 190, 0.9, 0.01);
  m.allowed_bytes = gib(1.05);
  EXPECT_EQ(diagnose(m).cause, Cause::memory_limit);
}

TEST(Cause, ASentenceCutShortIsNotGuessedAt) {
  OomMessage m = torch_message(1, 24, 0.2, 12, 0);
  m.unallocated_bytes.reset();
  EXPECT_EQ(diagnose(m).cause, Cause::unknown);
  m.allocated_bytes = gib(23.5);
  EXPECT_EQ(diagnose(m).cause, Cause::shortage);
  m.allocated_bytes = gib(30);
  EXPECT_EQ(diagnose(m).cause, Cause::overcommit);
  m.allocated_bytes = gib(22.8);
  m.processes = {{5, gib(23.6)}};  // 0.8 GiB beside its tensors cannot hide 1 GiB in pieces
  EXPECT_EQ(diagnose(m).cause, Cause::shortage);
}

TEST(Cause, TheProcessItselfIsFoundAmongThoseListedAlsoWithLargeLibraries) {
  OomMessage m = torch_message(2, 80, 0.5, 30, 1);
  m.processes = {{1, gib(36)}, {2, gib(20)}, {3, gib(23)}};  // 5 GiB beside PyTorch's
  EXPECT_EQ(diagnose(m).own_pid, 1);
  EXPECT_EQ(diagnose(m).others_bytes, gib(43));
}

TEST(Cause, MoreFreeThanAskedIsNoLackOfDeviceMemory) {
  EXPECT_EQ(diagnose(torch_message(0.0625, 12, 8.36, 2.6, 0.02)).cause, Cause::driver);
}

TEST(Cause, MoreAllocatedThanThereIsWasLentByTheHost) {
  const Diagnosis d = diagnose(torch_message(0.05, 8, 0, 13.2, 0.2));
  EXPECT_EQ(d.cause, Cause::overcommit);
  EXPECT_TRUE(has_line(d.arithmetic, "at least 5.40 GiB"));
}

TEST(Cause, ASegmentsSizeTellsTheTensors) {
  OomMessage m = torch_message(2, 24, 0, 23, 0.001);
  m.tried_bytes = mib(20);
  EXPECT_TRUE(has_line(diagnose(m).remarks, "between 1 and 10 MiB"));
  m.tried_bytes = mib(2);
  EXPECT_TRUE(has_line(diagnose(m).remarks, "1 MiB or less"));
}

TEST(Cause, RanksOnOneDeviceAreNamed) {
  std::string text;
  for (const char* rank : {"0", "1"})
    text += std::string("[rank") + rank +
            "]: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total capacity; 9.00 "
            "GiB already allocated; 0.50 GiB free; 9.10 GiB reserved in total by PyTorch)\n";
  EXPECT_TRUE(has_line(diagnose(read_oom_log(text)).remarks, "2 ranks ran out on the one GPU 0"));
}

TEST(Cause, ExtremeFiguresDoNotOverflow) {
  OomMessage m = torch_message(1, 1, 1, 1, 1);
  m.tried_bytes = int64_t{1} << 61;
  for (auto* field : {&m.capacity_bytes, &m.free_bytes, &m.allocated_bytes, &m.unallocated_bytes}) *field = int64_t{1} << 50;
  m.processes = {{1, int64_t{1} << 50}, {2, int64_t{1} << 50}};
  EXPECT_EQ(diagnose(m).cause, Cause::impossible_request);
  m.capacity_bytes = 0;
  EXPECT_FALSE(diagnose(m).answer.empty());
}

TEST(Cause, OfTheTextsThatPeoplePosted) {
  const char* shared = std::getenv("SNUG_SHARED");
  const fs::path folder =
      (shared != nullptr ? fs::path(shared) : fs::path(SNUG_SOURCE_DIR) / ".." / "shared") / "data" / "oom";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  struct Truth {
    Cause cause;
    TorchStage stage;
    std::optional<Cause> or_cause = {};
  };
  using enum Cause;
  // Where tensors fill the device and a few per cent lie in holes, the figures do not decide: experiments in which memory
  // was short show as much. Both have to be named then.
  const std::map<int, Truth> truths = {
      {1, {unknown, TorchStage::backward}},
      {3, {impossible_request, TorchStage::unknown}},
      {5, {shortage, TorchStage::unknown}},
      {7, {other_process, TorchStage::backward}},
      {9, {shortage, TorchStage::backward}},
      {11, {shortage, TorchStage::unknown, fragmentation}},
      {13, {driver, TorchStage::unknown}},
      {15, {fragmentation, TorchStage::unknown}},
      {17, {shortage, TorchStage::unknown, fragmentation}},
      {19, {shortage, TorchStage::backward}},
      {21, {shortage, TorchStage::unknown, fragmentation}},
      {23, {shortage, TorchStage::unknown, fragmentation}},
      {25, {other_process, TorchStage::unknown}},
      {27, {other_process, TorchStage::unknown}},
      {29, {driver, TorchStage::backward}},
      {31, {unknown, TorchStage::unknown}},
  };
  for (const auto& [number, truth] : truths) {
    const fs::path path = folder / (std::to_string(number) + ".txt");
    if (!fs::exists(path)) continue;
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const auto e = explain_log(read_oom_log(text.str()));
    ASSERT_TRUE(e) << number;
    EXPECT_EQ(name_of(e->diagnosis.cause), name_of(truth.cause)) << number << ": " << e->diagnosis.answer;
    EXPECT_EQ(e->diagnosis.or_cause, truth.or_cause) << number;
    EXPECT_EQ(name_of(e->stage.stage), name_of(truth.stage)) << number;
    EXPECT_FALSE(e->advice.empty()) << number;
  }
}

TEST(Cause, MuchThatIsFreeIsNoLackAndNoPieces) {
  const Diagnosis d =
      diagnose(read_oom_log("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 7 has a total "
                            "capacity of 191.98 GiB of which "
                            "103.49 GiB is free. Of the allocated memory 68.63 GiB is allocated by PyTorch, and 14.93 GiB "
                            "is reserved by PyTorch but "
                            "unallocated.\n"));
  EXPECT_EQ(d.cause, Cause::driver);
}

TEST(Cause, ProcessesOfWhichZeroIsToldHoldWhatIsMissing) {
  const Diagnosis d =
      diagnose(read_oom_log("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 130.00 MiB. GPU 0 has a total "
                            "capacity of 79.10 GiB of which "
                            "12.81 MiB is free. Process 3427 has 0 bytes memory in use. Process 3423 has 0 bytes memory in "
                            "use. Including non-PyTorch "
                            "memory, this process has 0 bytes memory in use. Of the allocated memory 10.47 GiB is allocated "
                            "by PyTorch, and 93.52 MiB "
                            "is reserved by PyTorch but unallocated.\n"));
  EXPECT_EQ(d.cause, Cause::other_process);
}

TEST(Cause, TheDesktopBesideASmallCardsProgramIsNotTheCause) {
  const Diagnosis d =
      diagnose(read_oom_log("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 800.00 MiB. GPU 0 has a total "
                            "capacity of 3.93 GiB of which "
                            "530.00 MiB is free. Including non-PyTorch memory, this process has 2.78 GiB memory in use. Of "
                            "the allocated memory 2.68 "
                            "GiB is allocated by PyTorch, and 34.40 MiB is reserved by PyTorch but unallocated.\n"));
  EXPECT_EQ(d.cause, Cause::shortage);
}

TEST(Cause, AnIntelGpuThatHasItAllFreeRefusesTheBlocksSize) {
  const Diagnosis d =
      diagnose(read_oom_log("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total "
                            "capacity of 15.11 GiB of which "
                            "15.11 GiB is free. Of the allocated memory 1024 bytes is allocated by PyTorch, and 2.00 MiB is "
                            "reserved by PyTorch but "
                            "unallocated. Please use `empty_cache` to release all unoccupied cached memory.\n"));
  EXPECT_EQ(d.cause, Cause::memory_limit);
  EXPECT_EQ(d.or_cause, Cause::driver);
}

TEST(Cause, AFullDeviceThatHasALittleLeftIsFull) {
  const auto of = [](const char* figures) {
    return diagnose(read_oom_log("RuntimeError: CUDA out of memory. Tried to allocate " + std::string(figures) + "\n"))
        .cause;
  };
  EXPECT_EQ(
      of("20.00 MiB (GPU 0; 11.76 GiB total capacity; 10.92 GiB already allocated; 56.25 MiB free; 10.97 GiB reserved in "
         "total by PyTorch)"),
      Cause::shortage);
  EXPECT_EQ(of("720.00 MiB (GPU 0; 184.31 GiB total capacity; 171.63 GiB already allocated; 443.94 MiB free; 173.63 GiB "
               "reserved in "
               "total by PyTorch)"),
            Cause::shortage);
}

}  // namespace snug::explain_tests
