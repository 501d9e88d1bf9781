#include "recipe/megatron_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "recipe/dialects/shell_words.h"
#include "recipe/values.h"

namespace snug {

namespace {

using Flags = std::map<std::string, std::string>;

constexpr int64_t kMost = int64_t{1} << 20;  // of anything: products of three fit in 63 bits

// What changes how much there is to hold, and is not counted.
constexpr std::string_view kNotCounted[] = {"multi-latent-attention",
                                            "mtp-num-layers",
                                            "moe-layer-freq",
                                            "hybrid-layer-pattern",
                                            "hybrid-override-pattern",
                                            "pipeline-model-parallel-layout",
                                            "fp8-format",
                                            "fp4-format",
                                            "use-megatron-fsdp",
                                            "use-custom-fsdp",
                                            "use-torch-fsdp2",
                                            "main-params-dtype",
                                            "grad-reduce-in-bf16",
                                            "encoder-num-layers",
                                            "use-precision-aware-optimizer"};

class Reader {
 public:
  Reader(const Flags& flags, const std::string& where) : flags_(flags), where_(where) {}

  bool is_on(const std::string& name) const {
    const auto found = flags_.find(name);
    return found != flags_.end() && found->second != "false" && found->second != "False";
  }
  std::string text(const std::string& name) const {
    const auto found = flags_.find(name);
    return found == flags_.end() ? "" : found->second;
  }
  int64_t number(const std::string& name, int64_t otherwise) const {
    const auto found = flags_.find(name);
    if (found == flags_.end()) return otherwise;
    try {
      return parse_integer("--" + name, found->second, 1, kMost);
    } catch (const Error& error) {
      throw Error(error.problem(), where_, error.mend());
    }
  }
  int64_t needed(const std::string& name) const {
    if (!flags_.contains(name)) throw Error("--" + name + " is missing", where_, "give the flags of one training command");
    return number(name, 0);
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& mend) const { throw Error(what, where_, mend); }

 private:
  const Flags& flags_;
  const std::string& where_;
};

// Of the gated kind two thirds of four times the width, in steps of 64.
int64_t usual_ffn(int64_t hidden, bool gated) { return gated ? hidden * 4 * 2 / 3 / 64 * 64 : 4 * hidden; }

void read_model(const Reader& flags, MegatronRun& run) {
  run.layers = flags.needed("num-layers");
  run.hidden = flags.needed("hidden-size");
  run.gated = flags.is_on("swiglu");
  run.ffn = flags.number("ffn-hidden-size", usual_ffn(run.hidden, run.gated));
  run.heads = flags.needed("num-attention-heads");
  run.kv_channels = flags.number("kv-channels", std::max<int64_t>(1, run.hidden / run.heads));
  run.kv_groups = flags.is_on("group-query-attention") ? flags.number("num-query-groups", 1) : run.heads;
  run.biases = !flags.is_on("disable-bias-linear");
  run.rms_norm = flags.text("normalization") == "RMSNorm";
  run.qk_norms = flags.is_on("qk-layernorm");
  run.tied = !flags.is_on("untie-embeddings-and-output-weights");
  const std::string positions = flags.text("position-embedding-type");
  if (positions.empty() || positions == "learned_absolute") run.positions = flags.needed("max-position-embeddings");
  run.experts = flags.number("num-experts", 0);
  run.expert_ffn = flags.number("moe-ffn-hidden-size", run.ffn);
  run.shared_expert_ffn = flags.number("moe-shared-expert-intermediate-size", 0);
}

void read_mesh(const Reader& flags, MegatronRun& run) {
  run.tensor = flags.number("tensor-model-parallel-size", 1);
  run.pipeline = flags.number("pipeline-model-parallel-size", 1);
  run.context = flags.number("context-parallel-size", 1);
  run.expert = flags.number("expert-model-parallel-size", 1);
  run.expert_tensor = flags.number("expert-tensor-parallel-size", run.tensor);
  run.first_layers = flags.number("decoder-first-pipeline-num-layers", 0);
  run.last_layers = flags.number("decoder-last-pipeline-num-layers", 0);
  run.counts_embedding = flags.is_on("account-for-embedding-in-pipeline-split");
  run.counts_loss = flags.is_on("account-for-loss-in-pipeline-split");
  run.distributed_optimizer = flags.is_on("use-distributed-optimizer");
  run.optimizer_instances = flags.number("num-distributed-optimizer-instances", 1);
  run.chunks = flags.number("num-virtual-stages-per-pipeline-rank", 1);
  if (const int64_t layers = flags.number("num-layers-per-virtual-pipeline-stage", 0); layers > 0 && run.pipeline > 0)
    run.chunks = std::max<int64_t>(1, run.layers / run.pipeline / layers);
  run.sequence = flags.number("seq-length", 0);
  run.micro_batch = flags.number("micro-batch-size", 0);
  run.sequence_parallel = flags.is_on("sequence-parallel");
  run.fp16 = flags.is_on("fp16");
  if (!run.fp16 && !flags.is_on("bf16")) flags.refuse("neither --bf16 nor --fp16", "fp32 runs are not counted");
}

void check_mesh(const Reader& flags, const MegatronRun& run) {
  const auto divides = [&](int64_t of, int64_t by, const char* what) {
    if (by <= 0 || of % by != 0) flags.refuse(fmt::format("{}: {} by {} leaves a rest", what, of, by), "mend the mesh");
  };
  const int64_t model = checked_mul(checked_mul(run.tensor, run.pipeline), run.context);
  divides(run.ranks, model, "ranks by tensor x pipeline x context");
  if (run.experts > 0) divides(run.experts, run.expert, "experts by expert ranks");
  divides(run.ranks, checked_mul(checked_mul(run.expert_tensor, run.expert), run.pipeline), "ranks by expert mesh");
  divides(checked_mul(run.heads, run.kv_channels), run.tensor, "heads by tensor ranks");
  const int64_t said = static_cast<int64_t>(run.first_layers > 0) + static_cast<int64_t>(run.last_layers > 0);
  const int64_t counted = run.layers - run.first_layers - run.last_layers + static_cast<int64_t>(run.counts_embedding) +
                          static_cast<int64_t>(run.counts_loss);
  if (counted < 0 || (run.pipeline <= said && counted > 0))
    flags.refuse(fmt::format("{} layers are more, or fewer, than the stages have", run.layers), "mend the mesh");
  if (run.pipeline > said) divides(counted, run.pipeline - said, "layers by pipeline stages");
  divides(run.data() * run.context, run.optimizer_instances, "data ranks by optimizer instances");
}

}  // namespace

MegatronRun read_megatron(const Flags& flags, int64_t ranks, int64_t vocab, const std::string& where) {
  const Reader reader(flags, where);
  for (const std::string_view name : kNotCounted)
    if (reader.is_on(std::string(name)))
      reader.refuse(fmt::format("--{} changes what ranks hold, and is not counted", name), "leave it to a run's own log");
  if (const std::string optimizer = reader.text("optimizer"); !optimizer.empty() && optimizer != "adam")
    reader.refuse("--optimizer " + optimizer + " is not counted", "adam is");
  MegatronRun run{.ranks = ranks};
  read_model(reader, run);
  read_mesh(reader, run);
  check_mesh(reader, run);
  const int64_t words = reader.number("vocab-size", vocab);
  if (words <= 0) reader.refuse("how many tokens the vocabulary has is not said", "give --vocab-size");
  run.vocab = align_up(words, checked_mul(reader.number("make-vocab-size-divisible-by", 128), run.tensor));
  return run;
}

Flags megatron_flags(std::string_view text, const std::string& where) {
  Flags most;
  const auto take = [&](Flags flags) {
    if (flags.contains("hidden-size") && flags.size() > most.size()) most = std::move(flags);
  };
  if (where.ends_with(".sh") || where.ends_with(".bash") || text.starts_with("#!")) {
    for (const dialects::Command& command : dialects::shell_commands(text, where).commands) {
      Flags flags;
      for (size_t i = 0; i < command.size(); ++i) {
        const std::string& word = command[i].text;
        if (!word.starts_with("--")) continue;
        const bool has_value = i + 1 < command.size() && !command[i + 1].text.starts_with("--");
        flags[word.substr(2)] = has_value ? command[i + 1].text : "true";
      }
      take(std::move(flags));
    }
  } else {
    Flags flags;
    for (const dialects::Entry& entry : dialects::read_document(text, where).entries) {
      std::string name(entry.leaf());
      name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
      std::replace(name.begin(), name.end(), '_', '-');
      if (entry.kind == dialects::EntryKind::scalar && !entry.values.empty()) flags[name] = entry.values.front();
    }
    take(std::move(flags));
  }
  if (most.empty())
    throw Error("holds no flags of Megatron-LM (--hidden-size, --num-layers …)", where, "give the script that trains");
  return most;
}

}  // namespace snug
