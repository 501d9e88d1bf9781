#include "train/prepare_data.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/atomic_directory.h"
#include "formats/file.h"

namespace snug {

namespace {

// What the child has to say: lines about bad rows as they come, and at the end the Error, in parts so that the parent throws
// what the child met. Each message begins with its kind and ends with a zero byte.
constexpr char kComplaint = 'c';
constexpr char kPart = 'p';

std::string message(char kind, std::string text) {
  std::erase(text, '\0');
  return kind + text + '\0';
}

std::string message_of(const Error& error) {
  return message(kPart, error.problem()) + message(kPart, error.where()) + message(kPart, error.mend());
}

void write_quietly(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

// A parent that is killed takes its child along, and the lock on the output directory goes with the parent: a run can be
// resumed at once.
void live_and_die_with(pid_t parent, int fd) {
  signal(SIGINT, SIG_DFL);  // the parent answers them
  signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it was gone before
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(fd) - 1, 0);
  close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
}

[[noreturn]] void run_child(DatasetRequest request, const std::filesystem::path& tokenizer, int fd) {
  int code = 0;
  if (request.model.empty()) request.model = tokenizer;
  request.complain = [fd](const std::string& line) { write_quietly(fd, message(kComplaint, line)); };
  try {
    prepare_dataset(request, Tokenizer::load(tokenizer));
  } catch (const Error& error) {
    write_quietly(fd, message_of(error));
    code = 1;
  } catch (const std::exception& error) {
    write_quietly(fd, message_of(Error(error.what(), request.data.string())));
    code = 1;
  }
  _exit(code);  // no destructors of the parent's
}

// Reads until the child is done; passes its complaints on and returns the parts of its Error, none if all went well.
std::vector<std::string> listen(int fd, const std::function<void(const std::string&)>& complain) {
  std::vector<std::string> parts;
  std::string text;
  std::array<char, 1024> buffer{};
  while (true) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return parts;
    text.append(buffer.data(), static_cast<size_t>(n));
    for (size_t end = text.find('\0'); end != std::string::npos; end = text.find('\0')) {
      if (text.front() == kPart) parts.push_back(text.substr(1, end - 1));
      if (text.front() == kComplaint && complain) complain(text.substr(1, end - 1));
      text.erase(0, end + 1);
    }
  }
}

}  // namespace

DatasetRequest dataset_request(const Plan& plan) {
  const Recipe& recipe = plan.recipe;
  DatasetRequest request{.data = recipe.data,
                         .seq_len = plan.program.seq_len,
                         .packing = recipe.packing,
                         .completion_only_loss = recipe.completion_only_loss,
                         .vocab_size = plan.model.vocab_size,
                         .assistant_only_loss = recipe.assistant_only_loss,
                         .columns = {.format = recipe.dataset_format,
                                     .text = recipe.text_column,
                                     .prompt = recipe.prompt_column,
                                     .completion = recipe.completion_column,
                                     .messages = recipe.messages_column},
                         .chat_template = recipe.chat_template,
                         .skip_bad_rows = recipe.skip_bad_rows,
                         .most_buckets = recipe.packing ? 1 : kMostBuckets,
                         .threads = static_cast<int>(plan.target.threads)};
  if (plan.model.eos_token_id >= 0) request.eos_id = static_cast<int32_t>(plan.model.eos_token_id);
  return request;
}

DatasetSummary prepare_in_child(const DatasetRequest& request, const std::filesystem::path& tokenizer) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw Error(std::string("no pipe: ") + std::strerror(errno), request.data.string());
  UniqueFd reader(ends[0]), writer(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw Error(std::string("no process: ") + std::strerror(errno), request.data.string());
  if (child == 0) live_and_die_with(parent, writer.get());
  if (child == 0) run_child(request, tokenizer, writer.get());
  writer.reset();
  const std::vector<std::string> parts = listen(reader.get(), request.complain);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (parts.size() == 3) throw Error(parts[0], parts[1], parts[2]);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error("the tokenizing process died", request.data.string(), "it may have run out of memory; see the kernel's log");
  return read_dataset_summary(request.directory);
}

void prepare_datasets(const Plan& plan, const std::filesystem::path& output, Reporter& reporter) {
  const Recipe& recipe = plan.recipe;
  const auto request_for = [&](const std::string& file, const char* name) {
    DatasetRequest request = dataset_request(plan);
    request.data = file;
    request.directory = output / "dataset" / name;
    request.complain = [&reporter](const std::string& line) { reporter.bad_row(line); };
    return request;
  };
  const auto prepare = [&](const DatasetRequest& request) {
    remove_temporaries(request.directory);
    reporter.data_ready(prepare_in_child(request, recipe.model), request.data);
  };
  DatasetRequest request = request_for(recipe.data, "train");
  if (recipe.val_size > 0) {
    if (!recipe.eval_data.empty()) throw Error("val_size and eval_data are both given", "recipe", "evaluate on one of them");
    request.held_out = {.directory = output / "dataset" / "eval", .seed = recipe.seed};
    const bool share = recipe.val_size < 1.0;
    if (share) request.held_out.share = recipe.val_size;
    if (!share) request.held_out.rows = static_cast<int64_t>(recipe.val_size);
    remove_temporaries(request.held_out.directory);
  }
  prepare(request);
  if (evaluates(recipe) && !recipe.eval_data.empty()) prepare(request_for(recipe.eval_data, "eval"));
}

}  // namespace snug
