#include "report/accelerator_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/list_text.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string price(const Accelerator& a) { return a.dollars_per_hour ? fmt::format("{:.2f}", *a.dollars_per_hour) : "-"; }

Json json_of(const Accelerator& a) {
  return {{"name", a.name},
          {"aliases", a.aliases},
          {"vendor", a.vendor},
          {"generation", a.generation},
          {"compute_capability", a.compute_capability},
          {"memory_bytes", a.memory_bytes},
          {"usable_bytes", a.usable_bytes},
          {"bandwidth", a.bandwidth},
          {"fp32_flops", a.fp32_flops},
          {"tf32_flops", a.tf32_flops},
          {"fp16_flops", a.fp16_flops},
          {"bf16_flops", a.bf16_flops},
          {"fp8_flops", a.fp8_flops},
          {"int8_ops", a.int8_ops},
          {"host_link", a.host_link},
          {"peer_link", a.peer_link},
          {"dollars_per_hour", a.dollars_per_hour ? Json(*a.dollars_per_hour) : Json()},
          {"best_use", a.best_use}};
}

}  // namespace

std::string accelerators_text() {
  std::string text;
  std::string_view vendor;
  for (const Accelerator& a : accelerators()) {
    if (a.vendor != vendor) {
      text += fmt::format("{}{:<22} {:>4} {:>5} {:>7} {:>5}  best for\n", vendor.empty() ? "" : "\n", a.vendor, "GiB",
                          "GB/s", "TFLOP/s", "$/h");
      vendor = a.vendor;
    }
    const bool bf16 = a.bf16_flops > 0;
    const double rate = (bf16 ? a.bf16_flops : a.fp16_flops) / 1e12;
    text +=
        fmt::format("{:<22} {:>4.0f} {:>5.0f} {:>6.{}f}{} {:>5}  {}\n", a.name, static_cast<double>(a.memory_bytes) / kGiB,
                    a.bandwidth / 1e9, rate, rate < 10 ? 1 : 0, bf16 ? ' ' : '*', price(a), a.best_use);
  }
  text += fmt::format("\nTFLOP/s: dense bf16 (*: fp16, the card has no bf16). $/h: rough rents, 2025.\n");
  return text;
}

std::string accelerator_text(const Accelerator& a) {
  std::string text;
  text += fmt::format("{} ({}, {})\n", a.name, a.vendor, a.generation);
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<18} {}\n", label, value);
  };
  if (a.compute_capability > 0)
    line("compute capability", fmt::format("{}.{}", a.compute_capability / 10, a.compute_capability % 10));
  line("memory", fmt::format("{:.0f} GiB, of which {:.2f} GiB can be allocated", static_cast<double>(a.memory_bytes) / kGiB,
                             static_cast<double>(a.usable_bytes) / kGiB));
  line("bandwidth", fmt::format("{:.0f} GB/s", a.bandwidth / 1e9));
  std::vector<std::string> rates;
  for (const auto& [label, rate] : {std::pair("fp32", a.fp32_flops),
                                    {"tf32", a.tf32_flops},
                                    {"fp16", a.fp16_flops},
                                    {"bf16", a.bf16_flops},
                                    {"fp8", a.fp8_flops},
                                    {"int8", a.int8_ops}})
    if (rate > 0) rates.push_back(fmt::format("{} {:g}", label, rate / 1e12));
  line("dense TFLOP/s", list_text(rates, 21));
  line("to the host",
       fmt::format("{:g} GB/s each way{}", a.host_link / 1e9, a.host_link == a.bandwidth ? " (unified)" : ""));
  line("to its kind", a.peer_link > 0 ? fmt::format("{:g} GB/s each way", a.peer_link / 1e9) : "over the host");
  line("rent", a.dollars_per_hour ? fmt::format("about ${} an hour on demand (2025)", price(a)) : "rarely rented");
  line("best for", a.best_use);
  line("also", list_text(a.aliases, 21));
  return text;
}

std::string accelerators_json() {
  Json all = Json::array();
  for (const Accelerator& a : accelerators()) all.push_back(json_of(a));
  return Json{{"schema", 1}, {"accelerators", all}}.dump(2) + "\n";
}

std::string accelerator_json(const Accelerator& a) { return json_of(a).dump(2) + "\n"; }

}  // namespace snug
