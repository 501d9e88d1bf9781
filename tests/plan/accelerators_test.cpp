#include "plan/accelerators.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace snug {
namespace {

constexpr double kTera = 1e12;

const Accelerator& known(std::string_view name) {
  const Accelerator* found = find_accelerator(name);
  if (found == nullptr) throw std::runtime_error("no accelerator " + std::string(name));
  return *found;
}

TEST(Accelerators, ThereAreSixtyAtLeast) { EXPECT_GE(accelerators().size(), 60U); }

TEST(Accelerators, EveryNameAndAliasFindsItsOwnRow) {
  for (const Accelerator& accelerator : accelerators()) {
    EXPECT_EQ(find_accelerator(accelerator.name), &accelerator) << accelerator.name;
    for (const std::string& alias : accelerator.aliases)
      EXPECT_EQ(find_accelerator(alias), &accelerator) << alias << " of " << accelerator.name;
  }
}

// Runs of a table on this card, by the name its driver gave, whose context, what the driver counted for a process above what
// PyTorch's allocator had reserved (scripts/measure_torch.py), is among what the catalogue says.
int runs_with_context_of(const char* name, const char* table) {
  const Accelerator& card = known(name);
  std::ifstream file(SNUG_SOURCE_DIR "/tests/golden/" + std::string(table));
  std::string line, cell;
  std::getline(file, line);
  std::map<std::string, size_t> column;
  for (std::stringstream names(line); std::getline(names, cell, ',');) column.emplace(cell, column.size());
  int rows = 0;
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    for (std::stringstream text(line); std::getline(text, cell, ',');) cells.push_back(cell);
    if (cells.at(column.at("card")) != name) continue;
    const int64_t context = std::stoll(cells.at(column.at("device"))) - std::stoll(cells.at(column.at("kept")));
    EXPECT_GE(context, card.context_least_bytes) << line;
    EXPECT_LE(context, card.context_most_bytes) << line;
    EXPECT_LE(card.usable_bytes, std::stoll(cells.at(column.at("card_bytes"))));
    ++rows;
  }
  return rows;
}

TEST(Accelerators, HoppersContextIsWhatItsDriverCounted) {
  EXPECT_GE(runs_with_context_of("NVIDIA H100 80GB HBM3", "eager_card.csv"), 140);
  EXPECT_EQ(runs_with_context_of("NVIDIA H100 80GB HBM3", "eager_card_drawn.csv"), 89);
  EXPECT_EQ(runs_with_context_of("NVIDIA H200", "eager_card_drawn.csv"), 71);
}

TEST(Accelerators, WritingDoesNotMatter) {
  EXPECT_EQ(known("NVIDIA A100-SXM4-80GB").name, "A100-SXM4-80GB");
  EXPECT_EQ(known("nvidia geforce rtx 4090").name, "RTX-4090");
  EXPECT_EQ(known("NVIDIA H100 80GB HBM3").name, "H100-SXM5-80GB");
  EXPECT_EQ(known("NVIDIA GeForce RTX 4070 Laptop GPU").name, "RTX-4070-Laptop");
  EXPECT_EQ(known("rtx_3060").name, "RTX-3060");
  EXPECT_EQ(known("Tesla T4").name, "T4");
  EXPECT_EQ(known("AMD Instinct MI300X").name, "MI300X");
  EXPECT_EQ(known("Apple M2 Max").name, "M2-Max-32GB");
  EXPECT_EQ(find_accelerator(""), nullptr);
  EXPECT_EQ(find_accelerator("NVIDIA"), nullptr);
  EXPECT_EQ(find_accelerator("a1000000"), nullptr);
}

TEST(Accelerators, ShortNamesMeanTheCardThatIsRented) {
  EXPECT_EQ(known("a100").name, "A100-SXM4-80GB");
  EXPECT_EQ(known("h100").name, "H100-SXM5-80GB");
  EXPECT_EQ(known("v100").name, "V100-SXM2-16GB");
}

TEST(Accelerators, WrongNamesAreAnsweredWithTheNearest) {
  EXPECT_EQ(nearest_accelerator("RTX 4909"), "RTX-4090");
  EXPECT_EQ(nearest_accelerator("h1000"), "H100-SXM5-80GB");
  EXPECT_EQ(nearest_accelerator("mi3000x"), "MI300X");
  EXPECT_FALSE(nearest_accelerator(std::string(100'000, 'x')).empty());
}

// The vendors' data sheets, dense. The brochures' larger figures are for matrices of which half is zero.
TEST(Accelerators, RatesAreTheDenseOnesOfTheDataSheets) {
  struct Published {
    const char* name;
    double teraflops, gigabytes_per_second;  // bf16, or fp16 where there is no bf16
  };
  const Published sheets[] = {
      {"P100-PCIE-16GB", 18.7, 732},
      {"V100-SXM2-32GB", 125, 900},
      {"T4", 65, 320},
      {"A10", 125, 600},
      {"A30", 165, 933},
      {"A40", 149.7, 696},
      {"A100-40GB", 312, 1555},
      {"A100-80GB", 312, 2039},
      {"RTX-A6000", 154.8, 768},
      {"L4", 121, 300},
      {"L40S", 362.05, 864},
      {"H100", 989.4, 3352},
      {"H100-NVL", 835.5, 3938},
      {"H200", 989.4, 4800},
      {"B200", 2250, 8000},
      {"RTX-3090", 71, 936},
      {"RTX-4090", 165.2, 1008},
      {"RTX-5090", 209.5, 1792},
      {"MI210", 181, 1638.4},
      {"MI300X", 1307.4, 5300},
      {"RX-7900-XTX", 122.8, 960},
      {"RTX-6000-Ada", 364.2, 960},
      {"TPU-v5p", 459, 2765},
      {"Gaudi-2", 432, 2450},
  };
  for (const auto& [name, teraflops, bandwidth] : sheets) {
    const Accelerator& accelerator = known(name);
    const double rate = accelerator.bf16_flops > 0 ? accelerator.bf16_flops : accelerator.fp16_flops;
    EXPECT_NEAR(rate / kTera, teraflops, 0.002 * teraflops) << name;
    EXPECT_NEAR(accelerator.bandwidth / 1e9, bandwidth, 0.002 * bandwidth) << name;
  }
}

TEST(Accelerators, FiguresAreWithinReason) {
  for (const Accelerator& a : accelerators()) {
    EXPECT_GE(a.memory_bytes, int64_t{8} << 30) << a.name;
    EXPECT_LT(a.usable_bytes, a.memory_bytes) << a.name;
    const bool unified = a.host_link == a.bandwidth;
    EXPECT_GE(static_cast<double>(a.usable_bytes), (unified ? 0.6 : 0.9) * static_cast<double>(a.memory_bytes)) << a.name;
    EXPECT_GT(a.bandwidth, 60e9) << a.name;
    EXPECT_LT(a.bandwidth, 10e12) << a.name;
    EXPECT_GT(a.host_link, 0) << a.name;
    EXPECT_LE(a.host_link, a.bandwidth) << a.name;
    EXPECT_GT(std::max(a.fp16_flops, a.bf16_flops), 0) << a.name;
    EXPECT_TRUE(a.tf32_flops == 0 || a.tf32_flops <= a.bf16_flops) << a.name;
    EXPECT_TRUE(a.fp8_flops == 0 || a.fp8_flops <= 2.05 * a.bf16_flops) << a.name;
    EXPECT_TRUE(a.int8_ops == 0 || a.compute_capability == 61 || a.int8_ops <= 4.05 * std::max(a.fp16_flops, a.bf16_flops))
        << a.name;  // four times: GeForce cards halve floats alone
    EXPECT_FALSE(a.best_use.empty()) << a.name;
    EXPECT_LE(a.best_use.size(), 31U) << a.name << ": a line of `snug gpus` has 80 columns";
    EXPECT_TRUE((a.vendor == "NVIDIA") == (a.compute_capability > 0)) << a.name;
    EXPECT_FALSE(a.compute_capability > 0 && a.compute_capability < 80 && a.bf16_flops > 0) << a.name << " has no bf16";
    if (a.dollars_per_hour) {
      EXPECT_GT(*a.dollars_per_hour, 0.05) << a.name;
      EXPECT_LT(*a.dollars_per_hour, 15.0) << a.name;
    }
  }
}

// Bandwidth is bus width times rate per pin: bits, gigabits a second.
TEST(Accelerators, BandwidthIsBusTimesRate) {
  struct Bus {
    const char* name;
    double bits, rate;
  };
  for (const auto& [name, bits, rate] : {Bus{"RTX-3090", 384, 19.5}, Bus{"RTX-4090", 384, 21.0}, Bus{"RTX-4060", 128, 17.0},
                                         Bus{"RTX-5090", 512, 28.0}, Bus{"RTX-3060", 192, 15.0}, Bus{"T4", 256, 10.0},
                                         Bus{"L4", 192, 12.5}, Bus{"A100-80GB", 5120, 3.186}, Bus{"Arc-B580", 192, 19.0}})
    EXPECT_NEAR(known(name).bandwidth, bits * rate / 8 * 1e9, 0.003 * known(name).bandwidth) << name;
}

// What drivers report in total on Linux, MiB (nvidia-smi); less can be allocated.
TEST(Accelerators, UsableMemoryIsBelowWhatDriversReport) {
  const std::map<std::string, int64_t> reported = {
      {"T4", 15360},   {"A100-SXM4-80GB", 81920},  {"H100-SXM5-80GB", 81559}, {"RTX-3090", 24576},       {"RTX-4090", 24564},
      {"L4", 23034},   {"H200-SXM-141GB", 143771}, {"A10G", 23028},           {"V100-SXM2-32GB", 32768}, {"RTX-5090", 32607},
      {"L40S", 46068}, {"B200-SXM-180GB", 183359}};
  for (const auto& [name, mebibytes] : reported) {
    const auto usable = static_cast<double>(known(name).usable_bytes) / (1 << 20);
    EXPECT_LT(usable, static_cast<double>(mebibytes)) << name;
    EXPECT_GT(usable, 0.94 * static_cast<double>(mebibytes)) << name;
  }
}

}  // namespace
}  // namespace snug
