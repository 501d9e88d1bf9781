#include "data/loader.h"

#include <algorithm>
#include <functional>
#include <map>

#include "data/support_batch.h"
#include "tokenizer/support.h"

namespace snug {
namespace {

using test::expect_mentions;
using test::refusal;

// A dataset of rows that can be told apart, with tokens of one byte.
struct Fixture {
  Fixture(int64_t rows, bool packing, bool pairs, int64_t seq_len = 24) {
    std::string jsonl;
    for (int64_t i = 0; i < rows; ++i) {
      const std::string tail(static_cast<size_t>(i * 29 % 19), 'z');
      const std::string text = std::to_string(i) + tail;
      if (pairs) {
        jsonl.append(R"({"prompt":")")
            .append(i % 5 == 0 ? "" : "p")
            .append(R"(","completion":")")
            .append(text)
            .append("\"}\n");
      } else {
        jsonl.append(R"({"text":")").append(text).append("\"}\n");
      }
    }
    DatasetRequest request;
    request.data = directory.write("d.jsonl", jsonl);
    request.directory = path();
    request.seq_len = seq_len;
    request.packing = packing;
    request.eos_id = 1;
    prepare_dataset(request, test::byte_tokenizer());
  }
  std::filesystem::path path() const { return directory.file("out"); }
  test::TemporaryDirectory directory;
};

LoaderOptions options(int64_t batch, int64_t accumulation, bool shuffle = true) {
  LoaderOptions result;
  result.batch = batch;
  result.accumulation = accumulation;
  result.shuffle = shuffle;
  result.pad_token = 9;
  return result;
}

struct Batch {
  Batch(int64_t rows, int64_t seq_len) : rows_(rows), seq_len_(seq_len), held_(seq_len, rows * seq_len) {}
  BatchSink& sink() { return held_; }
  int32_t token(int64_t m) const { return held_.of(BatchPart::tokens)[static_cast<size_t>(m)]; }
  int32_t position(int64_t m) const { return held_.of(BatchPart::positions)[static_cast<size_t>(m)]; }
  int32_t start(int64_t m) const { return held_.of(BatchPart::document_start)[static_cast<size_t>(m)]; }
  int32_t target_row(int64_t i) const { return held_.of(BatchPart::target_rows)[static_cast<size_t>(i)]; }
  int32_t target(int64_t i) const { return held_.of(BatchPart::target_tokens)[static_cast<size_t>(i)]; }

  // The documents of row b as strings; padding is left out.
  std::vector<std::string> documents(int64_t b, int64_t tokens) const {
    std::vector<std::string> found;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t m = b * seq_len_ + t;
      if (position(m) == 0) found.emplace_back();
      EXPECT_EQ(start(m), t - position(m));
      EXPECT_EQ(position(m), static_cast<int32_t>(found.back().size()));
      found.back() += static_cast<char>(token(m) == 1 ? '.' : token(m) - 2);
    }
    return found;
  }

  int64_t rows_, seq_len_;
  test::HeldBatch held_;
};

int64_t real_tokens(const Batch& batch, int64_t b) {
  int64_t used = batch.seq_len_;
  while (used > 0 && batch.token(b * batch.seq_len_ + used - 1) == 9) --used;
  return used;
}

TEST(Loader, ShowsEveryDocumentExactlyOnceAnEpoch) {
  for (const bool packing : {false, true}) {
    const Fixture fixture(101, packing, false);
    Loader loader(fixture.path(), options(3, 4));
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      std::map<std::string, int> seen;
      for (int64_t s = 0; s < loader.steps_per_epoch(); ++s) {
        const Window window = loader.window(epoch * loader.steps_per_epoch() + s);
        EXPECT_EQ(window.epoch, epoch);
        for (int64_t i = 0; i < window.micro_batches; ++i) {
          Batch batch(3, 24);
          loader.fill(window, i, batch.sink());
          for (int64_t b = 0; b < 3; ++b) {
            for (const std::string& document : batch.documents(b, real_tokens(batch, b))) ++seen[document];
          }
        }
      }
      EXPECT_EQ(seen.size(), 101U);
      for (const auto& [document, times] : seen) EXPECT_EQ(times, 1) << document;
    }
  }
}

TEST(Loader, CountsLabelsBeforehandAsABruteForceCountDoes) {
  for (const bool packing : {false, true}) {
    for (const bool pairs : {false, true}) {
      const Fixture fixture(57, packing, pairs);
      LoaderOptions wanted = options(4, 3);
      Loader targets(fixture.path(), wanted);
      wanted.normalization = LossNormalization::unshifted;
      Loader unshifted(fixture.path(), wanted);
      int64_t all_targets = 0;
      for (int64_t s = 0; s < targets.steps_per_epoch(); ++s) {
        const Window window = targets.window(s);
        int64_t predicted = 0;
        int64_t first_labels =
            0;  // rows whose first token is a label, which are counted before the shift where rows are not packed
        int64_t longest = 0;
        for (int64_t i = 0; i < window.micro_batches; ++i) {
          Batch batch(4, 24);
          const MicroBatchCounts counts = targets.fill(window, i, batch.sink());
          predicted += counts.targets;
          int64_t tokens = 0;
          for (int64_t b = 0; b < 4; ++b) {
            const int64_t used = real_tokens(batch, b);
            longest = std::max(longest, used);
            tokens += used;
            // A text, or a completion without a prompt, starts with a label: the digits of its number.
            if (!packing && used > 0 && batch.token(b * 24) != 'p' + 2) ++first_labels;
          }
          EXPECT_EQ(counts.tokens, tokens);
        }
        EXPECT_EQ(window.label_count, predicted);
        EXPECT_EQ(window.target_count, predicted);
        EXPECT_EQ(window.longest_row, longest);
        EXPECT_EQ(unshifted.window(s).label_count, predicted + first_labels);
        all_targets += predicted;
      }
      EXPECT_EQ(all_targets, targets.summary().target_tokens);
    }
  }
}

TEST(Loader, NamesForEveryTargetThePlaceBeforeItInTheSameDocument) {
  const Fixture fixture(57, true, true);
  Loader loader(fixture.path(), options(4, 1));
  for (int64_t s = 0; s < loader.steps_per_epoch(); ++s) {
    Batch batch(4, 24);
    const MicroBatchCounts counts = loader.fill(loader.window(s), 0, batch.sink());
    std::vector<int32_t> expected;
    for (int32_t m = 0; m + 1 < 4 * 24; ++m) {
      const bool same_document = batch.position(m + 1) > 0 && m / 24 == (m + 1) / 24;
      if (same_document && batch.token(m + 1) != 9)
        expected.push_back(m);  // a prompt is one token, so every later one is a label
    }
    ASSERT_EQ(counts.targets, static_cast<int64_t>(expected.size()));
    for (int64_t i = 0; i < 4 * 24; ++i) {
      const bool valid = i < counts.targets;
      EXPECT_EQ(batch.target_row(i), valid ? expected[static_cast<size_t>(i)] : 0);
      EXPECT_EQ(batch.target(i), valid ? batch.token(expected[static_cast<size_t>(i)] + 1) : 0);
    }
  }
}

TEST(Loader, PadsWithADocumentOfItsOwnAndMissingRowsWholly) {
  const Fixture fixture(5, false, false);
  Loader loader(fixture.path(), options(4, 2, false));
  EXPECT_EQ(loader.steps_per_epoch(), 1);
  const Window window = loader.window(0);
  EXPECT_EQ(window.rows, 5);
  EXPECT_EQ(window.micro_batches, 2);
  Batch batch(4, 24);
  const MicroBatchCounts counts = loader.fill(window, 1, batch.sink());
  EXPECT_EQ(counts.rows, 1);
  const int64_t used = real_tokens(batch, 0);
  EXPECT_EQ(counts.tokens, used);
  for (int64_t m = used; m < 4 * 24; ++m) {
    const int64_t start = m < 24 ? used : 0;
    EXPECT_EQ(batch.token(m), 9);
    EXPECT_EQ(batch.start(m), start);
    EXPECT_EQ(batch.position(m), m % 24 - start);
  }
}

TEST(Loader, HasAPartialLastWindow) {
  const Fixture fixture(11, false, false);
  Loader loader(fixture.path(), options(2, 4));
  EXPECT_EQ(loader.steps_per_epoch(), 2);  // 6 micro-batches: 4 and 2
  EXPECT_EQ(loader.window(0).micro_batches, 4);
  EXPECT_EQ(loader.window(1).micro_batches, 2);
  EXPECT_EQ(loader.window(1).rows, 3);
  EXPECT_EQ(loader.window(3).micro_batches, 2);
  EXPECT_EQ(loader.window(3).epoch, 1);
}

TEST(Loader, KeepsFileOrderWithoutShuffleAndAnotherOrderEachEpochWithIt) {
  const Fixture fixture(40, false, false);
  const auto order = [&](bool shuffle, int64_t epoch) {
    Loader loader(fixture.path(), options(40, 1, shuffle));
    Batch batch(40, 24);
    loader.fill(loader.window(epoch), 0, batch.sink());
    std::vector<std::string> rows;
    for (int64_t b = 0; b < 40; ++b) rows.push_back(batch.documents(b, real_tokens(batch, b)).front());
    return rows;
  };
  const auto file_order = order(false, 0);
  for (size_t i = 0; i < 40; ++i) EXPECT_TRUE(file_order[i].starts_with(std::to_string(i)));
  EXPECT_EQ(order(false, 1), file_order);
  EXPECT_NE(order(true, 0), file_order);
  EXPECT_NE(order(true, 0), order(true, 1));
  EXPECT_EQ(order(true, 1), order(true, 1));
}

TEST(Loader, FillsShorterBatchesWhenNoRowIsLonger) {
  const Fixture fixture(9, false, false);
  Loader loader(fixture.path(), options(9, 1));
  const Window window = loader.window(0);
  Batch batch(9, window.longest_row);
  EXPECT_EQ(loader.fill(window, 0, batch.sink()).rows, 9);
  Batch shorter(9, window.longest_row - 1);
  expect_mentions(refusal([&] { loader.fill(window, 0, shorter.sink()); }), {"longer than the batch"});
  Batch fewer(8, window.longest_row);
  expect_mentions(refusal([&] { loader.fill(window, 0, fewer.sink()); }), {"elements"});
  expect_mentions(refusal([&] { loader.fill(window, 1, batch.sink()); }), {"no micro-batch 1"});
}

TEST(Loader, RefusesFilesThatAreMissingTruncatedOrOfAnotherRun) {
  const Fixture fixture(30, true, false);
  const Fixture other(31, true, false);
  const auto open = [](const std::filesystem::path& path) { return refusal([&] { Loader loader(path, options(1, 1)); }); };
  EXPECT_EQ(open(fixture.path()), "");
  expect_mentions(open(fixture.path() / "nowhere"), {"cannot be opened", "prepare the data again"});
  LoaderOptions wanted;
  wanted.seq_len = 25;
  expect_mentions(refusal([&] { Loader loader(fixture.path(), wanted); }), {"24 tokens, not 25"});

  std::filesystem::copy_file(other.path() / "tokens.bin", fixture.path() / "tokens.bin",
                             std::filesystem::copy_options::overwrite_existing);
  expect_mentions(open(fixture.path()), {"rows.bin", "does not belong"});
  for (const char* name : {"tokens.bin", "rows.bin"}) {
    const auto path = other.path() / name;
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    expect_mentions(open(other.path()), {name, "truncated"});
    std::filesystem::resize_file(path, 5);
    expect_mentions(open(other.path()), {name, "truncated: it ends at byte 5"});
    std::filesystem::copy_file(fixture.path() / "tokens.bin", other.path() / "tokens.bin",
                               std::filesystem::copy_options::overwrite_existing);
  }
}

TEST(Loader, NeverReadsOutOfBoundsWhateverTheFilesHold) {
  const Fixture fixture(12, true, true);
  for (const char* name : {"tokens.bin", "rows.bin"}) {
    const auto path = fixture.path() / name;
    std::ifstream in(path, std::ios::binary);
    const std::string good(std::istreambuf_iterator<char>(in), {});
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (i % 2 == 0 ? '\x01' : '\x80'));
      std::ofstream(path, std::ios::binary) << bad;
      refusal([&] {
        Loader loader(fixture.path(), options(4, 2));
        const int64_t seq_len = std::min<int64_t>(loader.seq_len(), 64);
        for (int64_t s = 0; s < std::min<int64_t>(loader.steps_per_epoch(), 9); ++s) {
          const Window window = loader.window(s);
          Batch batch(4, seq_len);
          for (int64_t k = 0; k < window.micro_batches; ++k) loader.fill(window, k, batch.sink());
        }
      });
    }
    std::ofstream(path, std::ios::binary) << good;
  }
}

// Rows of up to 300 tokens, padded to four lengths.
struct BucketFixture {
  explicit BucketFixture(int64_t rows, int64_t most = 4) {
    std::string jsonl;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t size = i % 7 == 0 ? i * 131 % 290 : i * 13 % 50;
      jsonl += "{\"text\":\"" + std::to_string(i) + std::string(static_cast<size_t>(size), 'z') + "\"}\n";
    }
    DatasetRequest request;
    request.data = directory.write("d.jsonl", jsonl);
    request.directory = directory.file("out");
    request.seq_len = 512;
    request.packing = false;
    request.most_buckets = most;
    request.eos_id = 1;
    summary = prepare_dataset(request, test::byte_tokenizer());
  }
  test::TemporaryDirectory directory;
  DatasetSummary summary;
};

TEST(Loader, GivesEachStepOneBucketAndTheLongestFirst) {
  const BucketFixture fixture(150);
  ASSERT_GT(fixture.summary.buckets, 2);
  EXPECT_LT(fixture.summary.padding_share, BucketFixture(150, 1).summary.padding_share / 1.5);
  for (const uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    for (const bool shuffle : {true, false}) {
      LoaderOptions wanted = options(3, 2, shuffle);
      wanted.seed = seed;
      Loader loader(fixture.directory.file("out"), wanted);
      const int64_t steps = loader.steps_per_epoch();
      std::vector<int64_t> buckets_met;
      for (int64_t epoch = 0; epoch < 2; ++epoch) {
        std::map<std::string, int> seen;
        for (int64_t s = 0; s < steps; ++s) {
          const Window window = loader.window(epoch * steps + s);
          const auto longest = fixture.summary.bucket_length[static_cast<size_t>(fixture.summary.buckets - 1)];
          EXPECT_TRUE(epoch + s > 0 || window.seq_len == longest);
          EXPECT_LE(window.longest_row, window.seq_len);
          buckets_met.push_back(window.bucket);
          for (int64_t i = 0; i < window.micro_batches; ++i) {
            Batch batch(3, window.seq_len);
            const MicroBatchCounts counts = loader.fill(window, i, batch.sink());
            for (int64_t b = 0; b < counts.rows; ++b) ++seen[batch.documents(b, real_tokens(batch, b)).front()];
          }
        }
        EXPECT_EQ(seen.size(), 150U);
        for (const auto& [document, times] : seen) EXPECT_EQ(times, 1) << document;
      }
      EXPECT_EQ(std::ranges::is_sorted(buckets_met.begin(), buckets_met.begin() + steps, std::greater<>()), !shuffle);
    }
  }
}

}  // namespace
}  // namespace snug
