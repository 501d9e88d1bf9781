#include "torch/traceback.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/trimmed.h"
#include "torch/frame_line.h"
#include "torch/words.h"

namespace snug {

namespace {

constexpr size_t kMostFrames = 512;
constexpr size_t kLongestCode = 512;

bool holds_any(std::string_view file, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return contains(file, part); });
}

bool is_pythons(std::string_view file) {
  constexpr std::array<std::string_view, 6> kParts = {"/lib/python", "/lib64/python", "\\Lib\\",
                                                      "\\lib\\",     "<frozen",       "importlib"};
  return file.starts_with("<string>") || (holds_any(file, kParts) && !contains(file, "-packages"));
}

bool is_installed(std::string_view file) {
  constexpr std::array<std::string_view, 4> kParts = {"site-packages", "dist-packages", "unsloth_compiled_cache",
                                                      "/torchinductor_"};
  constexpr std::array<std::string_view, 8> kLibraries = {
      // from their sources, or in a folder of the user's choice
      "/transformers/models/", "/transformers/trainer.py", "/transformers/modeling_", "/peft/tuners/",
      "/peft/peft_model.py",   "/accelerate/utils/",       "/trl/trainer/",           "/deepspeed/runtime/"};
  const bool launcher = contains(file, "/bin/") && !file.ends_with(".py");  // torchrun, accelerate
  return launcher || holds_any(file, kParts) || holds_any(file, kLibraries);
}

// Goes through the lines; a traceback is open from its first line to its exception's, or until nothing of it comes any more.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Traceback> read() {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      take(begin, end);
      begin = end + 1;
    }
    if (held_) add_held(text_.size());
    close();
    return std::move(all_);
  }

 private:
  // Several frames on one line, as forms that lose line breaks leave them, are taken one after the other.
  void take(size_t begin, size_t end) {
    constexpr std::string_view kFrame = " File \"";
    for (size_t next = begin; next < end; begin = next) {
      const std::string_view line = text_.substr(begin, end - begin);
      const size_t second = line.find(kFrame, std::min(line.find("File \""), line.size()));
      next = second == std::string_view::npos ? end : begin + second;
      take_one(begin, next);
      if (next < end || joined_) split_code(text_.substr(begin, next - begin));
      joined_ = next < end;
    }
  }

  // "…, in train loss.backward()": a name and the code behind it.
  void split_code(std::string_view line) {
    if (!open_ || now_.frames.empty() || !wants_code_) return;
    const size_t in = line.find(", in ");
    if (in == std::string_view::npos) return;
    const std::string_view behind = trimmed(line.substr(in + 5));
    const std::string_view code = trimmed(behind.substr(std::min(behind.find(' '), behind.size())));
    if (!names_exception(code)) now_.frames.back().code = std::string(code.substr(0, kLongestCode));
    wants_code_ = now_.frames.back().code.empty();
  }

  void take_one(size_t begin, size_t end) {
    const std::string_view line = text_.substr(begin, end - begin);
    auto frame = frame_of(line);
    if (held_ && parts_.empty()) add_held(begin);
    if (contains(line, "Traceback (most recent call last)")) {
      open(begin, false);
      if (frame) add(std::move(*frame), end);
    } else if (line == "At:" || line.ends_with(" At:")) {
      open(begin, true);
    } else if (frame) {
      const bool list = frame->form == FrameForm::at_list;
      if (!open_ || (list && !at_list_)) open(begin, list);
      add(std::move(*frame), end);
    } else if (open_ && parts_.empty()) {
      other(line, end);
    }
  }

  // A terminal or a logger may have wrapped a frame's line: `File`, a quote that is not closed and a number without a
  // function wait for the rest.
  std::optional<FrameLine> frame_of(std::string_view line) {
    if (auto joined = join(line)) return joined;
    auto found = read_frame_line(line);
    const std::string_view part = trimmed(line);
    const size_t file = line.find("File \"");
    const bool opened = file != std::string_view::npos && (found ? found->cut : !contains(line.substr(file), "\", line "));
    if (opened || part == "File") {
      parts_ = opened ? line.substr(file, kLongestCode) : part;
      part_count_ = 1;
      held_ = std::move(found);
      return std::nullopt;
    }
    return found;
  }

  // The frame that this line makes whole.
  std::optional<FrameLine> join(std::string_view line) {
    constexpr size_t kMostParts = 4;
    if (parts_.empty()) return std::nullopt;
    const std::string part(trimmed(line).substr(0, kLongestCode));
    const bool blank = parts_.ends_with("File") || parts_.ends_with(',') || parts_.ends_with(" in");
    for (const bool with_blank : {blank, !blank}) {
      const std::string whole = parts_ + (with_blank ? " " : "") + part;
      auto joined = read_frame_line(whole);
      if (!joined || joined->frame.function.empty() || joined->form != FrameForm::standard) continue;
      parts_.clear();
      held_.reset();
      return joined;
    }
    if (held_ || ++part_count_ > kMostParts) {
      parts_.clear();
    } else {
      parts_ += (parts_.ends_with("File") ? " " : "") + part;
    }
    return std::nullopt;
  }

  void open(size_t begin, bool at_list) {
    close();
    open_ = true;
    at_list_ = at_list;
    loose_ = false;
    marked_.clear();
    wants_code_ = boxed_ = false;
    now_ = Traceback{begin, begin, {}};
  }

  // A frame without a function, whose rest did not come.
  void add_held(size_t end) {
    FrameLine held = std::move(*held_);
    held_.reset();
    if (!open_) open(end, false);
    add(std::move(held), end);
  }

  void add(FrameLine found, size_t end) {
    loose_ = loose_ || found.form == FrameForm::ipython || found.form == FrameForm::pytest;
    if (found.form == FrameForm::pytest && found.frame.function.empty()) found.frame.code = std::move(marked_);
    marked_.clear();
    if (now_.frames.size() >= 2 * kMostFrames)
      now_.frames.erase(now_.frames.begin(), now_.frames.begin() + static_cast<ptrdiff_t>(kMostFrames));
    now_.frames.push_back(std::move(found.frame));
    now_.end = end;
    idle_ = 0;
    boxed_ = found.form == FrameForm::rich;
    wants_code_ =
        found.form == FrameForm::standard || (found.form == FrameForm::pytest && !now_.frames.back().function.empty());
  }

  void other(std::string_view line, size_t end) {
    int64_t number = 0;
    if (boxed_ && in_box(line, end)) return;
    if (!now_.frames.empty()) {
      if (const auto code = arrow_code(line, number)) {
        now_.frames.back().code = std::string(code->substr(0, kLongestCode));
        if (now_.frames.back().line == 0) now_.frames.back().line = std::max<int64_t>(number, 0);
        now_.end = end;
        idle_ = 0;
        return;
      }
    }
    if (names_exception(line)) wants_code_ = false;  // of a frame whose code was not at hand
    if (wants_code_ && is_rest_of_name(line)) {
      now_.frames.back().function += line;
      now_.end = end;
      return;
    }
    if (wants_code_) {
      const size_t first = std::min(line.find_first_not_of(" >"), line.size());
      now_.frames.back().code = std::string(line.substr(first, kLongestCode));
      wants_code_ = false;
      now_.end = end;
      return;
    }
    if (line.starts_with('>'))
      marked_ = std::string(line.substr(std::min(line.find_first_not_of("> "), line.size()), kLongestCode));
    const size_t first = std::min(line.find_first_not_of(' '), line.size());
    const bool exception = first == 0 && !now_.frames.empty() && !at_list_ && names_exception(line);
    if (exception) {
      now_.end = end;
      close();
    } else if (++idle_ > (loose_ ? 80 : 12)) {
      close();
    }
  }

  // A name that was wrapped: code is indented, or has more than a word.
  bool is_rest_of_name(std::string_view line) const {
    const auto in_name = [](char c) {
      return is_digit(c) || (c | 0x20) >= 'a' ? (c | 0x20) <= 'z' || c == '_' : c == '>' || c == '_';
    };
    return !line.empty() && line.size() < 64 && !now_.frames.back().function.empty() && std::ranges::all_of(line, in_name);
  }

  // What a box of rich tells of its last frame: the function that was wrapped, and the code of its line.
  bool in_box(std::string_view line, size_t end) {
    Frame& frame = now_.frames.back();
    int64_t number = 0;
    const auto code = boxed_code(line, number);
    const std::string_view text = trimmed(line);
    if (frame.function.empty() && text.starts_with("in ")) {
      frame.function = std::string(text.substr(3, kLongestCode));
    } else if (code && number == frame.line) {
      frame.code = std::string(code->substr(0, kLongestCode));
    } else {
      return false;
    }
    now_.end = end;
    idle_ = 0;
    return true;
  }

  // "torch.cuda.OutOfMemoryError: CUDA …", "RuntimeError: …": a name with a dot or an upper case letter, then a colon.
  static bool names_exception(std::string_view line) {
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, std::min(colon, line.size()));
    if (name.empty() || name.size() > 120 || contains(name, " ") || contains(name, "(")) return false;
    return name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Interrupt") || name.ends_with("Exit");
  }

  void close() {
    if (open_ && !now_.frames.empty()) {
      if (at_list_) std::ranges::reverse(now_.frames);
      if (now_.frames.size() > kMostFrames)
        now_.frames.erase(now_.frames.begin(), now_.frames.end() - static_cast<ptrdiff_t>(kMostFrames));
      all_.push_back(std::move(now_));
    }
    open_ = false;
  }

  std::string_view text_;
  std::vector<Traceback> all_;
  Traceback now_;
  bool open_ = false, at_list_ = false, loose_ = false, wants_code_ = false, boxed_ = false;
  bool joined_ = false;  // the frame before stands on the same line
  int idle_ = 0;
  std::string marked_;             // the code that pytest's ">" pointed at last
  std::string parts_;              // of a frame's line that was wrapped
  std::optional<FrameLine> held_;  // the frame that they make so far
  size_t part_count_ = 0;
};

}  // namespace

bool is_pytorchs(std::string_view file) {
  if (contains(file, "orchinductor") && is_installed(file)) return true;
  constexpr std::string_view kInstalled = "-packages";
  const size_t installed = file.rfind(kInstalled);
  if (installed != std::string_view::npos) {
    const std::string_view package = file.substr(std::min(file.size(), installed + kInstalled.size() + 1));
    return package.starts_with("torch/") || package.starts_with("torch\\");
  }
  constexpr std::array<std::string_view, 13> kParts = {// from its sources, or in a folder of the user's choice
                                                       "/pytorch/torch/",
                                                       "/torch/nn/modules/",
                                                       "/torch/nn/parallel/",
                                                       "/torch/nn/functional.py",
                                                       "/torch/optim/",
                                                       "/torch/autograd/",
                                                       "/torch/cuda/",
                                                       "/torch/amp/",
                                                       "/torch/distributed/",
                                                       "/torch/functional.py",
                                                       "/torch/_",
                                                       "/torch/utils/_",
                                                       "/torch/utils/checkpoint.py"};
  return holds_any(file, kParts) || file.starts_with("torch/");
}

const Frame* Traceback::own() const {
  const auto found = std::find_if(frames.rbegin(), frames.rend(), [](const Frame& frame) {
    return !is_installed(frame.file) && !is_pythons(frame.file) && !is_pytorchs(frame.file);
  });
  return found == frames.rend() ? nullptr : &*found;
}

const Frame* Traceback::caller() const {
  const auto found = std::find_if(frames.rbegin(), frames.rend(),
                                  [](const Frame& frame) { return !is_pythons(frame.file) && !is_pytorchs(frame.file); });
  return found == frames.rend() ? nullptr : &*found;
}

std::vector<Traceback> read_tracebacks(std::string_view text) { return Reader(text).read(); }

namespace {

// True if the exception that ends the traceback, as far as it is shown, is no other error.
bool ends_alike(std::string_view text, const Traceback& traceback) {
  const size_t begin = text.rfind('\n', std::min(traceback.end, text.size()) - 1);
  const std::string_view last = text.substr(begin == std::string_view::npos ? 0 : begin + 1, 200);
  const std::string_view line = last.substr(0, last.find('\n'));
  const bool named = contains(line.substr(0, 80), "Error: ") && !contains(line, "File \"");
  return !named || contains(line, "emory") || contains(line, "ALLOC_FAILED");
}

// A message in front of its traceback: logged with it, copied above it, or the short form that IPython prints first.
bool tells_of(const Traceback& behind, std::string_view text, size_t at) {
  constexpr size_t kClose = 1024;
  const size_t line_end = std::min(text.find('\n', at), text.size());
  if (behind.begin > line_end + kClose || !ends_alike(text, behind)) return false;
  const std::string_view head =
      text.substr(behind.begin, std::min(text.find('\n', behind.begin), text.size()) - behind.begin);
  if (!contains(head, "Traceback (most recent call last)")) return contains(head, "File \"");
  if (contains(head, "Error ")) return true;  // "OutOfMemoryError       Traceback (most recent call last)"
  const std::string_view before = text.substr(0, at);
  return !before.ends_with("Error: ") && !before.ends_with("Error:") && !before.ends_with("Exception: ");
}

}  // namespace

const Traceback* traceback_of(const std::vector<Traceback>& all, std::string_view text, size_t at) {
  constexpr size_t kNear = 8 << 10;
  const Traceback* before = nullptr;
  for (const Traceback& traceback : all) {
    if (traceback.begin <= at && at <= traceback.end) return &traceback;
    if (traceback.end < at && at - traceback.end < kNear) before = &traceback;
  }
  if (before != nullptr) return before;
  for (const Traceback& traceback : all) {
    if (traceback.begin < at || traceback.begin - at > kNear) continue;
    // Behind the message only lists that belong to it: "At:", a place without a call, THC's print before its exception.
    const std::string_view first = text.substr(traceback.begin, traceback.end - traceback.begin);
    const bool list = first.starts_with("At:") || first.starts_with("/") || contains(first.substr(0, 256), "): ");
    const bool printed_first = contains(text.substr(at, 64), "THCudaCheck");
    const bool place = !contains(first, "Traceback") && contains(first.substr(0, 512), ".py:");
    if (list || printed_first || place || tells_of(traceback, text, at)) return &traceback;
    break;
  }
  return nullptr;
}

}  // namespace snug
