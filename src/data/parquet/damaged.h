#pragma once
// How the Parquet reader refuses: bytes that contradict themselves, and what it does not read. Whoever knows the file's
// name puts it in front.

#include <string>

#include "base/error.h"

namespace snug::parquet {

[[noreturn]] inline void damaged(const std::string& what) {
  throw Error("the Parquet file is damaged: " + what, {}, "fetch it anew");
}

[[noreturn]] inline void unsupported(const std::string& what) {
  throw Error(what + " is not supported", {},
              R"(write the file anew: import pandas; pandas.read_parquet(FILE).to_json("rows.jsonl", orient="records", )"
              "lines=True)");
}

}  // namespace snug::parquet
