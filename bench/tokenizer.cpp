// Tokenizers, measured and held against others:
//   tokenizer load TOKENIZER                      seconds and bytes to read it
//   tokenizer speed TOKENIZER FILE [THREADS]      MB/s over the lines of FILE, ids alone and with spans (one thread)
//   tokenizer answer TOKENIZER                    for tests/oracle/tokenizer_compare.py: texts in, ids, spans and texts out
// `answer` reads requests (uint32 length, text) from stdin and writes for each: uint32 count, ids with special tokens,
// uint32 count, ids, spans as pairs of uint32, and the decoded ids twice (uint32 length, text), the second without special
// ones.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "tokenizer/encoder.h"
#include "tokenizer/tokenizer.h"

namespace {

using snug::Encoder;
using snug::TextSpan;
using snug::Tokenizer;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int load(const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  const Tokenizer tokenizer = Tokenizer::load(path);
  std::printf("%.3f s, %.1f MB of tables, %lld ids\n", seconds_since(start),
              static_cast<double>(tokenizer.memory_bytes()) * 1e-6, static_cast<long long>(tokenizer.vocab_size()));
  return 0;
}

// The whole lines of `text`, in parts of about 8 KiB, as rows of a dataset are.
std::vector<std::string_view> rows_of(std::string_view text) {
  std::vector<std::string_view> rows;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n', std::min<size_t>(text.size(), 8192)), text.size() - 1) + 1;
    rows.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return rows;
}

// Processor time of all threads, which other work on the machine disturbs less than the clock on the wall.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int speed(const std::string& path, const std::string& file, int threads) {
  const Tokenizer tokenizer = Tokenizer::load(path);
  std::ifstream stream(file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const std::vector<std::string_view> rows = rows_of(text);
  const auto megabytes = static_cast<double>(text.size()) * 1e-6;
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    double before = processor_seconds();
    size_t count = 0;
    for (const auto& ids : snug::encode_batch(tokenizer, rows, false, threads)) count += ids.size();
    const double wall = seconds_since(start);
    const double busy = processor_seconds() - before;
    before = processor_seconds();
    Encoder encoder(tokenizer);
    std::vector<int32_t> ids;
    std::vector<TextSpan> spans;
    for (const std::string_view row : rows) encoder.encode_with_spans(row, false, ids, spans);
    const double with_spans = processor_seconds() - before;
    std::printf("%.1f MB/s on %d threads, %.1f MB a processor second (%.1f with spans), %.2f bytes an id\n",
                megabytes / wall, threads, megabytes / busy, megabytes / with_spans,
                static_cast<double>(text.size()) / static_cast<double>(count));
  }
  return 0;
}

template <typename T>
void put(const T* items, size_t count) {
  const auto size = static_cast<uint32_t>(count);
  std::fwrite(&size, sizeof size, 1, stdout);
  if (count > 0) std::fwrite(items, sizeof(T), count, stdout);
}

int answer(const std::string& path) {
  const Tokenizer tokenizer = Tokenizer::load(path);
  uint32_t length = 0;
  std::string text;
  while (std::fread(&length, sizeof length, 1, stdin) == 1) {
    text.resize(length);
    if (std::fread(text.data(), 1, length, stdin) != length) return 1;
    const std::vector<int32_t> special = tokenizer.encode(text, true);
    std::vector<int32_t> ids;
    std::vector<TextSpan> spans;
    tokenizer.encode_with_spans(text, false, ids, spans);
    std::vector<uint32_t> ends;
    for (const TextSpan span : spans) {
      ends.push_back(static_cast<uint32_t>(span.begin));
      ends.push_back(static_cast<uint32_t>(span.end));
    }
    const std::string all = tokenizer.decode(ids);
    const std::string plain = tokenizer.decode(ids, true);
    put(special.data(), special.size());
    put(ids.data(), ids.size());
    put(ends.data(), ends.size());
    put(all.data(), all.size());
    put(plain.data(), plain.size());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 2 && words[0] == "load") return load(words[1]);
    if (words.size() >= 3 && words[0] == "speed")
      return speed(words[1], words[2], words.size() > 3 ? std::atoi(words[3].c_str()) : 1);
    if (words.size() == 2 && words[0] == "answer") return answer(words[1]);
  } catch (const snug::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  std::cerr << "usage: tokenizer load|answer TOKENIZER, tokenizer speed TOKENIZER FILE [THREADS]\n";
  return 2;
}
