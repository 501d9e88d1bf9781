#pragma once
// How the Arrow reader refuses: bytes that contradict themselves, and what it does not read. Whoever knows the file's name
// puts it in front.

#include <string>

#include "base/error.h"

namespace snug::arrow {

[[noreturn]] inline void damaged(const std::string& what) {
  throw Error("the Arrow file is damaged: " + what, {}, "write or fetch it anew");
}

[[noreturn]] inline void unsupported(const std::string& what) {
  throw Error(what + " is not supported", {},
              R"(write the file anew: import pyarrow.ipc as ipc; ipc.open_stream(FILE).read_pandas().to_json("rows.jsonl", )"
              R"(orient="records", lines=True), or open_file where it is no stream)");
}

}  // namespace snug::arrow
