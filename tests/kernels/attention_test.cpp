#include "targets/cpu/attention.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "kernels/cpu/attention_parts.h"
#include "kernels/row_reference.h"
#include "kernels/support_allocations.h"
#include "sanitized.h"

namespace snug::kernels::testing {
namespace {

constexpr double kRounding = 2e-5;  // of fp32 results; scores of 10 carry 1e-6 into exp

struct Case {
  int64_t batch, seq_len, heads, kv_heads, head_size;
  std::vector<int64_t> documents;  // lengths; the rest is one document
  int64_t rows = 0, cols = 0;      // 0: what the rule says
  int32_t threads = 1;
  DType storage = DType::f32, out = DType::f32;
  int64_t window = 0;
  float softcap = 0;
  Arithmetic arithmetic = Arithmetic::fp32;
};

// Twice the usual, so that the running maximum moves.
float scale_of(const Case& c) { return 2.0F / std::sqrt(static_cast<float>(c.head_size)); }

std::string name_of(const Case& c, const std::string& target) {
  return target + " B" + std::to_string(c.batch) + " T" + std::to_string(c.seq_len) + " H" + std::to_string(c.heads) + " K" +
         std::to_string(c.kv_heads) + " D" + std::to_string(c.head_size) + " cut " + std::to_string(c.rows) + "x" +
         std::to_string(c.cols) + " threads " + std::to_string(c.threads) + " " + std::string(snug::name_of(c.storage));
}

AttentionReference reference_of(const Case& c) {
  AttentionReference reference{c.batch, c.seq_len, c.heads, c.kv_heads, c.head_size, scale_of(c), {}, c.window, c.softcap};
  for (int64_t b = 0; b < c.batch; ++b) {
    std::vector<int32_t> starts;
    for (int64_t length : c.documents)
      starts.insert(starts.end(), static_cast<size_t>(length), static_cast<int32_t>(starts.size()));
    starts.resize(static_cast<size_t>(c.seq_len), static_cast<int32_t>(starts.size()));
    reference.document_start.insert(reference.document_start.end(), starts.begin(), starts.end());
  }
  return reference;
}

// The cut of a case, and the bytes both passes carve for it: the rule's where the rule's blocks are used.
struct Plan {
  Cut cut;
  int64_t forward_bytes, backward_bytes;
  explicit Plan(const Case& c) {
    const Blocks blocks = attention_blocks(c.seq_len, c.head_size);
    cut = {.threads = c.threads,
           .rows = c.rows > 0 ? c.rows : blocks.rows,
           .cols = c.cols > 0 ? c.cols : blocks.cols,
           .arithmetic = c.arithmetic};
    const int64_t team = backward_team(c.batch * c.kv_heads, c.threads);
    const int64_t round = backward_round(cut.rows, c.seq_len, team);
    const bool bf16 = in_bf16(c.arithmetic);
    forward_bytes = c.threads * 4 *
                    (bf16 ? ForwardPartsInBf16(cut.rows, cut.cols, c.head_size).floats
                          : ForwardParts(cut.rows, cut.cols, c.head_size).floats);
    backward_bytes = c.threads * 4 *
                     (bf16 ? BackwardPartsInBf16(cut.rows, cut.cols, c.head_size, round).floats
                           : BackwardParts(cut.rows, cut.cols, c.head_size, round).floats);
    if (c.rows > 0) return;
    const AttentionShape shape{c.batch, c.seq_len, c.kv_heads, c.head_size, c.arithmetic};
    EXPECT_EQ(forward_bytes, attention_workspace_bytes(shape, c.threads));
    EXPECT_EQ(backward_bytes, attention_backward_workspace_bytes(shape, c.threads));
  }
};

struct Passes {
  AttentionReference reference;
  Operand q, k, v, out, lse, d_out, d_q, d_k, d_v;

  explicit Passes(const Case& c)
      : reference(reference_of(c)),
        q(random_values(c.batch * c.seq_len * c.heads * c.head_size, 1), c.storage),
        k(random_values(c.batch * c.seq_len * c.kv_heads * c.head_size, 2), c.storage),
        v(random_values(c.batch * c.seq_len * c.kv_heads * c.head_size, 3), c.storage),
        out(q.elements(), c.out),
        lse(c.batch * c.heads * c.seq_len, DType::f32),
        d_out(random_values(q.elements(), 4), DType::f32),
        d_q(q.elements(), DType::f32),
        d_k(k.elements(), DType::f32),
        d_v(v.elements(), DType::f32) {
    const Plan plan(c);
    Operand forward = workspace_of(plan.forward_bytes), backward = workspace_of(plan.backward_bytes);
    run(c, plan, forward, backward);
    EXPECT_TRUE(forward.intact() && backward.intact());
    for (const Operand* operand : {&out, &lse, &d_q, &d_k, &d_v}) EXPECT_TRUE(operand->intact());
    if (!tests::watches_allocations()) return;
    tests::take_largest_allocation();
    run(c, plan, forward, backward);
    EXPECT_LT(tests::take_largest_allocation(), c.threads == 1 ? size_t{1} : size_t{8192});  // what OpenMP keeps for a team
  }
  void run(const Case& c, const Plan& plan, Operand& forward, Operand& backward) {
    attention({.q = q.in(),
               .k = k.in(),
               .v = v.in(),
               .document_start = reference.document_start.data(),
               .out = out.out(),
               .lse = lse.f32(),
               .batch = c.batch,
               .seq_len = c.seq_len,
               .heads = c.heads,
               .kv_heads = c.kv_heads,
               .head_size = c.head_size,
               .keys = c.seq_len,
               .scale = scale_of(c),
               .softcap = c.softcap,
               .window = c.window,
               .workspace = as_workspace(forward, plan.forward_bytes),
               .cut = plan.cut});
    attention_backward({.d_out = d_out.f32(),
                        .q = q.in(),
                        .k = k.in(),
                        .v = v.in(),
                        .out = out.in(),
                        .document_start = reference.document_start.data(),
                        .lse = lse.f32(),
                        .d_q = d_q.f32(),
                        .d_k = d_k.f32(),
                        .d_v = d_v.f32(),
                        .batch = c.batch,
                        .seq_len = c.seq_len,
                        .heads = c.heads,
                        .kv_heads = c.kv_heads,
                        .head_size = c.head_size,
                        .keys = c.seq_len,
                        .scale = scale_of(c),
                        .softcap = c.softcap,
                        .window = c.window,
                        .workspace = as_workspace(backward, plan.backward_bytes),
                        .cut = plan.cut});
  }
  bool same_bits(const Passes& other) const {
    return out.same_bits(other.out) && lse.same_bits(other.lse) && d_q.same_bits(other.d_q) && d_k.same_bits(other.d_k) &&
           d_v.same_bits(other.d_v);
  }
};

std::vector<Case> cases() {
  std::vector<Case> all = {
      {1, 1, 1, 1, 8, {}},
      {2, 1, 4, 2, 16, {}},
      {1, 31, 2, 1, 64, {}},
      {1, 33, 3, 3, 80, {1, 1, 30}},
      {2, 63, 2, 2, 5, {}},
      {1, 64, 4, 1, 16, {10}},
      {2, 65, 4, 2, 16, {64}},
      {1, 127, 2, 1, 128, {}},
      {1, 128, 2, 1, 8, {65, 1}},
      {2, 129, 2, 2, 24, {3, 1, 100}},
      {1, 200, 6, 2, 64, {77}},
      {1, 40, 2, 1, 256, {9}},
      {1, 300, 1, 1, 16, {128, 64, 64}},
  };
  // Blocks that fit nothing: one key, fewer queries than a panel, more keys than queries.
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{20, 7}, {32, 1}, {32, 16}, {64, 96}, {96, 64}})
    for (int32_t threads : {1, 2, 4}) all.push_back({2, 133, 2, 1, 24, {5, 1, 60}, rows, cols, threads});
  return all;
}

void expect_right(const Case& c, const std::string& target, double gradient_tolerance) {
  const std::string name = name_of(c, target);
  const Passes run(c);
  const Values q = run.q.values(), k = run.k.values(), v = run.v.values(), d_out = run.d_out.values();
  Values lse;
  const Values expected = run.reference(q, k, v, &lse);
  ASSERT_NO_FATAL_FAILURE(
      expect_close(run.out.values(), expected, is_half(c.out) ? tolerance_of(c.out) : kRounding, name + " out"));
  ASSERT_NO_FATAL_FAILURE(expect_close(run.lse.values(), lse, kRounding, name + " lse"));
  const auto loss = [&](const Values& a, const Values& b, const Values& e) { return dot(run.reference(a, b, e), d_out); };
  ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& x) { return loss(x, k, v); }, q, run.d_q.values(), name + " d_q",
                                          gradient_tolerance));
  ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& x) { return loss(q, x, v); }, k, run.d_k.values(), name + " d_k",
                                          gradient_tolerance));
  ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& x) { return loss(q, k, x); }, v, run.d_v.values(), name + " d_v",
                                          gradient_tolerance));
  ASSERT_TRUE(run.same_bits(Passes(c))) << name;
}

TEST(Attention, EqualsTheFormulaAndGradientsEqualCentralDifferences) {
  for (const Case& c : cases()) ASSERT_NO_FATAL_FAILURE(expect_right(c, "best", 1e-3));
}

TEST(Attention, HoldsOnEveryInstructionSet) {
  on_every_target([](const std::string& target) {
    for (const Case& c : {Case{2, 65, 4, 2, 16, {30, 1}}, Case{1, 77, 2, 1, 80, {}, 20, 7, 2}})
      ASSERT_NO_FATAL_FAILURE(expect_right(c, target, 1e-3));
  });
}

TEST(Attention, ReadsBf16AndF16) {
  for (const DType half : {DType::bf16, DType::f16})
    for (Case c : {Case{2, 65, 4, 2, 16, {30, 1}}, Case{1, 77, 2, 1, 80, {}}, Case{1, 129, 3, 1, 64, {}}}) {
      c.storage = half;
      ASSERT_NO_FATAL_FAILURE(expect_right(c, "fp32 out", 1e-3));
      c.out = half;  // rounding out shifts delta
      ASSERT_NO_FATAL_FAILURE(expect_right(c, "rounded out", 1e-2));
    }
}

double relative_error(const Values& actual, const Values& expected) {
  Values difference = actual;
  for (size_t i = 0; i < actual.size(); ++i) difference[i] -= expected[i];
  return std::sqrt(dot(difference, difference) / dot(expected, expected));
}

// In bf16 shares of keys, d_out and gradients of scores are rounded, by 2^-8 at most each; scores are not.
void expect_right_in_bf16(Case c) {
  c.storage = DType::bf16;
  c.arithmetic = Arithmetic::bf16;
  const std::string name = name_of(c, "bf16") + ", window " + std::to_string(c.window);
  const Passes run(c);
  const Values q = run.q.values(), k = run.k.values(), v = run.v.values();
  Values lse;
  const Values expected = run.reference(q, k, v, &lse);
  expect_close(run.lse.values(), lse, kRounding, name + " lse");
  EXPECT_LT(relative_error(run.out.values(), expected), c.out == DType::f32 ? 0x1p-9 : 0x1p-8) << name;
  Case in_fp32 = c;  // whose gradients equal central differences, by the tests above
  in_fp32.arithmetic = Arithmetic::fp32;
  const Passes exact(in_fp32);
  EXPECT_LT(relative_error(run.d_v.values(), exact.d_v.values()), 0x1p-8) << name;
  if (c.seq_len > 1) {  // the only key's share is 1, whatever its score
    EXPECT_LT(relative_error(run.d_q.values(), exact.d_q.values()), 0x1p-8) << name;
    EXPECT_LT(relative_error(run.d_k.values(), exact.d_k.values()), 0x1p-8) << name;
  }
  EXPECT_TRUE(run.same_bits(Passes(c))) << name;
}

TEST(Attention, InBf16IsOffByRoundingsOfWhatIsMultiplied) {
  if (!multiplies_bf16()) GTEST_SKIP() << "no bf16 arithmetic here";
  std::vector<Case> all = {{1, 1, 1, 1, 32, {}},          {2, 31, 4, 2, 32, {}},          {1, 33, 3, 3, 64, {1, 1, 30}},
                           {2, 64, 2, 1, 96, {10}},       {2, 65, 4, 2, 64, {64}},        {1, 128, 2, 1, 128, {65, 1}},
                           {1, 129, 2, 2, 32, {3, 100}},  {1, 200, 6, 2, 64, {77}},       {1, 150, 2, 1, 256, {9}},
                           {1, 300, 3, 1, 32, {128, 64}}, {1, 600, 2, 1, 64, {500, 3, 7}}};
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{20, 7}, {32, 1}, {32, 16}, {64, 96}, {96, 64}, {128, 33}})
    for (int32_t threads : {1, 2, 3, 4}) all.push_back({2, 133, 2, 1, 64, {5, 1, 60}, rows, cols, threads});
  for (const int64_t window : {2, 5, 64, 132})
    for (const float softcap : {0.0F, 1.5F}) {
      Case c{2, 133, 4, 2, 32, {5, 1, 60}};
      c.window = window;
      c.softcap = softcap;
      all.push_back(c);
    }
  for (Case c : snug::testing::thinned(all, 2)) {
    expect_right_in_bf16(c);
    c.out = DType::bf16;
    expect_right_in_bf16(c);
  }
}

// A window of two tokens, of a few, of more than a block, of all but one; within documents; with a softcap, and that alone.
TEST(Attention, ForgetsWhatLiesBeforeItsWindowAndCapsItsScores) {
  for (int64_t window : {0, 2, 5, 64, 100, 132})
    for (float softcap : {0.0F, 1.5F})
      for (int32_t threads : snug::testing::thinned(std::vector<int32_t>{3, 1}, 2)) {
        Case c{2, 133, 4, 2, 16, {5, 1, 60}, 0, 0, threads};
        c.window = window;
        c.softcap = softcap;
        ASSERT_NO_FATAL_FAILURE(expect_right(c, "window " + std::to_string(window), 1e-3));
        c.rows = 32, c.cols = 7;
        ASSERT_NO_FATAL_FAILURE(expect_right(c, "window " + std::to_string(window), 1e-3));
      }
  on_every_target([](const std::string& target) {
    Case c{1, 77, 2, 1, 24, {}};
    c.window = 9;
    c.softcap = 2.0F;
    ASSERT_NO_FATAL_FAILURE(expect_right(c, target, 1e-3));
  });
}

// Threads that divide the units, that do not, and more than there are: teams.
TEST(Attention, BalancesAnyNumberOfThreads) {
  for (int32_t threads : {1, 2, 3, 4, 6, 8}) {
    Case c{1, 140, 6, 3, 16, {20}};
    c.threads = threads;
    ASSERT_NO_FATAL_FAILURE(expect_right(c, "teams", 1e-3));
  }
}

// A document's tokens are untouched by what its neighbours hold.
TEST(Attention, DocumentsDoNotSeeEachOther) {
  const Case packed{1, 150, 2, 1, 16, {70, 80}};
  Passes run(packed);
  const Case alone{1, 70, 2, 1, 16, {}};
  const Passes first(alone);
  const Values whole = run.out.values(), part = first.out.values();
  // Random operands are drawn by index, so that the first document's are the same in both.
  expect_close(Values(whole.begin(), whole.begin() + static_cast<int64_t>(part.size())), part, 1e-6, "first document");
}

// Two cuts of the same sums: number by number, or by the norm where factors are rounded to bf16, each cut in its own way.
void expect_same(const Case& c, const Values& actual, const Values& expected, double tolerance, const char* what) {
  if (!in_bf16(c.arithmetic)) return expect_close(actual, expected, tolerance, what);
  EXPECT_LT(relative_error(actual, expected), tolerance) << what;
}

// Ranks that split a sequence: stretches of its queries, against all keys, make what all queries do.
void expect_stretches(const Case& c, int64_t ways, double tolerance) {
  const Passes whole(c);
  const int64_t rows = c.seq_len / ways, width = c.heads * c.head_size;
  Values d_k(static_cast<size_t>(whole.k.elements()), 0.0), d_v(d_k);
  for (int64_t first = 0; first < c.seq_len; first += rows) {
    const auto part = [&](const Operand& of, DType type) {
      const Values values = of.values();
      return Operand(Values(values.begin() + first * width, values.begin() + (first + rows) * width), type);
    };
    Case own = c;
    own.seq_len = rows;
    const Plan plan(own);
    Operand q = part(whole.q, c.storage), d_out = part(whole.d_out, DType::f32), out(rows * width, c.out),
            lse(c.heads * rows, DType::f32), d_q(rows * width, DType::f32), own_d_k(whole.k.elements(), DType::f32),
            own_d_v(whole.k.elements(), DType::f32);
    Operand forward = workspace_of(plan.forward_bytes), backward = workspace_of(plan.backward_bytes);
    const int32_t* const starts = whole.reference.document_start.data() + first;
    attention({.q = q.in(),
               .k = whole.k.in(),
               .v = whole.v.in(),
               .document_start = starts,
               .out = out.out(),
               .lse = lse.f32(),
               .batch = 1,
               .seq_len = rows,
               .heads = c.heads,
               .kv_heads = c.kv_heads,
               .head_size = c.head_size,
               .keys = c.seq_len,
               .first_query = first,
               .scale = scale_of(c),
               .softcap = c.softcap,
               .window = c.window,
               .workspace = as_workspace(forward, plan.forward_bytes),
               .cut = plan.cut});
    attention_backward({.d_out = d_out.f32(),
                        .q = q.in(),
                        .k = whole.k.in(),
                        .v = whole.v.in(),
                        .out = out.in(),
                        .document_start = starts,
                        .lse = lse.f32(),
                        .d_q = d_q.f32(),
                        .d_k = own_d_k.f32(),
                        .d_v = own_d_v.f32(),
                        .batch = 1,
                        .seq_len = rows,
                        .heads = c.heads,
                        .kv_heads = c.kv_heads,
                        .head_size = c.head_size,
                        .keys = c.seq_len,
                        .first_query = first,
                        .scale = scale_of(c),
                        .softcap = c.softcap,
                        .window = c.window,
                        .workspace = as_workspace(backward, plan.backward_bytes),
                        .cut = plan.cut});
    for (const Operand* operand : {&out, &lse, &d_q, &own_d_k, &own_d_v, &forward, &backward})
      EXPECT_TRUE(operand->intact());
    expect_same(c, out.values(), part(whole.out, c.out).values(), tolerance, "out");
    expect_same(c, d_q.values(), part(whole.d_q, DType::f32).values(), tolerance, "d_q");
    const Values k = own_d_k.values(), v = own_d_v.values();
    for (size_t i = 0; i < d_k.size(); ++i) d_k[i] += k[i], d_v[i] += v[i];
  }
  expect_same(c, d_k, whole.d_k.values(), tolerance, "d_k");
  expect_same(c, d_v, whole.d_v.values(), tolerance, "d_v");
}

TEST(Attention, StretchesOfQueriesMakeTheWhole) {
  for (const int64_t ways : {2, 3, 4})
    for (const int32_t threads : {1, 4}) {
      Case c{1, 180, 4, 2, 32, {7, 80}};
      c.threads = threads;
      expect_stretches(c, ways, 1e-5);
      c.window = 50;
      expect_stretches(c, ways, 1e-5);
      if (!multiplies_bf16_faster()) continue;
      c.storage = c.out = DType::bf16;
      c.arithmetic = Arithmetic::bf16;
      expect_stretches(c, ways, 0x1p-7);
    }
}

// Of a rank's stretch, and of any block of keys.
template <class Op>
void take_sizes(const Case& c, int64_t place, const Plan& plan, Op& op) {
  op.batch = 1, op.seq_len = op.keys = c.seq_len, op.heads = c.heads, op.kv_heads = c.kv_heads, op.head_size = c.head_size;
  op.first_query = place * c.seq_len, op.scale = scale_of(c), op.softcap = c.softcap, op.window = c.window;
  op.cut = plan.cut;
}

// Ranks that pass keys round a ring: stretches of queries, against one block of keys after the other, make what all queries
// do against all.
void expect_ring(const Case& c, int64_t ways, double tolerance) {
  const Passes whole(c);
  Case own = c;
  own.seq_len = c.seq_len / ways;
  const Plan plan(own);
  const int64_t rows = own.seq_len;
  const auto part = [&](const Operand& of, int64_t place, int64_t heads, DType type) {
    const Values values = of.values();
    const auto from = values.begin() + place * rows * heads * c.head_size;
    return Operand(Values(from, from + rows * heads * c.head_size), type);
  };
  const auto same = [&](const Operand& actual, const Operand& expected, const char* what) {
    expect_same(c, actual.values(), expected.values(), tolerance, what);
  };
  std::vector<Operand> k, v, d_k, d_v;
  for (int64_t place = 0; place < ways; ++place) {
    k.push_back(part(whole.k, place, c.kv_heads, c.storage)), v.push_back(part(whole.v, place, c.kv_heads, c.storage));
    for (std::vector<Operand>* gradients : {&d_k, &d_v}) gradients->emplace_back(k[0].elements(), DType::f32);
  }
  Operand forward = workspace_of(plan.forward_bytes), backward = workspace_of(plan.backward_bytes);
  for (int64_t place = 0; place < ways; ++place) {
    Operand q = part(whole.q, place, c.heads, c.storage), d_out = part(whole.d_out, place, c.heads, DType::f32);
    Operand sums(q.elements(), DType::f32), out(q.elements(), c.out), lse(c.heads * rows, DType::f32);
    Operand d_q(q.elements(), DType::f32);
    Attention ahead{.q = q.in(), .document_start = whole.reference.document_start.data() + place * rows, .lse = lse.f32()};
    take_sizes(own, place, plan, ahead);
    ahead.workspace = as_workspace(forward, plan.forward_bytes);
    AttentionBackward back{.d_out = d_out.f32(), .q = q.in(), .out = out.in(), .document_start = ahead.document_start};
    take_sizes(own, place, plan, back);
    back.lse = lse.f32(), back.d_q = d_q.f32(), back.workspace = as_workspace(backward, plan.backward_bytes);
    const auto block = [&](int64_t step) { return static_cast<size_t>((place - step + ways) % ways); };
    for (int64_t step = 0; step < ways; ++step) {
      ahead.k = k[block(step)].in(), ahead.v = v[block(step)].in();
      ahead.first_key = static_cast<int64_t>(block(step)) * rows;
      ahead.sums = step > 0 ? sums.f32() : nullptr;
      ahead.out = step + 1 == ways ? out.out() : sums.out();
      attention(ahead);
    }
    for (int64_t step = 0; step < ways; ++step) {
      back.k = k[block(step)].in(), back.v = v[block(step)].in(), back.first_key = static_cast<int64_t>(block(step)) * rows;
      back.d_k = d_k[block(step)].f32(), back.d_v = d_v[block(step)].f32(), back.accumulate = step > 0;
      attention_backward(back);
    }
    for (const Operand* operand : {&sums, &out, &lse, &d_q, &forward, &backward}) EXPECT_TRUE(operand->intact());
    same(out, part(whole.out, place, c.heads, c.out), "out");
    same(d_q, part(whole.d_q, place, c.heads, DType::f32), "d_q");
  }
  for (int64_t place = 0; place < ways; ++place) {
    const auto at = static_cast<size_t>(place);
    EXPECT_TRUE(d_k[at].intact() && d_v[at].intact());
    same(d_k[at], part(whole.d_k, place, c.kv_heads, DType::f32), "d_k");
    same(d_v[at], part(whole.d_v, place, c.kv_heads, DType::f32), "d_v");
  }
}

TEST(Attention, BlocksOfKeysInARingMakeTheWhole) {
  for (const int64_t ways : {2, 3, 4})
    for (const int32_t threads : {1, 4})
      for (const int64_t window : {0, 50, 130}) {
        Case c{1, 180, 4, 2, 32, {7, 80}};
        c.threads = threads;
        c.window = window;
        c.softcap = window == 50 ? 5.0F : 0.0F;
        expect_ring(c, ways, 1e-5);
        c.storage = c.out = DType::bf16;
        expect_ring(c, ways, 2e-2);
        if (!multiplies_bf16()) continue;
        c.arithmetic = Arithmetic::bf16;
        expect_ring(c, ways, 0x1p-7);
      }
}

TEST(Attention, RefusesAWorkspaceThatIsTooSmall) {
  Attention forward;
  forward.cut.rows = 32;
  EXPECT_THROW(attention(forward), Error);
  AttentionBackward backward;
  backward.batch = backward.kv_heads = 1;
  backward.cut.rows = 32;
  EXPECT_THROW(attention_backward(backward), Error);
}

}  // namespace
}  // namespace snug::kernels::testing
