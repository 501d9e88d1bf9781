// snug explain: why a program on PyTorch ran out of memory, from what it left behind.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "advise/device_choice.h"
#include "ask/answers.h"
#include "ask/arguments.h"
#include "ask/pytorch_answer.h"
#include "ask/target_flags.h"
#include "base/error.h"
#include "base/file.h"
#include "explain/explanation.h"
#include "explain/snapshot_explanation.h"
#include "model/catalogue.h"
#include "report/explain_html.h"
#include "report/explain_recipe.h"
#include "report/explain_report.h"
#include "report/explain_trace.h"
#include "report/units.h"
#include "torch/oom_log.h"
#include "torch/profiler_trace.h"

namespace snug {

namespace {

constexpr size_t kPiece = size_t{1} << 20;

struct Request {
  std::string file;
  bool json = false;
  std::string html, trace;  // files to write; empty: none
  Options rest;             // a recipe, and flags as `snug plan` takes them

  bool has_recipe() const { return !rest.positional.empty() || !rest.others.empty() || rest.has("gpu"); }
};

Request parse(std::span<char* const> words) {
  Request request{.rest = parse_options(words, explain_flags(), takes_of_key)};
  if (request.rest.has("try")) throw UsageError("--try comes first: snug explain --try -- COMMAND");
  if (request.rest.has("steps")) throw UsageError("--steps has a meaning only with --try");
  std::vector<std::string>& names = request.rest.positional;
  if (names.empty()) throw UsageError("which file? snug explain FILE, or - for what comes in");
  request.file = names.front();
  names.erase(names.begin());
  if (request.file.starts_with('-') && request.file != "-")
    throw UsageError(fmt::format("{}: the file comes first: snug explain FILE [RECIPE] [flags]", request.file));
  request.json = request.rest.has("json");
  request.html = request.rest.value("html");
  request.trace = request.rest.value("trace");
  for (const Flag& flag : request.rest.flags)
    if ((flag.name == "html" || flag.name == "trace" || flag.name == "gpu") && flag.value.empty())
      throw UsageError(fmt::format("--{} needs a {}", flag.name, flag.name == "gpu" ? "name" : "file to write"));
  return request;
}

// A file by pieces of 1 MiB; the first is looked at before it is read.
class Source {
 public:
  explicit Source(const std::string& name)
      : name_(name == "-" ? "stdin" : name), file_(name == "-" ? "/dev/stdin" : name, "give a log, a traceback or a trace") {
    next();
  }

  const std::string& name() const { return name_; }
  std::string_view piece() const { return {piece_.data(), size_}; }

  bool next() {
    piece_.resize(kPiece);
    size_ = 0;
    while (size_ < kPiece) {
      const size_t got = file_.read_some(std::as_writable_bytes(std::span(piece_)).subspan(size_));
      if (got == 0) break;
      size_ += got;
    }
    return size_ > 0;
  }

  template <class Reader>
  void feed(Reader& reader) {
    do reader.feed(piece());
    while (next());
  }

 private:
  std::string name_;
  InputFile file_;
  std::vector<char> piece_;
  size_t size_ = 0;
};

void refuse_binary(const Source& source) {
  const std::string_view head = source.piece();
  const auto refuse = [&](const char* what, const char* mend) { throw Error(what, source.name(), mend); };
  if (head.empty()) refuse("the file is empty", "give the log or the traceback of the run");
  if (head.starts_with("\x1f\x8b")) refuse("the file is compressed", "gunzip it first");
  if (head.starts_with("PK\x03\x04"))
    refuse("a zip archive, such as a PyTorch checkpoint, tells nothing of memory", "give the log of the run");
}

bool is_pickle(std::string_view head) { return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5; }

template <class Answer>
int print(const Answer& answer, const Request& request, Asker& asker, const std::optional<RecipeAnswer>& recipe = {}) {
  if (request.json) {
    nlohmann::ordered_json json = explain_json(answer);
    if (recipe) json["recipe"] = recipe_json(*recipe);
    asker.print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    asker.print(explain_text(answer) + (recipe ? recipe_text(*recipe) : ""));
  }
  return 0;
}

// What the device had for this process: all of it, but for what others held.
std::optional<int64_t> capacity_of(const OomMessage& message, const Diagnosis& diagnosis) {
  if (!message.capacity_bytes) return std::nullopt;
  return std::max<int64_t>(1, *message.capacity_bytes - diagnosis.others_bytes.value_or(0));
}

Target target_of_run(const Arguments& arguments, std::optional<int64_t> capacity_bytes) {
  if (arguments.has("gpu")) return target_for(arguments);
  if (arguments.recipe.memory_bytes > 0) return nearest_target(arguments.recipe.memory_bytes);
  if (!capacity_bytes) throw UsageError("which GPU was it? snug explain FILE RECIPE --gpu NAME, or --memory SIZE");
  return nearest_target(*capacity_bytes);
}

// PyTorch's plans of the recipe on the device that the message tells of, where the eager model covers both.
std::optional<PyTorchEngine> engine_for(Arguments arguments, const ModelSpec& model, const Target& target,
                                        int64_t capacity_bytes, Asker& asker) {
  if (!arguments.has("gpu")) arguments.flags.push_back({"gpu", target.name});
  const auto pytorch = pytorch_answer(arguments, model, target, capacity_bytes);
  if (!pytorch) return std::nullopt;
  auto side = pytorch_side(arguments, model, *pytorch, capacity_bytes);
  if (!side) {
    asker.tell(fmt::format("snug: {}; the advice is of snug's plan\n", pytorch_verdict(*pytorch)));
    return std::nullopt;
  }
  return std::optional<PyTorchEngine>(std::in_place, model, target, std::move(*side));
}

// The words behind the file: a recipe, and flags as `snug plan` takes them.
class KnownRecipe {
 public:
  // `told`: what the device had, where the file tells.
  KnownRecipe(const Request& request, std::optional<int64_t> told, Asker& asker)
      : arguments_(read_arguments(request.rest, asker, ModelNames::tell_of_their_base)),
        target_(target_of_run(with_model(arguments_), told)),
        capacity_(told && !arguments_.has("gpu") ? *told : target_.memory_bytes),
        model_(resolve_model(arguments_.recipe.model)),
        engine_(engine_for(arguments_, model_, target_, capacity_, asker)) {}
  KnownRecipe(const KnownRecipe&) = delete;  // the engine refers to model and target
  KnownRecipe& operator=(const KnownRecipe&) = delete;
  ~KnownRecipe() = default;

  std::optional<Expected> expected() { return engine_ ? expected_of(*engine_, arguments_.recipe) : std::nullopt; }

  RecipeAnswer answer(const Diagnosis& diagnosis, TorchStage stage) {
    return answer_for_recipe({arguments_.recipe, arguments_.foreign, arguments_.recipe_file, engine_ ? &*engine_ : nullptr},
                             target_, capacity_, diagnosis.missing_bytes.value_or(0), stage);
  }

 private:
  static const Arguments& with_model(const Arguments& arguments) {
    if (arguments.recipe.model.empty()) throw UsageError("the recipe names no model: give it beside the file");
    return arguments;
  }

  const Arguments arguments_;
  const Target target_;
  const int64_t capacity_;
  const ModelSpec model_;
  std::optional<PyTorchEngine> engine_;
};

// Where the tensors of training simply do not fit, what is known of the recipe takes the place of what helps in general.
void drop_general_advice(Cause cause, TorchStage stage, std::vector<Advice>& advice) {
  if (is_of_training(stage) && (cause == Cause::shortage || cause == Cause::memory_limit)) advice.clear();
}

int explain_text_file(Source& source, const Request& request, Asker& asker) {
  OomLogReader reader;
  source.feed(reader);
  OomLog log = reader.finish();
  if (!log.first) {
    if (const auto summary = read_memory_summary(log.head)) return print(*summary, request, asker);
    throw Error(
        fmt::format("no out-of-memory message in {}", counted(log.lines, "line")), source.name(),
        "looked for those of PyTorch, CUDA, ROCm, XPU, MPS, cuBLAS, cuDNN, NCCL, bitsandbytes, vLLM, JAX, NumPy and the "
        "kernel, for memory_summary() and for profiler traces");
  }
  Explanation e = *explain_log(std::move(log));
  std::optional<RecipeAnswer> recipe;
  if (request.has_recipe())
    recipe = KnownRecipe(request, capacity_of(e.log.cause(), e.diagnosis), asker).answer(e.diagnosis, e.stage.stage);
  if (recipe) drop_general_advice(e.diagnosis.cause, e.stage.stage, e.advice);
  return print(e, request, asker, recipe);
}

// --html and --trace: each file appears whole or not at all.
void write_views(const Request& request, const Snapshot& snapshot, const SnapshotExplanation& e) {
  const std::string name = std::filesystem::path(request.file).filename().string();
  const auto write = [&](const std::string& path, const auto& writer) {
    if (path.empty()) return;
    OutputFile file(path);
    writer(snapshot, e, name,
           [&](std::string_view text) { file.write(std::as_bytes(std::span(text.data(), text.size()))); });
    file.commit();
  };
  write(request.html, write_explain_html);
  write(request.trace, write_explain_trace);
}

// Only a snapshot tells which memory was held when.
void refuse_views(const Request& request) {
  if (request.html.empty() && request.trace.empty()) return;
  throw UsageError(fmt::format(
      "{} needs a memory snapshot: call torch.cuda.memory._record_memory_history() before the model is loaded and "
      "torch.cuda.memory._dump_snapshot(\"oom.pickle\") when it is over",
      request.html.empty() ? "--trace" : "--html"));
}

int explain_snapshot_file(const Request& request, Asker& asker) {
  if (request.file == "-") throw Error("a snapshot cannot come from a pipe", "stdin", "give the file");
  const Snapshot snapshot = read_snapshot(request.file);
  std::optional<KnownRecipe> known;
  if (request.has_recipe()) known.emplace(request, std::nullopt, asker);
  const std::optional<Expected> expected = known ? known->expected() : std::nullopt;
  SnapshotExplanation e = explain_snapshot(snapshot, expected ? &*expected : nullptr);
  std::optional<RecipeAnswer> recipe;
  if (known) recipe = known->answer(e.diagnosis, e.stage.stage);
  if (recipe) drop_general_advice(e.diagnosis.cause, e.stage.stage, e.advice);
  write_views(request, snapshot, e);
  return print(e, request, asker, recipe);
}

int explain_trace(Source& source, const Request& request, Asker& asker) {
  ProfilerTraceReader reader;
  source.feed(reader);
  const ProfilerTrace trace = reader.finish();
  if (trace.memory_events == 0)
    throw Error(fmt::format("the trace has {} events and none of memory", trace.events), source.name(),
                "record it with torch.profiler.profile(profile_memory=True)");
  return print(trace, request, asker);
}

}  // namespace

std::vector<std::string> explain_flags() {
  std::vector<std::string> flags = pytorch_flags();
  flags.insert(flags.begin(), {"json", "html=", "trace=", "gpu=", "try", "steps="});
  return flags;
}

int answer_explain(std::span<char* const> words, Asker& asker) {
  const Request request = parse(words);
  Source source(request.file);
  refuse_binary(source);
  if (is_pickle(source.piece())) return explain_snapshot_file(request, asker);
  refuse_views(request);
  if (looks_like_trace(source.piece())) return explain_trace(source, request, asker);
  return explain_text_file(source, request, asker);
}

}  // namespace snug
