// Greedy decoding, token by token, beside what memory gives:
//   build/bench/generate CHECKPOINT [--bf16 BOOL] [--threads N] [--prompt N] [--tokens N]
// A token reads every weight once (of an untied table of embeddings a row), so its ceiling is the time in which the same
// threads read as many bytes from memory: measured before and after every 16 tokens, over memory of the weights' size, so
// that caches help both alike. The figure is the median of the paired ratios. A table says what each op kind takes.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "generate/sampler.h"
#include "generate/session.h"
#include "kernels/backend.h"
#include "model/config.h"
#include "program/rules.h"

namespace snug {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Reads memory of a size again and again; the sum keeps the reads from being left out.
class Memory {
 public:
  Memory(int64_t bytes, int32_t threads) : words_(static_cast<size_t>(bytes) / 64 * 8, 1), threads_(threads) {}

  double seconds_a_pass() {
    const auto start = Clock::now();
    uint64_t sum = 0;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(+ : sum)
    for (int32_t part = 0; part < threads_; ++part) {
      const size_t lines = words_.size() / 8;
      const auto of = [&](int32_t p) { return lines * static_cast<size_t>(p) / static_cast<size_t>(threads_) * 8; };
      uint64_t sums[8] = {};
      for (size_t i = of(part); i < of(part + 1); i += 8)
        for (size_t j = 0; j < 8; ++j) sums[j] += words_[i + j];
      sum += std::accumulate(std::begin(sums), std::end(sums), uint64_t{0});
    }
    if (sum != words_.size()) throw Error("the memory does not hold what was written");
    return seconds_since(start);
  }

 private:
  std::vector<uint64_t> words_;
  int32_t threads_;
};

class Profile final : public Observer {
 public:
  explicit Profile(const Program& program) : program_(program) {}
  void before(const Op& /*op*/, const Binding& /*binding*/) override { start_ = Clock::now(); }
  void after(const Op& op, const Binding& /*binding*/) override {
    const double passed = seconds_since(start_);
    Share& share = shares_[op.kind];
    share.seconds += passed;
    ++share.calls;
    if (op.kind == OpKind::matmul) share.bytes += static_cast<double>(program_.tensor(op.find(Slot::b)).bytes());
  }
  void print(double tokens) const {
    fmt::print("\n| op | ms a token | calls | GB/s of weights |\n|---|---:|---:|---:|\n");
    for (const auto& [kind, share] : shares_)
      fmt::print("| {} | {:.3f} | {:.0f} | {:.1f} |\n", name_of(kind), 1e3 * share.seconds / tokens,
                 static_cast<double>(share.calls) / tokens, share.bytes / share.seconds / 1e9);
  }

 private:
  struct Share {
    double seconds = 0, bytes = 0;
    int64_t calls = 0;
  };
  const Program& program_;
  std::map<OpKind, Share> shares_;
  Clock::time_point start_;
};

// Bytes of weights that a token reads.
int64_t bytes_a_token(const Plan& plan) {
  int64_t bytes = 0;
  for (const Weight& weight : plan.program.weights) {
    if (weight.parameter.kind == ParameterKind::embedding && !plan.model.tied_embeddings) continue;
    bytes += plan.program.tensor(weight.tensor).bytes() * (weight.parameter.per_layer ? plan.program.layers : 1);
  }
  return bytes;
}

struct Settings {
  std::string model;
  bool bf16 = true;
  int32_t threads = 2;
  int64_t prompt = 128, tokens = 128;
};

class Decoding {
 public:
  explicit Decoding(const Settings& settings)
      : settings_(settings),
        plan_(make_plan(read_config(settings.model),
                        {.capacity = settings.prompt + settings.tokens + 1,
                         .longest_feed = settings.prompt,
                         .bf16 = settings.bf16,
                         .lora = {}},
                        this_cpu(settings.threads))),
        session_(plan_, settings.model, nullptr),
        sampler_({}, plan_.model.logit_softcap, session_.sampler_room()),
        memory_(bytes_a_token(plan_), settings.threads) {}

  void measure() {
    for (int i = 0; i < 2; ++i) prompt_seconds_ = feed_prompt();
    Profile profile(plan_.program);
    session_.executor().observe(&profile);
    reads_.push_back(read());
    for (int64_t done = 0; done < settings_.tokens;) {
      const int64_t count = std::min<int64_t>(16, settings_.tokens - done);
      const auto start = Clock::now();
      for (int64_t i = 0; i < count; ++i) {
        const int32_t token = sampler_.pick(session_.logits(), 0, 0);
        session_.feed(std::span(&token, 1));
      }
      seconds_.push_back(seconds_since(start) / static_cast<double>(count));
      done += count;
      reads_.push_back(read());
      ratios_.push_back((reads_[reads_.size() - 2] + reads_.back()) / 2 / seconds_.back());
    }
    print();
    profile.print(static_cast<double>(settings_.tokens));
  }

 private:
  double feed_prompt() {
    session_.begin(session_.capacity());
    std::vector<int32_t> prompt(static_cast<size_t>(settings_.prompt));
    for (size_t i = 0; i < prompt.size(); ++i)
      prompt[i] = static_cast<int32_t>(7919 * i) % static_cast<int32_t>(plan_.model.vocab_size);
    const auto start = Clock::now();
    session_.feed(prompt);
    return seconds_since(start);
  }
  double read() {
    std::vector<double> passes;
    for (int i = 0; i < 3; ++i) passes.push_back(memory_.seconds_a_pass());
    return median(passes);
  }
  void print() const {
    const auto bytes = static_cast<double>(bytes_a_token(plan_));
    const double second = median(seconds_), pass = median(reads_);
    const auto [low, high] = std::minmax_element(reads_.begin(), reads_.end());
    fmt::print("{:.1f} tokens/s, {:.1f} % of the ceiling: {:.1f} MB a token, {:.1f} of {:.1f} GB/s (spread {:.1f} %)\n",
               1 / second, 100 * median(ratios_), bytes / 1e6, bytes / second / 1e9, bytes / pass / 1e9,
               100 * (*high - *low) / pass);
    fmt::print("prompt of {} tokens: {:.0f} tokens/s; {} threads, {}\n", settings_.prompt,
               static_cast<double>(settings_.prompt) / prompt_seconds_, settings_.threads,
               kernels::built_in_backend().name());
  }

  Settings settings_;
  Plan plan_;
  Session session_;
  Sampler sampler_;
  Memory memory_;
  double prompt_seconds_ = 0;
  std::vector<double> seconds_, reads_, ratios_;
};

Settings parse(int count, char** words) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (!word.starts_with("--")) {
      settings.model = word;
      continue;
    }
    if (++i == count) throw Error("has no value", word);
    const std::string value = words[i];
    if (word == "--bf16") settings.bf16 = value == "true";
    if (word == "--threads") settings.threads = std::stoi(value);
    if (word == "--prompt") settings.prompt = std::stoll(value);
    if (word == "--tokens") settings.tokens = std::stoll(value);
  }
  if (settings.model.empty()) throw Error("which checkpoint?", "generate");
  return settings;
}

}  // namespace
}  // namespace snug

int main(int count, char** words) {
  try {
    snug::Decoding(snug::parse(count, words)).measure();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "generate: {}\n", error.what());
    return 1;
  }
}
