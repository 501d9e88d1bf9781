#pragma once
// The opcodes of Python pickles (Lib/pickletools.py): those that build plain data, by their names there, and in words those
// that are refused.

#include <cstdint>
#include <string_view>

namespace snug {

enum class PickleOpcode : uint8_t {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  dup = '2',
  none = 'N',
  newtrue = 0x88,
  newfalse = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  long4 = 0x8b,
  binfloat = 'G',
  binstring = 'T',
  short_binstring = 'U',
  binunicode = 'X',
  short_binunicode = 0x8c,
  binunicode8 = 0x8d,
  binbytes = 'B',
  short_binbytes = 'C',
  binbytes8 = 0x8e,
  bytearray8 = 0x96,
  empty_tuple = ')',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  tuple = 't',
  empty_list = ']',
  append = 'a',
  appends = 'e',
  list = 'l',
  empty_dict = '}',
  setitem = 's',
  setitems = 'u',
  dict = 'd',
  empty_set = 0x8f,
  additems = 0x90,
  frozenset = 0x91,
  get = 'g',
  binget = 'h',
  long_binget = 'j',
  put = 'p',
  binput = 'q',
  long_binput = 'r',
  memoize = 0x94,
  proto = 0x80,
  frame = 0x95,
  global = 'c',
  stack_global = 0x93,
  inst = 'i',
  persid = 'P',
};

// The name of an opcode that calls or builds objects or reaches outside the file; empty for all others.
inline std::string_view refused_opcode(PickleOpcode opcode) {
  switch (static_cast<uint8_t>(opcode)) {
    case 'R': return "REDUCE (a call)";
    case 'b': return "BUILD (an object's state)";
    case 'o': return "OBJ (an object)";
    case 0x81: return "NEWOBJ (an object)";
    case 0x92: return "NEWOBJ_EX (an object)";
    case 0x82: return "EXT1 (a registered extension)";
    case 0x83: return "EXT2 (a registered extension)";
    case 0x84: return "EXT4 (a registered extension)";
    case 'Q': return "BINPERSID (an object outside the file)";
    case 0x97: return "NEXT_BUFFER (a buffer outside the file)";
    case 0x98: return "READONLY_BUFFER (a buffer outside the file)";
    default: return {};
  }
}

// The name of an opcode that only protocols 0 and 1 write; empty for all others.
inline std::string_view old_opcode(PickleOpcode opcode) {
  switch (static_cast<uint8_t>(opcode)) {
    case 'I': return "INT";
    case 'L': return "LONG";
    case 'F': return "FLOAT";
    case 'S': return "STRING";
    case 'V': return "UNICODE";
    default: return {};
  }
}

}  // namespace snug
