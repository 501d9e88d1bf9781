#pragma once
// A value of the template language, with Python's types and Python's rules of truth, equality and order, since templates are
// written for Jinja. Values are immutable and cheap to copy; the few things that change (namespaces, loops) are Objects. It
// knows nothing of templates or messages.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chat/text.h"

namespace snug::chat {

class Value;
struct Sequence;
class Dict;

// What a template can hold but not compute with: functions, macros, loops, namespaces.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;  // as Python's errors say it
  virtual std::optional<Value> attribute(std::string_view name);
  virtual std::optional<std::string> printed() const { return std::nullopt; }  // none: Python would print an address
  virtual std::optional<int64_t> length() { return std::nullopt; }
};

using SequenceRef = std::shared_ptr<const Sequence>;
using DictRef = std::shared_ptr<const Dict>;
using ObjectRef = std::shared_ptr<Object>;

enum class Kind : uint8_t { undefined, none, boolean, integer, real, string, sequence, dict, object };

// What a sequence is to Python: they print and index differently. A generator can be gone through once.
enum class Flavor : uint8_t { list, tuple, range, dict_keys, dict_values, dict_items, generator };

class Value {
 public:
  struct Undefined {
    std::shared_ptr<const std::string> reason;  // "'x' is undefined"; may be null
  };

  Value() = default;  // undefined
  static Value undefined(std::string reason);
  static Value none() { return Value(std::in_place_index<1>); }
  static Value boolean(bool truth) { return Value(std::in_place_index<2>, truth); }
  static Value integer(int64_t number) { return Value(std::in_place_index<3>, number); }
  static Value real(double number) { return Value(std::in_place_index<4>, number); }
  static Value text(std::string bytes) { return text(make_text(std::move(bytes))); }
  static Value text(TextRef text) { return Value(std::in_place_index<5>, std::move(text)); }
  static Value list(std::vector<Value> items) { return sequence(Flavor::list, std::move(items)); }
  static Value tuple(std::vector<Value> items) { return sequence(Flavor::tuple, std::move(items)); }
  static Value sequence(Flavor flavor, std::vector<Value> items);
  static Value sequence(SequenceRef sequence) { return Value(std::in_place_index<6>, std::move(sequence)); }
  // What range() gives: `numbers` start at `start` and would go on until `stop`.
  static Value range(std::vector<Value> numbers, int64_t start, int64_t stop, int64_t step);
  static Value dict(Dict entries);
  static Value dict(DictRef entries) { return Value(std::in_place_index<7>, std::move(entries)); }
  static Value object(ObjectRef object) { return Value(std::in_place_index<8>, std::move(object)); }

  Kind kind() const { return static_cast<Kind>(store_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is(Flavor flavor) const;
  bool is_undefined() const { return is(Kind::undefined); }
  bool is_string() const { return is(Kind::string); }

  bool boolean() const { return std::get<bool>(store_); }
  int64_t integer() const { return std::get<int64_t>(store_); }
  double real() const { return std::get<double>(store_); }
  const TextRef& text() const { return std::get<TextRef>(store_); }
  std::string_view view() const { return text()->view(); }
  const SequenceRef& sequence() const { return std::get<SequenceRef>(store_); }
  const DictRef& dict() const { return std::get<DictRef>(store_); }
  const ObjectRef& object() const { return std::get<ObjectRef>(store_); }
  const std::string* reason() const { return std::get<Undefined>(store_).reason.get(); }

  // The number that Python computes with: booleans are 0 and 1. None for what is no whole number.
  std::optional<int64_t> as_integer() const;
  // As floating point. None for what is no number.
  std::optional<double> as_real() const;
  int depth() const;  // how deeply containers nest: 0 for a scalar

 private:
  using Store = std::variant<Undefined, std::monostate, bool, int64_t, double, TextRef, SequenceRef, DictRef, ObjectRef>;
  // Built in place, not moved in: GCC 12 takes a moved variant for one that may be uninitialized.
  template <size_t kind, class... Parts>
  explicit Value(std::in_place_index_t<kind> place, Parts&&... parts) : store_(place, std::forward<Parts>(parts)...) {}
  Store store_;
};

struct Sequence {
  Flavor flavor = Flavor::list;
  std::vector<Value> items;
  int depth = 1;
  std::string printed;       // of a range
  bool group = false;        // a pair of the filter groupby: has .grouper and .list
  mutable size_t taken = 0;  // of a generator: so many items are gone
  Charge charge;
};

// Keys and values in the order in which the keys came first. Keys are what Python can hash.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  // Replaces the value of an equal key. Throws Error for a key that cannot be one.
  void set(Value key, Value value);
  void set(std::string key, Value value) { set(Value::text(std::move(key)), std::move(value)); }
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int depth() const { return depth_; }

 private:
  std::optional<size_t> locate(const Value& key) const;

  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;  // of the keys that are strings, once there are many
  int depth_ = 1;
  std::shared_ptr<Charge> charge_ = std::make_shared<Charge>();
};

bool truth(const Value& value);
bool equal(const Value& a, const Value& b);
// a < b; throws Error for what has no order.
bool less(const Value& a, const Value& b);
// `item in container`; throws Error for what contains nothing.
bool contains(const Value& container, const Value& item);
bool same_object(const Value& a, const Value& b);  // Python's `is`

// What a loop goes through: characters, keys, items. Uses up a generator. Throws Error for what is not iterable.
SequenceRef iterate(const Value& value);
bool is_iterable(const Value& value);
// len(value), if it has one.
std::optional<int64_t> length_of(const Value& value);

// "str", "dict": as Python names the type.
std::string_view type_name(const Value& value);
[[noreturn]] void refuse_undefined(const Value& value);

}  // namespace snug::chat
