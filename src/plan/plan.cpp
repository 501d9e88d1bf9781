#include "plan/plan.h"

#include <algorithm>
#include <map>

#include "plan/checkpoint_search.h"
#include "plan/file_tensors.h"
#include "plan/ranks.h"
#include "plan/workspaces.h"
#include "program/block_builder.h"
#include "program/compile.h"
#include "program/passes/checkpoint_inputs.h"
#include "program/passes/quantize.h"
#include "program/rules.h"

namespace snug {

namespace {

double flops_of(const Program& program, const Region& region) {
  double sum = 0;
  for (const Item& item : region.items) {
    if (const Op* op = item.op()) sum += rule_of(op->kind).work(program, *op).flops;
    if (const Region* child = item.region()) sum += flops_of(program, *child);
  }
  return sum * static_cast<double>(region.count);
}

void add_up_peak(Plan& plan) {
  const HomeLayout& device = plan.layout.device();
  for (const Storage& storage : plan.program.storages)
    if (storage.lifetime == Lifetime::run && storage.home == Home::device)
      plan.breakdown[static_cast<size_t>(storage.role)] += align_up(storage.bytes, kAlignment) * storage.instances;
  for (const Life& life : plan.layout.timeline.lives)
    if (life.is_alive(Home::device, device.peak_time))
      plan.breakdown[static_cast<size_t>(plan.program.storage(life.storage).role)] += life.bytes;
  // Holes between storages, and the arena's last page, are nobody's: temporaries could use them.
  const int64_t holes = align_up(device.bytes, plan.target.page_bytes) - device.run_bytes - device.peak_live_bytes;
  plan.breakdown[static_cast<size_t>(Role::temporary)] += holes;
}

void find_stage_peaks(Plan& plan) {
  const HomeLayout& device = plan.layout.device();
  const std::vector<Stage>& stages = plan.layout.timeline.stages;
  for (size_t time = 0; time < stages.size(); ++time) {
    std::optional<int64_t>& peak = plan.stage_peaks[static_cast<size_t>(stages[time])];
    const int64_t bytes = plan.runtime_bytes + device.run_bytes + device.live_bytes[time];
    peak = std::max(peak.value_or(0), bytes);
  }
  plan.peak_stage = stages[static_cast<size_t>(device.peak_time)];
  plan.stage_peaks[static_cast<size_t>(plan.peak_stage)] = plan.peak_bytes;
}

// A ring of all, and one of each kind of group. Of what passes through none takes more than its largest message fills; all
// ranks, and stages, say other things too.
int64_t bytes_of_ranks(const Program& program, const Target& target) {
  const RankMesh& mesh = program.mesh;
  if (mesh.ranks == 1) return 0;
  std::map<RankGroup, int64_t> largest = {{mesh.ring_of(RankGroup::all), target.runtime_bytes_of_ranks},
                                          {mesh.ring_of(RankGroup::pipeline), target.runtime_bytes_of_ranks}};
  for_each_op(program.root, [&](const Op& op, const Region&) {
    if (run_by(op.kind) != RunBy::ranks) return;
    int64_t& most = largest[mesh.ring_of(op.attributes.group)];
    for (const Operand& operand : op.operands) most = std::max(most, program.tensor(operand.tensor).bytes());
  });
  int64_t sum = 0;
  for (const RankGroup group : kRankGroups) {
    if (!mesh.has_ring(group)) continue;
    // Two mailboxes of two messages each, and a page that counts them.
    const int64_t message = align_up(std::min(largest[group], target.runtime_bytes_of_ranks), target.page_bytes);
    sum += std::min(target.runtime_bytes_of_ranks, 2 * (2 * message + target.page_bytes));
  }
  return sum;
}

// What a process that runs the Program takes outside its arena.
int64_t runtime_bytes(const ModelSpec& model, const Program& program, const Recipe& recipe, const Target& target) {
  const int64_t lengths = recipe.packing ? 1 : kMostBuckets;  // each prepares products of its own
  const int64_t products = target.runtime_bytes_per_product == 0 ? 0 : distinct_products(program);
  return target.runtime_bytes + target.threads * target.runtime_bytes_per_thread +
         lengths * products * target.runtime_bytes_per_product + bytes_of_ranks(program, target) +
         most_file_tensors(model, program) * target.runtime_bytes_per_file_tensor;
}

// Cuts, lays out and adds up what `plan.program` needs; `more`: bytes of the process beside the usual.
void complete(Plan& plan, int64_t red_zone, int64_t more) {
  const Target& target = plan.target;
  fit_to_target(plan.program, target);
  plan.layout = lay_out(plan.program, red_zone);
  plan.runtime_bytes = runtime_bytes(plan.model, plan.program, plan.recipe, target) + more;
  plan.budget_bytes = budget_of(plan.recipe, target);
  plan.peak_bytes = checked_add(plan.runtime_bytes, align_up(plan.layout.device().bytes, target.page_bytes));
  add_up_peak(plan);
  find_stage_peaks(plan);
}

// `bytes_in`: what is needed in a home.
template <typename BytesIn>
std::optional<Home> overfull(const Target& target, const BytesIn& bytes_in) {
  for (const Home home : {Home::pinned, Home::host, Home::disk})
    if (const auto& room = target.room[static_cast<size_t>(home)]; room && bytes_in(home) > *room) return home;
  return std::nullopt;
}

Plan planned(const ModelSpec& model, const Recipe& recipe, const Target& target, const SavedChoice* saved,
             int64_t red_zone) {
  Plan plan{.model = model, .recipe = recipe, .precision = {}, .target = target};
  plan.recipe.quantize = quantization_of(model, recipe);
  plan.precision = precision_of(plan.recipe);
  if (saved != nullptr) plan.saved = *saved;
  plan.program = compile(model, plan.recipe, saved);
  complete(plan, red_zone, 0);
  plan.step_flops = flops_of(plan.program, plan.program.region(Section::step));
  if (target.cost.known()) plan.step_time = step_time(target.cost, plan.program);
  return plan;
}

Program fitted(const ModelSpec& model, const Recipe& recipe, const Target& target, const SavedChoice* saved) {
  Program program = compile(model, recipe, saved);
  fit_to_target(program, target);
  return program;
}

Estimate bytes_of(const Program& program, const ModelSpec& model, const Recipe& recipe, const Target& target) {
  const Timeline timeline = live_ranges(program);
  const auto most_in = [&](Home home) {
    return checked_add(timeline.run_bytes[static_cast<size_t>(home)], peak_live_bytes(timeline, home));
  };
  const int64_t arena = most_in(Home::device);
  return {.peak_bytes = runtime_bytes(model, program, recipe, target) + align_up(arena, target.page_bytes),
          .overfull_home = overfull(target, most_in),
          .step_time = {},
          .step_flops = 0,
          .trainable_parameters = 0};
}

Estimate estimated(const ModelSpec& model, const Recipe& recipe, const Target& target, const SavedChoice* saved) {
  const Program program = fitted(model, recipe, target, saved);
  Estimate estimate = bytes_of(program, model, recipe, target);
  estimate.step_time = step_time(target.cost, program);
  estimate.step_flops = flops_of(program, program.region(Section::step));
  estimate.trainable_parameters = program.trainable_parameters();
  return estimate;
}

}  // namespace

DType Plan::compute() const {
  bool rounds = false;
  for_each_op(program.root, [&](const Op& op, const Region&) { rounds = rounds || op.cut.arithmetic == Arithmetic::bf16; });
  return rounds ? DType::bf16 : DType::f32;
}

std::optional<Home> Plan::overfull_home() const {
  return overfull(target, [&](Home home) { return layout.of(home).bytes; });
}

int64_t Plan::away_bytes() const {
  return checked_add(checked_add(layout.of(Home::pinned).bytes, layout.of(Home::host).bytes), layout.of(Home::disk).bytes);
}

namespace {

// Where blocks' inputs alone are too much and nothing may wait on disk: the most of them that fit at once, or, if none do,
// the fewest that there can be. `least`: what blocks let go of, all of it.
std::optional<SavedChoice> with_fewer_inputs(const ModelSpec& model, const Recipe& recipe, const Target& target,
                                             const SavedChoice& least) {
  if (recipe.offload_activations || recipe.offload_weights) return std::nullopt;
  std::vector<int64_t> loops;
  for (const LayerRun& run : layer_runs(model)) loops.push_back(run.count);
  SavedChoice choice = least;
  const auto fits = [&](int64_t inputs) {
    choice.inputs = inputs;
    return estimate_bytes(model, recipe, target, choice).peak_bytes <= budget_of(recipe, target);
  };
  int64_t low = fewest_inputs(loops), high = model.layers;  // high: does not fit
  if (low >= high) return std::nullopt;
  if (fits(low))
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
  choice.inputs = low;
  return choice;
}

// What it costs to keep less than all.
void tell_saved_seconds(Plan& plan) {
  if (plan.target.cost.known() && !plan.saved.keeps_all())
    plan.saved_seconds =
        plan.step_time.seconds - estimate(plan.model, plan.recipe, plan.target, SavedChoice()).step_time.seconds;
}

}  // namespace

Plan plan_with_all_inputs(const ModelSpec& model, const Recipe& recipe, const Target& target, int64_t red_zone) {
  if (!recipe.checkpoint_to_budget) return planned(model, recipe, target, nullptr, red_zone);
  CheckpointSearch search(model, recipe, target);
  std::optional<Plan> plan;
  while (const std::optional<CheckpointSearch::Found> found = search.next()) {
    Plan tried = planned(model, recipe, target, &found->choice, red_zone);
    const bool fits = tried.fits();
    if (fits || !plan || tried.peak_bytes < plan->peak_bytes) plan = std::move(tried);
    if (fits) break;
  }
  return std::move(*plan);
}

namespace {

// Of every stage; the plan is that of the one which needs most, and lasts as long as the slowest takes.
Plan plan_of_stages(const ModelSpec& model, Recipe recipe, const Target& target, int64_t red_zone) {
  std::optional<Plan> most;
  std::vector<StagePlan> stages;
  StepTime slowest;
  for (int64_t stage = 0; stage < recipe.parallel.pipeline; ++stage) {
    recipe.parallel.stage = stage;
    Plan plan = make_plan(model, recipe, target, red_zone);
    stages.push_back({.peak_bytes = plan.peak_bytes,
                      .arena_bytes = plan.peak_bytes - plan.runtime_bytes,
                      .sent_bytes = sent_to_ranks(plan.program, stage * plan.program.mesh.of_stage())});
    if (plan.step_time.seconds > slowest.seconds) slowest = plan.step_time;
    if (!most || plan.peak_bytes > most->peak_bytes) most = std::move(plan);
  }
  most->recipe.parallel.stage = Parallel::kEveryStage;
  most->stages = std::move(stages);
  most->step_time = slowest;
  return std::move(*most);
}

bool means_every_stage(const Recipe& recipe) {
  return recipe.parallel.pipeline > 1 && recipe.parallel.stage == Parallel::kEveryStage;
}

}  // namespace

Plan make_plan(const ModelSpec& model, const Recipe& recipe, const Target& target, int64_t red_zone) {
  if (means_every_stage(recipe)) return plan_of_stages(model, recipe, target, red_zone);
  Plan plan = plan_with_all_inputs(model, recipe, target, red_zone);
  if (!recipe.checkpoint_to_budget) return plan;
  if (!plan.fits() && recipe.parallel.pipeline == 1)
    if (const auto fewer = with_fewer_inputs(model, recipe, target, plan.saved)) {
      Plan tried = planned(model, recipe, target, &*fewer, red_zone);
      if (tried.peak_bytes < plan.peak_bytes) plan = std::move(tried);
    }
  tell_saved_seconds(plan);
  return plan;
}

Estimate estimate(const ModelSpec& model, const Recipe& recipe, const Target& target) {
  if (means_every_stage(recipe)) {  // the first has most on its way, the last the loss
    Recipe first = recipe, last = recipe;
    first.parallel.stage = 0;
    last.parallel.stage = recipe.parallel.pipeline - 1;
    const Estimate a = estimate(model, first, target), b = estimate(model, last, target);
    Estimate most = a.peak_bytes >= b.peak_bytes ? a : b;
    if (a.step_time.seconds > b.step_time.seconds) most.step_time = a.step_time;
    if (b.step_time.seconds > a.step_time.seconds) most.step_time = b.step_time;
    return most;
  }
  if (recipe.checkpoint_to_budget) {
    const CheckpointSearch::Found found = *CheckpointSearch(model, recipe, target).next();
    return target.cost.known() ? found.needed : estimate(model, recipe, target, found.choice);
  }
  return estimated(model, recipe, target, nullptr);
}

Estimate estimate(const ModelSpec& model, const Recipe& recipe, const Target& target, const SavedChoice& saved) {
  return estimated(model, recipe, target, &saved);
}

Estimate estimate_bytes(const ModelSpec& model, const Recipe& recipe, const Target& target, const SavedChoice& saved) {
  return bytes_of(fitted(model, recipe, target, &saved), model, recipe, target);
}

int64_t budget_of(const Recipe& recipe, const Target& target) {
  return recipe.memory_bytes > 0 ? recipe.memory_bytes : target.memory_bytes;
}

Plan make_plan(const ModelSpec& model, const GenerationRequest& request, const Target& target, int64_t red_zone) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.bf16 = request.bf16;
  recipe.fp16 = request.fp16;
  recipe.seq_len = request.capacity;
  recipe.memory_bytes = request.memory_bytes;
  Plan plan{.model = model, .recipe = recipe, .precision = precision_of(recipe), .target = target};
  GenerationShape shape{.capacity = request.capacity, .steps = {}};
  for (int64_t rows : {256, 128, 64, 32, 4, 1})  // what comes at once may fill the smallest that holds it in part
    if (rows == 1 || (rows / 2 < request.longest_feed && rows <= request.capacity)) shape.steps.push_back(rows);
  plan.program = compile_generation(model, plan.precision, shape, request.lora ? &*request.lora : nullptr);
  complete(plan, red_zone, request.text_bytes);
  const auto last = static_cast<int32_t>(shape.steps.size()) - 1;
  plan.step_flops = flops_of(plan.program, plan.program.region(Section::generation_step, last)) +
                    flops_of(plan.program, plan.program.region(Section::head));  // of one token
  return plan;
}

std::optional<int64_t> capacity_that_fits(const Plan& plan, const GenerationRequest& request, int64_t least) {
  const auto fits = [&](int64_t capacity) {
    GenerationRequest changed = request;
    changed.capacity = capacity;
    changed.longest_feed = std::min(request.longest_feed, capacity);
    return make_plan(plan.model, changed, plan.target).fits();
  };
  if (!fits(least)) return std::nullopt;
  constexpr int64_t kStep = 64;
  int64_t low = 0, high = (request.capacity - least) / kStep;  // steps above `least`: `low` fits
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (fits(least + middle * kStep)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return least + low * kStep;
}

std::vector<LargeStorage> largest_at_peak(const Plan& plan, size_t count) {
  std::map<std::pair<std::string, Role>, int64_t> by_name;
  for (const Storage& storage : plan.program.storages)
    if (storage.lifetime == Lifetime::run && storage.home == Home::device)
      by_name[{storage.name, storage.role}] += storage.bytes * storage.instances;
  for (const Life& life : plan.layout.timeline.lives) {
    if (!life.is_alive(Home::device, plan.layout.device().peak_time)) continue;
    const Storage& storage = plan.program.storage(life.storage);
    by_name[{storage.name, storage.role}] += life.bytes;
  }
  std::vector<LargeStorage> list;
  for (const auto& [key, bytes] : by_name) list.push_back({key.first, key.second, bytes});
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (list.size() > count) list.resize(count);
  return list;
}

}  // namespace snug
