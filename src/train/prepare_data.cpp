#include "train/prepare_data.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"
#include "formats/file.h"

namespace snug {

namespace {

// Parts of an Error, apart, so that the parent throws what the child met.
std::string message_of(const Error& error) { return error.problem() + '\0' + error.where() + '\0' + error.mend(); }

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
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it was gone before
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(fd) - 1, 0);
  close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
}

[[noreturn]] void run_child(const DatasetRequest& request, const std::filesystem::path& tokenizer, int fd) {
  int code = 0;
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

std::string read_all(int fd) {
  std::string text;
  std::array<char, 1024> buffer{};
  while (true) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace

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
  const std::string message = read_all(reader.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!message.empty()) {
    const size_t where = message.find('\0');
    const size_t mend = message.find('\0', where + 1);
    throw Error(message.substr(0, where), message.substr(where + 1, mend - where - 1), message.substr(mend + 1));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error("the tokenizing process died", request.data.string(), "it may have run out of memory; see the kernel's log");
  return read_dataset_summary(request.directory);
}

}  // namespace snug
