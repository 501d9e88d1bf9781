#include "eager/support_goldens.h"

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "model/catalogue.h"

namespace snug::eager {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (!text.empty() && text.back() == separator) parts.emplace_back();
  return parts;
}

DType dtype_named(const std::string& name) {
  return name == "float32" ? DType::f32 : name == "float16" ? DType::f16 : DType::bf16;
}

const std::map<std::string, Optimizer> kOptimizers = {{"adamw_torch", Optimizer::adamw},
                                                      {"adamw_torch_fused", Optimizer::adamw_fused},
                                                      {"adamw_bnb_8bit", Optimizer::adamw_8bit},
                                                      {"paged_adamw_8bit", Optimizer::paged_adamw_8bit},
                                                      {"paged_adamw_32bit", Optimizer::paged_adamw_32bit},
                                                      {"lion_8bit", Optimizer::lion_8bit},
                                                      {"lion_32bit", Optimizer::lion_32bit},
                                                      {"adafactor", Optimizer::adafactor},
                                                      {"sgd", Optimizer::sgd}};

// Cells that a table does not have say what this one has.
const std::map<std::string, std::string> kUnsaid = {{"dora", "0"},
                                                    {"prep", "none"},
                                                    {"amp", "none"},
                                                    {"attention", "sdpa"},
                                                    {"checkpointing", "none"},
                                                    {"transformers", ""},
                                                    {"peft", ""},
                                                    {"bitsandbytes", ""},
                                                    {"padded", "0"},
                                                    {"litgpt", ""},
                                                    {"loss", "stock"},
                                                    {"cache", "0"},
                                                    {"saved", ""},
                                                    {"fla", ""}};

// LitGPT's words for what adapters are put on, in transformers' names.
std::vector<std::string> litgpt_targets(const std::string& text) {
  const std::map<std::string, std::string> names = {{"query", "q_proj"},      {"key", "k_proj"},    {"value", "v_proj"},
                                                    {"projection", "o_proj"}, {"mlp", "gate_proj"}, {"head", "lm_head"}};
  std::vector<std::string> targets;
  for (const std::string& word : split(text, ':')) targets.push_back(names.at(word));
  return targets;
}

void fill_setup(const std::map<std::string, std::string>& cells, Setup& setup) {
  const auto& at = [&](const char* key) -> const std::string& { return cells.at(key); };
  if (const auto trainer = cells.find("trainer"); trainer != cells.end())
    setup.program = trainer->second == "litgpt" ? Program::litgpt : Program::torchtune;
  setup.method = at("method") == "full" ? Method::full : Method::lora;
  setup.dora = at("dora") == "1";
  setup.targets = setup.program == Program::litgpt ? litgpt_targets(at("targets")) : split(at("targets"), ':');
  setup.rank = std::stoll(at("rank"));
  setup.dropout = std::stod(at("dropout"));
  setup.quantization = at("quant") == "none"   ? Quantization::none
                       : at("quant") == "int8" ? Quantization::eight_bit
                                               : Quantization::four_bit;
  setup.double_quant = at("quant").starts_with("nf4-double");
  if (at("quant").ends_with("bf16")) setup.packed = DType::bf16;
  setup.preparation = at("prep") == "none" ? Preparation::none : at("prep") == "trl" ? Preparation::trl : Preparation::peft;
  setup.weights = dtype_named(at("weights"));
  if (at("amp") != "none") setup.autocast = at("amp") == "bf16" ? DType::bf16 : DType::f16;
  setup.attention = at("attention") == "eager"   ? Attention::eager
                    : at("attention") == "flash" ? Attention::flash
                                                 : Attention::sdpa;
  setup.checkpointing = at("checkpointing") == "none"        ? Checkpointing::none
                        : at("checkpointing") == "reentrant" ? Checkpointing::reentrant
                                                             : Checkpointing::non_reentrant;
  setup.optimizer = kOptimizers.at(at("optim"));
  setup.batch = std::stoll(at("batch"));
  setup.seq_len = std::stoll(at("seq"));
  setup.accumulation = std::stoll(at("accum"));
  setup.padded = at("padded") == "1";
  setup.saves_embedding = at("saved").find("embed_tokens") != std::string::npos;
  setup.saves_head = at("saved").find("lm_head") != std::string::npos;
}

// Columns of eager_evaluation.csv.
void fill_evaluation(const std::map<std::string, std::string>& cells, const StackProfile& stack, Setup& setup) {
  const bool cache = cells.at("cache") == "1" && stack.trainer_keeps_cache;
  setup.cache = cache && setup.checkpointing == Checkpointing::none;
  if (cells.count("eval_rows") == 0) return;
  Evaluation& evaluation = setup.evaluation;
  evaluation.rows = std::stoll(cells.at("eval_rows"));
  evaluation.batch = std::stoll(cells.at("eval_batch"));
  evaluation.length = std::stoll(cells.at("eval_seq"));
  evaluation.keeps_outputs = cells.at("metrics") == "1";
  evaluation.moved_after = std::stoll(cells.at("moved"));
  evaluation.cache = cache;
}

// Columns of eager_ranks.csv.
void fill_ranks(const std::map<std::string, std::string>& cells, int64_t hidden, Setup& setup) {
  if (cells.count("sharding") == 0) return;
  const std::map<std::string, Sharding> kinds = {{"ddp", Sharding::ddp},
                                                 {"fsdp1", Sharding::fsdp1},
                                                 {"fsdp1_flat", Sharding::fsdp1},
                                                 {"fsdp1_grad", Sharding::fsdp1},
                                                 {"fsdp1_still", Sharding::fsdp1},
                                                 {"fsdp2", Sharding::fsdp2},
                                                 {"fsdp2_grad", Sharding::fsdp2},
                                                 {"zero1", Sharding::zero1},
                                                 {"zero2", Sharding::zero2},
                                                 {"zero1_overlap", Sharding::zero1},
                                                 {"zero2_overlap", Sharding::zero2},
                                                 {"zero3", Sharding::zero3},
                                                 {"zero3_init", Sharding::zero3}};
  Ranks& ranks = setup.ranks;
  ranks.sharding = kinds.at(cells.at("sharding"));
  ranks.count = std::stoll(cells.at("ranks"));
  ranks.number = std::stoll(cells.at("rank_number"));
  ranks.overlaps = cells.at("sharding").ends_with("overlap");
  if (ranks.overlaps) ranks.bucket_elements = 200'000'000;
  if (ranks.sharding == Sharding::zero3) {  // "auto", as transformers fills it in
    ranks.bucket_elements = hidden * hidden;
    ranks.prefetch_elements = hidden * hidden * 9 / 10;
    ranks.persistent_elements = 10 * hidden;
  }
  ranks.loads_in_parts = cells.at("sharding") == "zero3_init";
  ranks.reshards_after_forward = !cells.at("sharding").ends_with("grad");
  ranks.keeps_parameters = cells.at("sharding") != "fsdp1_flat";
  ranks.gathers_ahead = ranks.sharding == Sharding::fsdp1 && cells.at("sharding") != "fsdp1_still";
  ranks.finds_unused = ranks.sharding == Sharding::ddp && finds_unused(setup);
}

}  // namespace

std::string Golden::name() const {
  std::string text;
  for (const char* key :
       {"transformers", "model",      "layers",   "method",    "quant",         "prep",     "dora",  "targets",
        "dropout",      "weights",    "amp",      "attention", "checkpointing", "optim",    "batch", "seq",
        "accum",        "padded",     "sm",       "loss",      "saved",         "sharding", "ranks", "rank_number",
        "eval_rows",    "eval_batch", "eval_seq", "metrics",   "moved",         "cache"})
    if (const auto cell = cells.find(key); cell != cells.end()) text += cell->second + " ";
  return text;
}

std::vector<Golden> read_goldens(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error("the goldens cannot be read", path, "make them with tests/oracle/eager_goldens.py");
  std::string line;
  std::getline(file, line);
  const auto columns = split(line, ',');
  std::vector<Golden> goldens;
  while (std::getline(file, line)) {
    const auto cells = split(line, ',');
    Golden golden;
    for (size_t i = 0; i < columns.size(); ++i) golden.cells[columns[i]] = cells.at(i);
    golden.cells.insert(kUnsaid.begin(), kUnsaid.end());
    const auto& at = [&](const char* key) -> const std::string& { return golden.cells.at(key); };
    golden.spec = *find_model(at("model"));
    if (const int64_t layers = std::stoll(at("layers")); layers > 0) {
      golden.spec.layers = layers;
      if (!golden.spec.local_layers.empty()) golden.spec.local_layers.resize(static_cast<size_t>(layers));
    }
    if (golden.cells.count("vocab") > 0) golden.spec.vocab_size = std::stoll(at("vocab"));
    if (golden.cells.count("positions") > 0) golden.spec.max_position = std::stoll(at("positions"));
    fill_setup(golden.cells, golden.setup);
    fill_ranks(golden.cells, golden.spec.hidden_size, golden.setup);
    golden.stack =
        stack_profile(at("torch"), at("transformers"), at("peft"), at("bitsandbytes"), "", at("litgpt"), "", at("fla"));
    fill_evaluation(golden.cells, golden.stack, golden.setup);
    if (at("loss") == "liger")
      golden.setup.liger = of_trainer({true, true, true, true}, golden.setup, golden.stack.trainer_has_liger_for_adapters);
    golden.target.compute_capability = std::stoi(at("sm"));
    golden.target.memory_bytes = 84'442'873'856 + golden.target.context_most_bytes;  // what the null device gives
    if (golden.cells.count("card_bytes") > 0) golden.target.memory_bytes = std::stoll(at("card_bytes"));
    golden.phase = at("phase");
    golden.static_bytes = std::stoll(at("static"));
    golden.allocated_bytes = std::stoll(at("allocated"));
    golden.reserved_bytes = std::stoll(at("reserved"));
    golden.steady_bytes = std::stoll(at("steady"));
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

}  // namespace snug::eager
