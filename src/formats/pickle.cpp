#include "formats/pickle.h"

#include <bit>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "formats/chunked_array.h"
#include "formats/pickle_opcodes.h"
#include "formats/pickle_source.h"

namespace snug {
namespace {

const char* const kPlainOnly = "a memory snapshot holds plain data only; do not open this file with pickle.load";
const char* const kDamaged = "the file is damaged or not a pickle; write it again";
const char* const kSmaller = "record fewer events: torch.cuda.memory._record_memory_history(max_entries=…)";

// A memo slot that nothing was put into.
const PickleValue kUnset(PickleKind::mark, 0);

// The stack machine. `opcode_at_` is where the opcode in hand starts, for errors.
class Machine {
 public:
  Machine(PickleSource& source, PickleBuilder& builder, const PickleLimits& limits)
      : source_(source), builder_(builder), limits_(limits) {}

  PickleValue run() {
    try {
      start();
      for (;;) {
        opcode_at_ = source_.offset();
        const auto opcode = static_cast<PickleOpcode>(source_.number<uint8_t>());
        if (opcode == PickleOpcode::stop) return stop();
        step(opcode);
      }
    } catch (const Error& error) {
      if (!error.where().empty()) throw;
      refuse(error.problem(), error.mend());  // the builder's
    }
  }

 private:
  void start() {
    const std::string_view first = source_.peek(2);
    const auto opcode = static_cast<PickleOpcode>(first.empty() ? '\0' : first[0]);
    if (opcode == PickleOpcode::global || opcode == PickleOpcode::persid) return;  // to be refused by name
    if (first.size() < 2 || opcode != PickleOpcode::proto)
      refuse("this is no pickle of protocol 2 to 5", "give the file that torch.cuda.memory._dump_snapshot wrote");
    source_.take(1);
    protocol();
  }

  void step(PickleOpcode opcode) {
    switch (opcode) {  // the frequent ones first: a snapshot is nearly all references
      case PickleOpcode::long_binget: return recall(source_.number<uint32_t>());
      case PickleOpcode::binget: return recall(source_.number<uint8_t>());
      case PickleOpcode::memoize: return memoize(memo_.size());
      case PickleOpcode::mark: return mark();
      case PickleOpcode::none: return push({});
      case PickleOpcode::newtrue: return push({PickleKind::boolean, 1});
      case PickleOpcode::newfalse: return push({PickleKind::boolean, 0});
      case PickleOpcode::binint1: return integer(source_.number<uint8_t>());
      case PickleOpcode::binint2: return integer(source_.number<uint16_t>());
      case PickleOpcode::binint: return integer(source_.number<int32_t>());
      case PickleOpcode::long1: return long_integer(source_.number<uint8_t>());
      case PickleOpcode::long4: return long_integer(source_.number<int32_t>());
      case PickleOpcode::binfloat:
        return push(builder_.real(std::bit_cast<double>(__builtin_bswap64(source_.number<uint64_t>()))));
      case PickleOpcode::short_binunicode: return push(builder_.text(span(source_.number<uint8_t>())));
      case PickleOpcode::binunicode: return push(builder_.text(span(source_.number<uint32_t>())));
      case PickleOpcode::binunicode8: return push(builder_.text(span(source_.number<uint64_t>())));
      case PickleOpcode::short_binstring: return push(builder_.text(span(source_.number<uint8_t>())));  // Python 2's str
      case PickleOpcode::binstring: return push(builder_.text(span(source_.number<uint32_t>())));
      case PickleOpcode::short_binbytes: return push(builder_.bytes(span(source_.number<uint8_t>())));
      case PickleOpcode::binbytes: return push(builder_.bytes(span(source_.number<uint32_t>())));
      case PickleOpcode::binbytes8:
      case PickleOpcode::bytearray8: return push(builder_.bytes(span(source_.number<uint64_t>())));
      default: return step_container(opcode);
    }
  }

  void step_container(PickleOpcode opcode) {
    switch (opcode) {
      case PickleOpcode::empty_dict: return push(builder_.dict());
      case PickleOpcode::setitem: return fill(PickleKind::dict, height(2));
      case PickleOpcode::setitems: return fill(PickleKind::dict, unmark());
      case PickleOpcode::dict: return make(PickleKind::dict, builder_.dict());
      case PickleOpcode::empty_list: return push(builder_.list());
      case PickleOpcode::append: return fill(PickleKind::list, height(1));
      case PickleOpcode::appends: return fill(PickleKind::list, unmark());
      case PickleOpcode::list: return make(PickleKind::list, builder_.list());
      case PickleOpcode::empty_set: return push(builder_.set());
      case PickleOpcode::additems: return fill(PickleKind::set, unmark());
      case PickleOpcode::frozenset: return frozen_set(unmark());
      case PickleOpcode::empty_tuple: return tuple(stack_.size());
      case PickleOpcode::tuple1: return tuple(height(1));
      case PickleOpcode::tuple2: return tuple(height(2));
      case PickleOpcode::tuple3: return tuple(height(3));
      case PickleOpcode::tuple: return tuple(unmark());
      default: return step_rest(opcode);
    }
  }

  void step_rest(PickleOpcode opcode) {
    switch (opcode) {
      case PickleOpcode::pop: return pop();
      case PickleOpcode::pop_mark: return stack_.resize(unmark());
      case PickleOpcode::dup: return push(stack_[height(1)]);
      case PickleOpcode::get: return recall(line_number());
      case PickleOpcode::put: return memoize(line_number());
      case PickleOpcode::binput: return memoize(source_.number<uint8_t>());
      case PickleOpcode::long_binput: return memoize(source_.number<uint32_t>());
      case PickleOpcode::proto: return protocol();
      case PickleOpcode::frame: return frame();
      default: refuse_opcode(opcode);
    }
  }

  [[noreturn]] void refuse(const std::string& problem, const std::string& mend = kDamaged) const {
    source_.refuse(opcode_at_, problem, mend);
  }

  [[noreturn]] void refuse_opcode(PickleOpcode opcode) {
    if (opcode == PickleOpcode::global || opcode == PickleOpcode::inst) {
      const std::string module(source_.line());
      refuse_call(module + "." + std::string(source_.line()));
    }
    if (opcode == PickleOpcode::stack_global) {
      const size_t at = height(2);
      if (!stack_[at].is(PickleKind::text) || !stack_[at + 1].is(PickleKind::text))
        refuse("STACK_GLOBAL without two names", kPlainOnly);
      refuse_call(builder_.name(stack_[at]) + "." + builder_.name(stack_[at + 1]));
    }
    if (opcode == PickleOpcode::persid)
      refuse("the opcode PERSID (an object outside the file) is not plain data", kPlainOnly);
    if (const auto name = refused_opcode(opcode); !name.empty())
      refuse("the opcode " + std::string(name) + " is not plain data", kPlainOnly);
    if (const auto name = old_opcode(opcode); !name.empty())
      refuse("the opcode " + std::string(name) + " belongs to protocols 0 and 1", "write it with protocol 2 to 5");
    refuse("byte " + std::to_string(static_cast<int>(opcode)) + " is no pickle opcode");
  }

  [[noreturn]] void refuse_call(const std::string& name) const { refuse("this file wants to call " + name, kPlainOnly); }

  // --- numbers and texts ---

  void integer(int64_t value) { push({PickleKind::integer, value}); }

  void long_integer(int64_t bytes) {
    if (bytes < 0) refuse("an integer of a negative length");
    const std::string_view digits = span(static_cast<uint64_t>(bytes));
    uint64_t value = 0;
    if (digits.size() <= sizeof value) {
      std::memcpy(&value, digits.data(), digits.size());
      const auto unused = static_cast<unsigned>(8 * (sizeof value - digits.size()));
      const int64_t number = digits.empty() ? 0 : static_cast<int64_t>(value << unused) >> unused;
      if (number >= -PickleValue::kLargest && number <= PickleValue::kLargest) return integer(number);
    }
    push(builder_.wide_integer(std::as_bytes(std::span(digits))));
  }

  std::string_view span(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(source_.remaining()))
      refuse("a length of " + std::to_string(bytes) + " bytes, where the file has " + std::to_string(source_.remaining()) +
                 " left",
             "it is damaged or cut off; write or copy it again");
    if (bytes > static_cast<uint64_t>(limits_.text_bytes))
      refuse(
          "a value of " + std::to_string(bytes) + " bytes; no more than " + std::to_string(limits_.text_bytes) + " are read",
          "a memory snapshot has no such texts");
    return source_.take(static_cast<int64_t>(bytes));
  }

  size_t line_number() {
    const std::string_view line = source_.line();
    uint32_t number = 0;
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (problem != std::errc() || end != line.data() + line.size()) refuse("a memo number that is no number");
    return number;
  }

  // --- the stack ---

  void push(PickleValue value) {
    if (stack_.size() == limits_.stacked)
      refuse("more than " + std::to_string(limits_.stacked) + " values wait to be put into a container", kSmaller);
    stack_.push_back(value);
  }

  void mark() {
    if (marks_.size() == limits_.nested)
      refuse("nested deeper than " + std::to_string(limits_.nested), "a memory snapshot is not");
    marks_.push_back(stack_.size());
  }

  // Where the topmost `count` values start; they must lie above the last mark.
  size_t height(size_t count) const {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < floor + count) refuse("an opcode takes more values than there are");
    return stack_.size() - count;
  }

  size_t unmark() {
    if (marks_.empty()) refuse("an opcode takes values up to a mark, and there is none");
    const size_t from = marks_.back();
    marks_.pop_back();
    return from;
  }

  void pop() {
    if (!marks_.empty() && marks_.back() == stack_.size()) {
      marks_.pop_back();  // as Python does
    } else {
      stack_.resize(height(1));
    }
  }

  // --- containers: of the values from `from` on ---

  PickleItems items(size_t from) const { return PickleItems(stack_).subspan(from); }

  void put(PickleKind kind, PickleValue container, PickleItems items) {
    if (kind == PickleKind::dict && items.size() % 2 != 0) refuse("a key without a value");
    if (items.empty()) return;
    if (kind == PickleKind::dict) return builder_.assign(container, items);
    if (kind == PickleKind::list) return builder_.append(container, items);
    builder_.insert(container, items);
  }

  void fill(PickleKind kind, size_t from) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (from <= floor || !stack_[from - 1].is(kind)) refuse("an opcode fills a container that is not there");
    put(kind, stack_[from - 1], items(from));
    stack_.resize(from);
  }

  void make(PickleKind kind, PickleValue container) {
    const size_t from = unmark();
    put(kind, container, items(from));
    stack_.resize(from);
    push(container);
  }

  void tuple(size_t from) { replace(from, builder_.tuple(items(from))); }
  void frozen_set(size_t from) { replace(from, builder_.frozen_set(items(from))); }

  void replace(size_t from, PickleValue value) {
    stack_.resize(from);
    push(value);
  }

  // --- the memo ---

  void recall(size_t number) {
    if (number >= memo_.size() || memo_[number] == kUnset) refuse("memo " + std::to_string(number) + " was never written");
    push(memo_[number]);
  }

  // Picklers number the memo from 0 on without holes; what skips far ahead is no pickler.
  void memoize(size_t number) {
    const PickleValue value = stack_[height(1)];
    if (number > memo_.size() + kLargestHole)
      refuse("memo " + std::to_string(number) + " follows " + std::to_string(memo_.size()));
    if (number >= limits_.memoized) refuse("more than " + std::to_string(limits_.memoized) + " memo entries", kSmaller);
    while (memo_.size() <= number) memo_.push_back(kUnset);
    memo_[number] = value;
  }

  // --- the file's frame ---

  void protocol() {
    const int version = source_.number<uint8_t>();
    if (version < 2 || version > 5)
      refuse("pickle protocol " + std::to_string(version) + " is not known", "write it with protocol 2 to 5");
  }

  void frame() {
    const auto bytes = source_.number<uint64_t>();
    if (bytes > static_cast<uint64_t>(source_.remaining()))
      refuse("a frame of " + std::to_string(bytes) + " bytes, where the file has " + std::to_string(source_.remaining()) +
                 " left",
             "it is damaged or cut off; write or copy it again");
  }

  PickleValue stop() {
    if (stack_.size() != 1 || !marks_.empty())
      refuse("the pickle ends with " + std::to_string(stack_.size()) + " values instead of one");
    if (source_.remaining() != 0)
      refuse(std::to_string(source_.remaining()) + " bytes follow the end of the pickle",
             "a snapshot file holds one pickle and nothing else");
    return stack_.back();
  }

  static constexpr size_t kLargestHole = 256;

  PickleSource& source_;
  PickleBuilder& builder_;
  const PickleLimits limits_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  ChunkedArray<PickleValue> memo_;
  int64_t opcode_at_ = 0;
};

}  // namespace

PickleValue read_pickle(const std::filesystem::path& path, PickleBuilder& builder, const PickleLimits& limits) {
  PickleSource source(path);
  return Machine(source, builder, limits).run();
}

PickleValue read_pickle(std::span<const std::byte> pickle, const std::string& where, PickleBuilder& builder,
                        const PickleLimits& limits) {
  PickleSource source(pickle, where);
  return Machine(source, builder, limits).run();
}

}  // namespace snug
