#include "train/trainer.h"
#include "run/settle_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "comm/agree.h"
#include "data/loader.h"
#include "formats/atomic_directory.h"
#include "run/bucket_executors.h"
#include "run/inverse_frequency.h"
#include "run/process_memory.h"
#include "run/weight_files.h"
#include "train/batch_of_op.h"
#include "train/best_evaluation.h"
#include "train/choose_start.h"
#include "train/count_batch.h"
#include "train/evaluator.h"
#include "train/event_log.h"
#include "train/prepare_data.h"
#include "train/run_card.h"
#include "train/run_state.h"
#include "train/run_trace.h"
#include "train/schedule.h"
#include "train/stopwatch.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

double rate_of(int64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0.0; }

class Run final : public Host {
 public:
  Run(const Plan& plan, Reporter& reporter, const std::atomic<int>& stop, const fs::path& trace, RankRings* ranks)
      : plan_(plan), recipe_(plan.recipe), reporter_(reporter), stop_(stop), ranks_(ranks), output_(recipe_.output_dir) {
    if (!trace.empty() && is_first()) trace_.emplace(trace, plan);
  }

  RunSummary go() {
    UniqueFd lock;
    if (ranks_ != nullptr) ranks_->find_places(output_);
    if (keeps()) lock = lock_directory(output_);
    if (keeps() && !is_first()) remove_temporaries(output_);  // of the first's the start is chosen
    const std::optional<fs::path> checkpoint = agreed_start();
    prepare_data();
    settle_process(plan_.target.threads);
    // Stages have plans of their own, and must agree on lengths.
    const auto lengths = static_cast<size_t>(plan_.program.mesh.pipeline > 1 ? 0 : data_summary_.buckets);
    executors_.emplace(plan_, std::span(data_summary_.bucket_length).first(lengths),
                       output_ / (is_first() ? ".pages" : fmt::format(".pages-{}", rank())));
    if (ranks_ != nullptr) executors_->join(*ranks_);
    executor_ = &executors_->of_plan();
    if (trace_) executors_->each([this](Executor& e) { trace_->expect(e.program(), e.layout()); });
    run_traced(*executor_, plan_.program.region(Section::load), 0);
    if (checkpoint) {
      restore(*checkpoint);
    } else if (is_first()) {
      remove_checkpoints(output_);  // not before the new run has shown that it can start
    }
    if (is_first()) metrics_.emplace(output_ / "metrics.jsonl", done_);
    meet();
    if (recipe_.tensorboard && is_first())
      events_.emplace(recipe_.logging_dir.empty() ? output_ / "runs" : fs::path(recipe_.logging_dir), done_);
    if (done_ > 0) recall_evaluations();
    first_step_ = saved_step_ = done_;
    reporter_.loaded();
    if (eval_ && done_ == 0 && recipe_.eval_on_start) evaluate();
    train_steps();
    finish();
    RunSummary result = summary();
    meet();
    return result;
  }

  void run(const Op& op, int64_t repetition) override {
    if (op.kind == OpKind::load) load(op);
    if (op.kind == OpKind::batch) fill_batch(op, repetition);
    if (op.kind == OpKind::turn) take_turn(repetition);
    if (op.kind == OpKind::save) save_checkpoint(*executor_, plan_, identity_, {done_, updates_}, staging_of(op));
  }

 private:
  // ---- Ranks

  int64_t rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }
  // Micro-batches that ranks work on at a time, which of them is this rank's, and its place among those that split it.
  int64_t batches() const { return ranks_ == nullptr ? 1 : ranks_->mesh().batches(); }
  int64_t batch_of_rank() const { return ranks_ == nullptr ? 0 : ranks_->mesh().batch_of(rank()); }
  int64_t place_in_batch() const { return ranks_ == nullptr ? 0 : ranks_->mesh().index(RankGroup::batch, rank()); }
  bool is_first() const { return rank() == 0; }
  // Makes the output directory of those who see it.
  bool keeps() const { return ranks_ == nullptr || ranks_->places().keeps(); }
  // A directory of the first rank's as this one sees it.
  fs::path brought(const fs::path& from, const fs::path& to) const {
    return ranks_ == nullptr ? from : ranks_->places().bring(ranks_->all(), from, to);
  }
  void meet() {
    if (ranks_ != nullptr) ranks_->all().barrier();
  }
  void sum(std::span<double> values) {
    if (ranks_ != nullptr) sum_over_ranks(ranks_->all(), values);
  }

  // The first rank's choice.
  std::optional<fs::path> agreed_start() {
    std::optional<fs::path> checkpoint;
    if (is_first()) checkpoint = choose_start(recipe_, reporter_);
    if (ranks_ == nullptr) return checkpoint;
    const std::string path = of_first_rank(ranks_->all(), checkpoint.value_or("").string());
    return path.empty() ? std::nullopt : std::optional<fs::path>(path);
  }

  // ---- Before the first step

  LoaderOptions loader_options(bool shuffle, int64_t accumulation) const {
    return {.batch = recipe_.batch,
            .accumulation = accumulation,
            .seq_len = plan_.program.seq_len,
            .shuffle = shuffle,
            .seed = recipe_.seed,
            .normalization = recipe_.loss_normalization,
            .pad_token = static_cast<int32_t>(std::max<int64_t>(0, plan_.model.pad_token_id))};
  }

  void prepare_data() {
    if (is_first()) prepare_datasets(plan_, output_, reporter_);
    meet();
    brought(output_ / "dataset", output_ / "dataset");
    data_.emplace(output_ / "dataset" / "train", loader_options(recipe_.shuffle, recipe_.accumulation * batches()));
    data_summary_ = data_->summary();
    identity_ = {data_summary_.rows, data_summary_.tokens};
    const int64_t an_epoch = data_->steps_per_epoch();
    total_steps_ = recipe_.max_steps > 0
                       ? recipe_.max_steps
                       : static_cast<int64_t>(std::ceil(recipe_.num_train_epochs * static_cast<double>(an_epoch)));
    if (plan_.program.mesh.pipeline > 1) targets_.resize(static_cast<size_t>(recipe_.accumulation));
    if (evaluates(recipe_)) eval_.emplace(output_ / "dataset" / "eval", loader_options(false, 1));
  }

  // What a host op passes bytes through; empty where it needs none.
  std::span<std::byte> staging_of(const Op& op) const {
    const TensorId staging = op.find(Slot::staging);
    return executor_->transfer().host_room<std::byte>(staging);
  }

  void load(const Op& op) {
    const LoadRoom room = load_room(*executor_, op);
    const std::span<std::byte> staging = room.staging;
    Transfer& transfer = executor_->transfer();
    transfer.clear(plan_.program.tensor(plan_.program.interface.scalars).storage);
    executor_->set_scalar(Scalar::loss_scale,
                          recipe_.fp16 ? std::ldexp(1.0, static_cast<int>(recipe_.initial_scale_power)) : 1.0);
    for (size_t id = 0; id < plan_.program.storages.size(); ++id)
      if (plan_.program.storages[id].role == Role::optimizer) transfer.clear(static_cast<StorageId>(id));
    fill_inverse_frequencies(plan_.model, *executor_);
    load_model(*executor_, plan_.model, Checkpoint(recipe_.model), recipe_.seed, room);
    if (!recipe_.adapter.empty()) load_adapter(*executor_, recipe_.adapter, recipe_.lora, staging);
    staging_ = staging;
  }

  void restore(const fs::path& checkpoint) {
    const fs::path here = brought(checkpoint, output_ / ".resumed");
    const Progress progress = resume(*executor_, plan_, identity_, here, staging_);
    meet();
    std::error_code error;  // what stays is replaced by the next
    if (here != checkpoint && keeps()) fs::remove_all(here, error);
    done_ = progress.step;
    updates_ = progress.updates;
    reporter_.resumed(checkpoint, done_);
  }

  // Of the run that goes on, as the first rank's file has them.
  void recall_evaluations() {
    if (is_first()) each_evaluation(output_ / "metrics.jsonl", [this](const EvaluationMetrics& e) { best_.note(e); });
    BestEvaluation::Numbers numbers = is_first() ? best_.numbers() : BestEvaluation::Numbers{};
    sum(numbers);
    best_.set(numbers);
  }

  // ---- Steps

  // Ranks take a window's micro-batches in turn; where it has no more, one gets padding.
  void fill_batch(const Op& op, int64_t repetition) {
    BatchOfOp batch(*running_, op);
    const bool evaluating = loader_ != &*data_;
    const int64_t micro_batch = evaluating ? repetition : repetition * batches() + batch_of_rank();
    const MicroBatchCounts counts = loader_->fill(window_, micro_batch, batch);
    executor_->set_scalar(Scalar::target_count, static_cast<double>(batch.targets()));
    if (!evaluating && static_cast<size_t>(repetition) < targets_.size())
      targets_[static_cast<size_t>(repetition)] = batch.targets();
    name_micro_batch(repetition, micro_batch);
    if (place_in_batch() == 0 && plan_.program.stage == 0) tokens_ += counts.tokens;
  }

  // What draws for a micro-batch draws for this one.
  void name_micro_batch(int64_t repetition, int64_t micro_batch) {
    executor_->set_scalar(Scalar::first_micro_batch, repetition == 0 ? 1.0 : 0.0);
    executor_->set_scalar(Scalar::micro_batch, static_cast<double>(micro_batch));
  }

  // Of several on their way, back comes the one that this stage began so many before.
  void take_turn(int64_t repetition) {
    name_micro_batch(repetition, repetition * batches() + batch_of_rank());
    executor_->set_scalar(Scalar::target_count, static_cast<double>(targets_.at(static_cast<size_t>(repetition))));
  }

  void set_scalars(double rate) {
    executor_->set_scalar(Scalar::learning_rate, rate);
    executor_->set_scalar(Scalar::step, static_cast<double>(updates_ + 1));
    executor_->set_scalar(Scalar::inverse_labels,
                          window_.label_count > 0 ? 1.0 / static_cast<double>(window_.label_count) : 0.0);
    executor_->set_scalar(Scalar::loss_sum, 0.0);
    executor_->set_scalar(Scalar::square_sum, 0.0);
  }

  void train_steps() {
    watch_ = Stopwatch();
    end_if_hopeless();
    while (done_ < total_steps_ && !stopped_) {
      watch_.lap();
      loader_ = &*data_;
      window_ = data_->window(done_);
      const double rate = learning_rate(recipe_, updates_, total_steps_);  // a skipped step leaves it, as in Hugging Face
      set_scalars(rate);
      const double loss_scale = executor_->scalar(Scalar::loss_scale);
      const int64_t tokens_before = tokens_;
      run_window(Section::step, (window_.micro_batches + batches() - 1) / batches(), true);
      if (trace_ && trace_->step_done()) finish_trace();
      ++done_;
      if (executor_->scalar(Scalar::skip) == 0.0) ++updates_;
      agree(tokens_before);
      report(rate, loss_scale, rate_of(tokens_ - tokens_before, watch_.lap()));
      if (eval_ && due(recipe_.eval_strategy, recipe_.eval_steps)) evaluate();  // before saving: evaluated once
      if (due(recipe_.save_strategy, recipe_.save_steps)) save();
      end_if_hopeless();
    }
    finish_trace();
    if (done_ < total_steps_ && done_ > saved_step_) save();  // stopped
  }

  // On what each rank knows alone: its tokens, and whether somebody asked it to stop.
  void agree(int64_t tokens_before) {
    double values[] = {static_cast<double>(tokens_ - tokens_before), stop_.load() == 0 ? 0.0 : 1.0};
    sum(values);
    tokens_ = tokens_before + static_cast<int64_t>(values[0]);
    stopped_ = values[1] > 0;
  }

  // The region in the Program of the shortest rows that hold the window's.
  void run_window(Section section, int64_t micro_batches, bool traced = false) {
    running_ = &executors_->holding(window_.longest_row);
    const Region& region = running_->program().region(section);
    if (traced) return run_traced(*running_, region, micro_batches);
    running_->run(region, *this, micro_batches);
  }

  void run_traced(Executor& executor, const Region& region, int64_t micro_batches) {
    if (trace_) executor.observe(trace_->watch(executor.program()));
    executor.run(region, *this, micro_batches);
    executor.observe(nullptr);
    if (trace_) trace_->leave();
  }

  void finish_trace() {
    if (trace_) trace_->finish();
    trace_.reset();
  }

  bool due(Strategy strategy, int64_t steps) const {
    const int64_t every = strategy == Strategy::steps ? steps : strategy == Strategy::epoch ? data_->steps_per_epoch() : 0;
    return every > 0 && done_ % every == 0 && done_ < total_steps_;
  }

  void end_if_hopeless() {
    if (!best_.is_hopeless() || done_ >= total_steps_) return;
    total_steps_ = done_;
    reporter_.ended_early(done_, best_.step());
  }

  void report(double rate, double loss_scale, double tokens_per_second) {
    const double loss = executor_->scalar(Scalar::loss_sum);
    const bool skipped = executor_->scalar(Scalar::skip) != 0.0;
    const ProcessMemory memory = process_memory();
    StepReport report{.metrics = {.step = done_,
                                  .loss = loss,
                                  .gradient_norm = executor_->scalar(Scalar::gradient_norm),
                                  .learning_rate = rate,
                                  .tokens_per_second = tokens_per_second,
                                  .memory_bytes = memory.resident_bytes,
                                  .skipped = skipped},
                      .total_steps = total_steps_,
                      .planned_peak_bytes = plan_.peak_bytes,
                      .measured_peak_bytes = memory.peak_bytes};
    if (recipe_.fp16) report.metrics.loss_scale = loss_scale;
    const auto passed = static_cast<double>(done_ - first_step_);
    report.epoch = epoch();
    report.seconds_passed = watch_.total();
    report.seconds_left = watch_.total() / passed * static_cast<double>(total_steps_ - done_);
    if (const PageLanes::Traffic moved = traffic(); moved.fetched + moved.sent > 0)
      report.waited_share = moved.waited / watch_.total();
    if (!skipped || std::isfinite(loss)) {
      loss_sum_ += loss;
      ++losses_;
    }
    report.logged = done_ % recipe_.logging_steps == 0 || done_ == total_steps_;
    if (report.logged) log(report.metrics);
    reporter_.stepped(report);
    if (recipe_.fp16 && skipped) return stop_where_scaling_is_of_no_use();
    if (!std::isfinite(loss) || skipped)
      throw Error("the loss is not a number in step " + std::to_string(done_), output_.string(),
                  "lower learning_rate; checkpoints written before this step are good");
  }

  // A smaller scale mends gradients that are too large, not activations.
  void stop_where_scaling_is_of_no_use() {
    constexpr double kMostSkips = 20, kLeastScale = 0x1p-14;
    const double skips = executor_->scalar(Scalar::skips_in_a_row), scale = executor_->scalar(Scalar::loss_scale);
    if (skips < kMostSkips && scale >= kLeastScale) return;
    throw Error(fmt::format("fp16 overflows in step {}: {} skipped in a row, loss scale down to {:g}", done_,
                            skips == 1 ? "1 step" : fmt::format("{} steps", skips), scale),
                output_.string(), "use bf16: true, or lower learning_rate; the weights saved so far are good");
  }

  void log(const StepMetrics& metrics) {
    if (metrics_) metrics_->write(metrics);
    if (events_) events_->write(metrics, epoch());
  }

  double epoch() const { return static_cast<double>(done_) / static_cast<double>(data_->steps_per_epoch()); }

  // ---- Evaluation and saving

  void evaluate() {
    loader_ = &*eval_;
    int64_t targets = 0;
    const int64_t windows = eval_->steps_per_epoch();
    for (int64_t i = 0; i < windows; ++i) targets += eval_->window(i).target_count;
    executor_->set_scalar(Scalar::loss_sum, 0.0);
    executor_->set_scalar(Scalar::inverse_labels, targets > 0 ? 1.0 / static_cast<double>(targets) : 0.0);
    EvaluationCounts counts;
    const int64_t tokens = tokens_;
    Stopwatch watch;
    int64_t begun = 0;
    for (; begun < windows && !stopped_; begun += batches()) {  // ranks take batches in turn
      const int64_t own = begun + batch_of_rank();
      window_ = eval_->window(std::min(own, windows - 1));
      if (own >= windows) window_.rows = 0;
      run_window(Section::evaluate, 0);
      if (own < windows && plan_.program.loss != kNone) count_batch(*running_, ranks_, counts);
      agree(tokens_);
      watch.lap();
      const int64_t done = std::min(begun + batches(), windows);
      const double a_batch = watch.total() / static_cast<double>(done);
      reporter_.evaluating({done_, done, windows, a_batch * static_cast<double>(windows - done)});
    }
    tokens_ = tokens;             // evaluation is not training speed
    if (begun < windows) return;  // stopped
    EvaluationCounts::Numbers numbers = counts.numbers();
    sum(numbers);
    counts.set(numbers);
    double loss = executor_->scalar(Scalar::loss_sum);
    sum(std::span(&loss, 1));
    const EvaluationMetrics metrics{.step = done_,
                                    .loss = loss,
                                    .token_accuracy = counts.token_accuracy(),
                                    .exact = counts.exact(),
                                    .documents = counts.documents()};
    if (metrics_) metrics_->write(metrics);
    if (events_) events_->write(metrics);
    if (evaluations_.size() < 2) evaluations_.emplace_back();
    evaluations_.back() = metrics;  // the first and the last are kept
    best_.note(metrics);
    evaluated_step_ = done_;
    reporter_.evaluated(metrics);
  }

  void save() {
    executor_->run(plan_.program.region(Section::save), *this);
    saved_step_ = done_;
    const int64_t best = recipe_.load_best_model_at_end ? best_.step() : -1;
    if (recipe_.save_total_limit > 0 && is_first()) remove_old_checkpoints(output_, recipe_.save_total_limit, done_, best);
    reporter_.saved(output_ / ("checkpoint-" + std::to_string(done_)));
  }

  void finish() {
    if (done_ < total_steps_) return;  // stopped on the way: its checkpoint is saved
    if (eval_ && done_ > first_step_ && done_ > evaluated_step_) evaluate();
    const bool keeps_states = recipe_.save_strategy != Strategy::never && !recipe_.save_only_model;
    if (done_ > saved_step_ && keeps_states) save();  // without them the result is as much
    save_result();
    reporter_.saved(output_);
  }

  void save_result() {
    const fs::path best = output_ / ("checkpoint-" + std::to_string(best_.step()));
    if (recipe_.load_best_model_at_end && best_.step() >= 0 && best_.step() != done_) {
      const bool there =
          ranks_ == nullptr ? is_there(best) : !of_first_rank(ranks_->all(), is_there(best) ? "there" : "").empty();
      reporter_.chose(best, best_.evaluations(), there);
      if (there && !is_first()) return;
      if (there) return publish_checkpoint(plan_, best, card(best_.step()));
    }
    const Op& save_op = *plan_.program.region(Section::save).items.front().op();
    snug::save_result(*executor_, plan_, card(done_), staging_of(save_op));
  }

  // Of the weights of this step.
  std::string card(int64_t step) const { return run_card(plan_, data_summary_, evaluations_, step, mean_loss()); }

  double mean_loss() const { return loss_sum_ / static_cast<double>(std::max<int64_t>(1, losses_)); }

  // Of the executors of all lengths.
  PageLanes::Traffic traffic() {
    PageLanes::Traffic sum;
    executors_->each([&](const Executor& executor) {
      sum.fetched += executor.traffic().fetched;
      sum.sent += executor.traffic().sent;
      sum.waited += executor.traffic().waited;
    });
    return sum;
  }

  RunSummary summary() {
    watch_.lap();
    RunSummary result{.planned_peak_bytes = plan_.peak_bytes,
                      .measured_peak_bytes = process_memory().peak_bytes,
                      .steps = done_,
                      .train_loss = mean_loss(),
                      .tokens_per_second = rate_of(tokens_, watch_.total())};
    const PageLanes::Traffic moved = traffic();
    result.fetched_bytes = moved.fetched;
    result.sent_bytes = moved.sent;
    result.waited_seconds = moved.waited;
    if (ranks_ != nullptr) {
      result.rank_sent = all_ranks(ranks_->all(), executors_->lane()->sent_bytes());
      result.waited_for_ranks = executors_->lane()->waited_seconds();
      result.rank_peaks = all_ranks(ranks_->all(), result.measured_peak_bytes);
    }
    if (metrics_) metrics_->write(result);
    if (events_) events_->write(result);
    return result;
  }

  const Plan& plan_;
  const Recipe& recipe_;
  Reporter& reporter_;
  const std::atomic<int>& stop_;
  RankRings* ranks_;  // null: it runs alone
  fs::path output_;
  DataIdentity identity_;
  std::optional<Loader> data_, eval_;
  Loader* loader_ = nullptr;
  Window window_;
  std::vector<int64_t> targets_;  // of a step's micro-batches, where several are on their way
  std::optional<BucketExecutors> executors_;
  Executor* executor_ = nullptr;  // the plan's: what lives throughout the run is seen through it
  Executor* running_ = nullptr;   // of the window at hand
  std::optional<MetricsFile> metrics_;
  std::optional<EventLog> events_;
  std::optional<RunTrace> trace_;  // while it goes on
  DatasetSummary data_summary_;
  std::vector<EvaluationMetrics> evaluations_;
  BestEvaluation best_{recipe_};
  std::span<std::byte> staging_;
  int64_t total_steps_ = 0, done_ = 0, updates_ = 0, first_step_ = 0, saved_step_ = 0, evaluated_step_ = -1, tokens_ = 0,
          losses_ = 0;
  double loss_sum_ = 0;
  bool stopped_ = false;  // on what all ranks agree
  Stopwatch watch_;
};

}  // namespace

RunSummary train(const Plan& plan, Reporter& reporter, const std::atomic<int>& stop, const fs::path& trace,
                 RankRings* ranks) {
  try {
    return Run(plan, reporter, stop, trace, ranks).go();
  } catch (...) {
    if (ranks != nullptr) ranks->fail();
    throw;
  }
}

}  // namespace snug
