#include "torch/oom_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "torch/oom_log.h"
#include "torch/support_oom_texts.h"

namespace snug::torch_tests {

namespace {

OomMessage cause_in(std::string_view text) {
  const OomLog log = read_oom_log(text);
  EXPECT_TRUE(log.first) << text;
  return log.first ? log.cause() : OomMessage{};
}

const EraText& era(std::string_view name) {
  for (const EraText& text : kEraTexts)
    if (text.name == name) return text;
  throw std::runtime_error("no such text");
}

using Figure = std::optional<int64_t>;

std::vector<Figure> figures(const OomMessage& m) {
  std::vector<Figure> all = {m.tried_bytes,    m.capacity_bytes,    m.free_bytes,    m.allocated_bytes,
                             m.reserved_bytes, m.unallocated_bytes, m.allowed_bytes, m.private_pool_bytes,
                             m.process_bytes,  m.other_bytes};
  all.push_back(m.device ? Figure(*m.device) : Figure());
  all.push_back(m.rank ? Figure(*m.rank) : Figure());
  return all;
}

// Nothing that the whole text does not say.
void expect_within(const OomMessage& part, const OomMessage& whole, std::string_view text) {
  const std::vector<Figure> a = figures(part), b = figures(whole);
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i]) {
      EXPECT_EQ(a[i], b[i]) << "figure " << i << " of: " << text;
    }
  ASSERT_LE(part.processes.size(), whole.processes.size()) << text;
  for (size_t i = 0; i < part.processes.size(); ++i) {
    EXPECT_EQ(part.processes[i].pid, whole.processes[i].pid) << text;
    EXPECT_EQ(part.processes[i].bytes, whole.processes[i].bytes) << text;
  }
}

}  // namespace

TEST(OomMessage, AFigureWhoseWordsAreCutShortIsStillKnown) {
  const OomLog log = read_oom_log(
      "RuntimeError: CUDA out of memory. Tried to allocate 26.00 MiB (GPU 0; 8.00 GiB total capacity; 6.50 GiB already "
      "allocated; 0 bytes free; 6.83 GiB rese\n");
  ASSERT_TRUE(log.first);
  EXPECT_EQ(log.cause().reserved_bytes, gib(6.83));
}

TEST(OomMessage, EachWordingTellsItsSourceAndItsEra) {
  for (const EraText& text : kEraTexts) {
    const OomLog log = read_oom_log(text.text);
    ASSERT_TRUE(log.first) << text.name;
    EXPECT_EQ(log.count, 1) << text.name;
    EXPECT_EQ(name_of(log.cause().source), name_of(text.source)) << text.name;
    EXPECT_EQ(log.cause().era, text.era) << text.name;
  }
}

TEST(OomMessage, FiguresOfTheCachedEra) {
  const OomMessage m = cause_in(era("cached").text);
  EXPECT_EQ(m.device, 0);
  EXPECT_EQ(m.tried_bytes, gib(16));
  EXPECT_EQ(m.capacity_bytes, gib(11.93));
  EXPECT_EQ(m.allocated_bytes, gib(4));
  EXPECT_EQ(m.free_bytes, gib(7.33));
  EXPECT_EQ(m.unallocated_bytes, kib(179));
  EXPECT_FALSE(m.reserved_bytes);
}

TEST(OomMessage, FiguresOfTheReservedEra) {
  const OomMessage m = cause_in(era("fraction of 1.8").text);
  EXPECT_EQ(m.device, 2);
  EXPECT_EQ(m.tried_bytes, mib(512));
  EXPECT_EQ(m.capacity_bytes, gib(15.78));
  EXPECT_EQ(m.allocated_bytes, gib(3.5));
  EXPECT_EQ(m.free_bytes, gib(11));
  EXPECT_EQ(m.allowed_bytes, gib(3.94));
  EXPECT_EQ(m.reserved_bytes, gib(3.6));
}

TEST(OomMessage, FiguresOfTwoPointOneWithProcesses) {
  const OomMessage m = cause_in(era("capacty").text);
  EXPECT_EQ(m.device, 3);
  EXPECT_EQ(m.capacity_bytes, gib(14.58));
  EXPECT_EQ(m.free_bytes, mib(635.56));
  ASSERT_EQ(m.processes.size(), 2u);
  EXPECT_EQ(m.processes[0].pid, 26469);
  EXPECT_EQ(m.processes[0].bytes, gib(1.96));
  EXPECT_EQ(m.processes[1].bytes, gib(12));
  EXPECT_EQ(m.allocated_bytes, gib(1.23));
  EXPECT_EQ(m.unallocated_bytes, mib(51));
}

TEST(OomMessage, FiguresOfToday) {
  const OomMessage m = cause_in(era("capacity").text);
  EXPECT_EQ(m.tried_bytes, gib(3.91));
  EXPECT_EQ(m.process_bytes, gib(21.29));
  EXPECT_EQ(m.private_pool_bytes, mib(46));
  EXPECT_EQ(m.allocated_bytes, gib(20.16));
  EXPECT_EQ(m.unallocated_bytes, mib(544.12));
  EXPECT_TRUE(m.processes.empty());
  EXPECT_EQ(cause_in(era("newest").text).allowed_bytes, gib(4.74));
}

TEST(OomMessage, FiguresThatCannotBeTrueAreUnknown) {
  const OomMessage m = cause_in(era("Windows").text);
  ASSERT_EQ(m.processes.size(), 1u);
  EXPECT_EQ(m.processes[0].pid, 1234);
  EXPECT_FALSE(m.processes[0].bytes);
  EXPECT_EQ(m.impossible, std::vector<std::string>{"process"});
  EXPECT_EQ(m.free_bytes, 0);
  EXPECT_EQ(cause_in(era("cudaMallocAsync").text).impossible, std::vector<std::string>{"allowed"});
}

TEST(OomMessage, FiguresOfOtherAllocators) {
  const OomMessage mps = cause_in(era("MPS").text);
  EXPECT_EQ(mps.allocated_bytes, gib(8.41));
  EXPECT_EQ(mps.other_bytes, mib(612));
  EXPECT_EQ(mps.allowed_bytes, gib(9.07));
  EXPECT_EQ(mps.tried_bytes, mib(256));
  const OomMessage async = cause_in(era("cudaMallocAsync").text);
  EXPECT_EQ(async.device, 0);
  EXPECT_EQ(async.allocated_bytes, gib(22.43));
  EXPECT_EQ(async.tried_bytes, gib(4.07));
  EXPECT_EQ(async.capacity_bytes, gib(16));
  EXPECT_EQ(async.free_bytes, 0);
  EXPECT_EQ(cause_in(era("CPU allocator").text).tried_bytes, int64_t{1125899906842624});
  EXPECT_EQ(cause_in(era("NumPy").text).tried_bytes, gib(32.0 * 1024));
  EXPECT_EQ(cause_in(era("JAX").text).tried_bytes, int64_t{8589934592});
  EXPECT_EQ(cause_in(era("kernel").text).process_bytes, kib(31234567));
  const OomMessage vllm_start = cause_in(era("vLLM at its start").text);
  EXPECT_EQ(vllm_start.free_bytes, gib(2.6));
  EXPECT_EQ(vllm_start.capacity_bytes, gib(121.63));
  EXPECT_EQ(vllm_start.tried_bytes, gib(109.47));
}

TEST(OomMessage, CutAtAnyByteItSaysNothingThatTheWholeDoesNotSay) {
  for (const EraText& text : kEraTexts) {
    const OomMessage whole = cause_in(text.text);
    for (size_t length = 0; length < text.text.size(); ++length) {
      const std::string_view part = text.text.substr(0, length);
      const OomLog log = read_oom_log(part);
      if (log.first) expect_within(log.cause(), whole, part);
    }
  }
}

TEST(OomMessage, BrokenAtAnyByteByATerminalItSaysTheSame) {
  for (const std::string_view name : {"cached", "capacity", "max_split_size"}) {
    const std::string text(era(name).text);
    const OomMessage whole = cause_in(text);
    const size_t from = text.find("Tried") + 18;  // the wording itself broken in two lines is another test
    for (size_t at = from; at < std::min(text.find(" If reserved"), text.size()); ++at) {
      const std::string broken = text.substr(0, at) + "\n" + text.substr(at);
      const OomMessage m = cause_in(broken);
      expect_within(m, whole, broken);
      const bool in_number = at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9';
      if (!in_number) {
        EXPECT_EQ(figures(m), figures(whole)) << broken;
      }
    }
  }
}

TEST(OomMessage, AWordingMayBeWrapped) {
  const OomMessage m = cause_in(
      "OutOfMemoryError: CUDA out of \nmemory. Tried to allocate 1.25 GiB (GPU 1; 79.10 GiB total capacity; 76.13 GiB "
      "\nalready "
      "allocated; 290.12 MiB free; 77.47 GiB reserved in total by PyTorch)");
  EXPECT_EQ(m.tried_bytes, gib(1.25));
  EXPECT_EQ(m.allocated_bytes, gib(76.13));
  EXPECT_EQ(m.reserved_bytes, gib(77.47));
}

TEST(OomMessage, TwoRunsOfTheSameLineAreNotOneMessage) {
  const std::string one(era("capacity").text);
  EXPECT_EQ(read_oom_log(one + "some other line\n" + one).count, 2);
}

TEST(OomMessage, WhatOnlySoundsLikeItIsNone) {
  for (const std::string_view text :
       {"# avoid running out of memory here\n", "Memory allocated: 12.00 GiB\n", "epoch 137 done, loss -9.1\n", "",
        "we tried to allocate time for this\n", "exit code 1370\n", "The killer feature: memory\n"})
    EXPECT_FALSE(read_oom_log(text).first) << text;
}

}  // namespace snug::torch_tests
