#pragma once
// Reads Python pickles of protocols 2 to 5 that hold plain data, as a stream, and executes nothing: every opcode that would
// import, call or build an object is refused by name. Values are handles of eight bytes; what a text, list or dict becomes
// is a PickleBuilder's business, so that a reader can fold records as they are completed and never hold the whole tree
// (pickletools.py of CPython lists the opcodes). Knows nothing of what the data means.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace snug {

enum class PickleKind : uint8_t { none, boolean, integer, wide_integer, real, text, bytes, tuple, list, dict, set, mark };

// A kind and a payload of 60 bits: the value itself of a boolean or integer, else whatever number the builder gave it.
class PickleValue {
 public:
  PickleValue() = default;
  PickleValue(PickleKind kind, int64_t payload)
      : bits_(static_cast<uint64_t>(kind) << 60U | (static_cast<uint64_t>(payload) & kPayload)) {}

  PickleKind kind() const { return static_cast<PickleKind>(bits_ >> 60U); }
  int64_t payload() const { return static_cast<int64_t>(bits_ << 4U) >> 4U; }
  size_t index() const { return static_cast<size_t>(bits_ & kPayload); }
  bool is(PickleKind kind) const { return this->kind() == kind; }
  bool operator==(const PickleValue&) const = default;

  static constexpr int64_t kLargest = (int64_t{1} << 59U) - 1;  // of an `integer`; what is beyond is a `wide_integer`

 private:
  static constexpr uint64_t kPayload = (uint64_t{1} << 60U) - 1;
  uint64_t bits_ = 0;  // none
};

using PickleItems = std::span<const PickleValue>;

// Makes the values. Lists, dicts and sets are made empty and filled later; one that holds itself is legal. An Error that it
// throws without a place gets the file and the offset.
class PickleBuilder {
 public:
  PickleBuilder() = default;
  PickleBuilder(const PickleBuilder&) = delete;
  PickleBuilder& operator=(const PickleBuilder&) = delete;
  virtual ~PickleBuilder() = default;

  virtual PickleValue wide_integer(std::span<const std::byte> little_endian) = 0;  // two's complement, beyond 60 bits
  virtual PickleValue real(double value) = 0;
  virtual PickleValue text(std::string_view text) = 0;  // Python's str; may hold lone surrogates
  virtual PickleValue bytes(std::string_view bytes) = 0;
  virtual PickleValue tuple(PickleItems items) = 0;
  virtual PickleValue frozen_set(PickleItems items) = 0;
  virtual PickleValue list() = 0;
  virtual PickleValue dict() = 0;
  virtual PickleValue set() = 0;
  virtual void append(PickleValue list, PickleItems items) = 0;
  virtual void assign(PickleValue dict, PickleItems keys_and_values) = 0;  // an even number
  virtual void insert(PickleValue set, PickleItems items) = 0;
  virtual std::string name(PickleValue text) const = 0;  // of a text it made, for the refusal of an import
};

// Bounds on what a hostile file can make the reader hold; honest files of 2 GB stay below.
struct PickleLimits {
  size_t stacked = size_t{1} << 24U;       // values that wait to be put into something
  size_t memoized = size_t{1} << 26U;      // values that can be named again
  size_t nested = 10'000;                  // containers open at once
  int64_t text_bytes = int64_t{1} << 24U;  // of one text, bytes or integer
};

// The value of the one pickle that the file holds. Throws Error: protocol, opcode or length that may not be, truncation,
// trailing bytes, a limit; with file and byte offset.
PickleValue read_pickle(const std::filesystem::path& path, PickleBuilder& builder, const PickleLimits& limits = {});

// The same from memory; `where` names it in errors.
PickleValue read_pickle(std::span<const std::byte> pickle, const std::string& where, PickleBuilder& builder,
                        const PickleLimits& limits = {});

}  // namespace snug
