// snug generate: let the model answer.

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/generate_request.h"
#include "cli/process.h"
#include "cli/terminal.h"
#include "generate/session.h"
#include "model/config.h"
#include "model/families.h"
#include "recipe/bytes.h"
#include "report/plan_text.h"
#include "run/code_pages.h"
#include "run/process_memory.h"

namespace snug::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kChatLength = 4096;  // tokens of a conversation, unless told
constexpr int64_t kMargin = int64_t{1} << 20;

ModelSpec runnable(const std::filesystem::path& model) {
  ModelSpec spec = read_config(model);
  refuse_plan_only(spec, "run");
  return spec;
}

class Run {
 public:
  explicit Run(GenerateRequest request)
      : request_(std::move(request)),
        heap_before_(process_memory().anonymous_bytes),
        text_(TextSide::load(request_.model)),
        model_(runnable(request_.model)),
        target_(this_cpu(request_.threads)) {
    if (request_.interactive() && !text_.can_chat()) user_turn("");  // refuses: there is no template
    add_turn_ends();
    questions_ = questions_of(request_, text_);
    malloc_trim(0);
    if (!request_.adapters.empty()) adapters_.emplace(request_.adapters);
  }

  int go() {
    make_the_plan();
    if (!plan_->fits()) return refuse();
    fmt::print(stderr, "{}\n{}\n", plan_verdict(*plan_), plan_line());
    for (const std::string& note : plan_->program.notes) fmt::print(stderr, "{}\n", note);
    for (const std::string& setting : request_.ignored)
      fmt::print(stderr, "generation_config.json asks for {}, which is not applied\n", setting);
    session_.emplace(*plan_, request_.model, adapters_ ? &*adapters_ : nullptr);
    sampler_.emplace(request_.sampling, plan_->model.logit_softcap, session_->sampler_room());
    if (request_.interactive()) {
      converse();
    } else {
      answer_all();
    }
    const int signal = stop_signal().load();
    return signal == 0 ? 0 : 128 + signal;
  }

 private:
  // Where turns end is the tokenizer's end-of-text token in models for chat, whatever config.json says.
  void add_turn_ends() {
    std::vector<int32_t>& ends = request_.limits.stop_tokens;
    const auto end = text_.tokenizer().eos_id();
    if (end && std::find(ends.begin(), ends.end(), *end) == ends.end()) ends.push_back(*end);
  }

  int64_t longest_question() const {
    size_t longest = 1;
    for (const auto& question : questions_) longest = std::max(longest, question.size());
    return static_cast<int64_t>(longest);
  }

  int64_t capacity() const {
    const int64_t most = model_.max_position > 0 ? model_.max_position : int64_t{1} << 30;
    if (request_.max_length > most)
      throw Error("is " + std::to_string(request_.max_length), "--max-length",
                  "the model's positions end at " + std::to_string(most));
    const int64_t longest = longest_question();
    if (longest >= most)
      throw Error("a prompt has " + std::to_string(longest) + " tokens", request_.model.string(),
                  "the model's positions end at " + std::to_string(most));
    int64_t wanted = request_.interactive() ? kChatLength : longest + request_.limits.max_new_tokens;
    if (request_.max_length > 0)
      wanted = request_.interactive() ? request_.max_length : std::min(wanted, request_.max_length);
    if (longest >= wanted)
      throw Error("a prompt has " + std::to_string(longest) + " tokens and leaves no room for an answer", "--max-length",
                  "give more than " + std::to_string(longest));
    return std::min(wanted, most);
  }

  // The plan, with what the text side holds now; and with what reading it took, should that have been more than all the
  // rest. Only the heap is counted, since pages of files differ from run to run; the program's own are in the plan.
  void make_the_plan() {
    wanted_.capacity = capacity();
    wanted_.longest_feed = request_.interactive() ? wanted_.capacity : longest_question();
    const DType dtype = request_.dtype.value_or(model_.dtype);
    wanted_.bf16 = dtype == DType::bf16;
    wanted_.fp16 = dtype == DType::f16;
    if (adapters_) wanted_.lora = adapters_->lora();
    wanted_.memory_bytes = request_.memory_bytes;
    const ProcessMemory memory = process_memory();
    wanted_.text_bytes = std::max<int64_t>(0, memory.anonymous_bytes - heap_before_) + kMargin;
    plan_ = make_plan(model_, wanted_, target_);
    const int64_t most_heap = memory.peak_bytes - (memory.resident_bytes - memory.anonymous_bytes);
    const int64_t program = plan_->runtime_bytes - wanted_.text_bytes;
    const int64_t reading_peak = program + most_heap - heap_before_ + kMargin;
    if (plan_->peak_bytes >= reading_peak) return;
    wanted_.text_bytes += reading_peak - plan_->peak_bytes;
    plan_ = make_plan(model_, wanted_, target_);
  }

  int refuse() const {
    constexpr int64_t kPages = int64_t{128} << 10;
    fmt::print(stderr, "snug: {}\n", plan_verdict(*plan_));
    const int64_t least = request_.interactive() ? 64 : longest_question() + 1;
    GenerationRequest again = wanted_;  // the next process may touch a few pages more than this one
    again.text_bytes += kPages;
    if (const auto fits = capacity_that_fits(*plan_, again, least)) {
      fmt::print(stderr, "snug: smallest change that fits: --max-length {} ({} tokens of prompt and answer)\n", *fits,
                 *fits);
    } else if (!wanted_.bf16 && !wanted_.fp16) {
      GenerationRequest halved = wanted_;
      halved.bf16 = true;
      const Plan plan = make_plan(model_, halved, target_);
      fmt::print(stderr, "snug: {}: --bf16 true needs {}\n", plan.fits() ? "smallest change that fits" : "no length fits",
                 format_bytes(plan.peak_bytes));
    } else {
      fmt::print(stderr, "snug: no length fits; the weights alone take {}\n", format_bytes(bytes_of(Role::weight)));
    }
    return 3;
  }

  int64_t bytes_of(Role role) const { return plan_->breakdown[static_cast<size_t>(role)]; }

  std::string plan_line() const {
    const int64_t rest = plan_->peak_bytes - plan_->runtime_bytes - bytes_of(Role::weight) - bytes_of(Role::activation);
    return fmt::format("weights {} in {}, cache of {} tokens {}, workspace {}, program and tokenizer {}",
                       format_bytes(bytes_of(Role::weight)), name_of(plan_->precision.weights),
                       plan_->program.generation.capacity, format_bytes(bytes_of(Role::activation)), format_bytes(rest),
                       format_bytes(plan_->runtime_bytes));
  }

  Answer one_answer(std::span<const int32_t> question, uint64_t stream, bool shown) {
    return answer(
        *session_, text_.tokenizer(), question, *sampler_, stream, request_.limits,
        [shown](std::string_view piece) {
          if (!shown) return;
          std::fwrite(piece.data(), 1, piece.size(), stdout);
          std::fflush(stdout);
        },
        stop_signal());
  }

  std::string as_json(const Answer& a) const {
    const Json json = {{"prompt_tokens", a.prompt_tokens},
                       {"new_tokens", a.tokens.size()},
                       {"text", a.text},
                       {"stop_reason", name_of(a.reason)},
                       {"tokens_per_second", a.tokens_per_second()},
                       {"prompt_seconds", a.prompt_seconds},
                       {"planned_peak_bytes", plan_->peak_bytes},
                       {"measured_peak_bytes", process_memory().peak_bytes}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void answer_all() {
    listen_for_signals();
    for (size_t i = 0; i < questions_.size() && stop_signal().load() == 0; ++i) {
      session_->begin(static_cast<int64_t>(questions_[i].size()) + request_.limits.max_new_tokens);
      const Answer a = one_answer(questions_[i], i, !request_.json);
      if (request_.json) {
        fmt::print("{}\n", as_json(a));
      } else {
        fmt::print("\n");
      }
      std::fflush(stdout);
      fmt::print(stderr, "{} prompt tokens in {:.2f} s, {} new tokens, {:.1f} tokens/s, ended by {}\n", a.prompt_tokens,
                 a.prompt_seconds, a.tokens.size(), a.tokens_per_second(), name_of(a.reason));
    }
    const int64_t measured = process_memory().peak_bytes;
    fmt::print(stderr, "planned peak {} bytes, measured {} bytes ({:.2f} %)\n", plan_->peak_bytes, measured,
               100.0 * static_cast<double>(measured) / static_cast<double>(plan_->peak_bytes));
  }

  std::vector<int32_t> user_turn(const std::string& text) {
    conversation_.push_back(user_message(text).sequence()->items.front());
    return text_.chat(chat::Value::list(conversation_));
  }

  // A conversation: what the caches hold of it stays, only what is new is fed.
  void converse() {
    session_->begin(session_->capacity());
    fmt::print(stderr, "An empty line ends the chat; Ctrl-C ends an answer.\n");
    for (uint64_t turn = 0;; ++turn) {
      fmt::print("> ");
      std::fflush(stdout);
      std::string line;
      if (!std::getline(std::cin, line) || line.empty()) return;
      const std::vector<int32_t> question = user_turn(line);
      listen_for_signals();
      const Answer a = one_answer(question, turn, true);
      leave_signals();
      stop_signal().store(0);
      fmt::print("\n");
      chat::Dict message;
      message.set("role", chat::Value::text("assistant"));
      message.set("content", chat::Value::text(a.text));
      conversation_.push_back(chat::Value::dict(std::move(message)));
    }
  }

  GenerateRequest request_;
  int64_t heap_before_;
  TextSide text_;
  ModelSpec model_;
  Target target_;
  std::vector<std::vector<int32_t>> questions_;
  std::vector<chat::Value> conversation_;
  GenerationRequest wanted_;
  std::optional<AdapterStack> adapters_;
  std::optional<Plan> plan_;
  std::optional<Session> session_;
  std::optional<Sampler> sampler_;
};

}  // namespace

int generate_command(std::span<char* const> words) {
  wait_briefly("generate", words);
  shrink_code_pages();
  return Run(read_generate_request(words)).go();
}

}  // namespace snug::cli
