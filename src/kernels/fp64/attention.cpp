// Attention: every query's shares as a row of their own.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/fp64/table.h"
#include "kernels/fp64/values.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/cached_attention.h"

namespace snug::kernels::fp64 {
namespace {

// What one query sees of the keys that are here: tokens first … last of its sequence; none where last < first.
struct Visible {
  int64_t first, last;
};
template <class Op>
Visible visible(const Op& op, int64_t batch, int64_t query) {
  const int64_t start = op.document_start[batch * op.seq_len + query], token = op.first_query + query;
  const int64_t first = op.window > 0 ? std::max(start, token - op.window + 1) : start;
  return {std::max(first, op.first_key), std::min(token, op.first_key + op.keys - 1)};
}

double capped(double score, double softcap) { return softcap > 0 ? softcap * std::tanh(score / softcap) : score; }

// Scores of a query with the keys that it sees, scaled and capped, and log sum exp of them.
template <class Key>
double scores_of(const Visible& seen, const Key& product, double scale, double softcap, std::vector<double>& scores) {
  scores.clear();
  for (int64_t key = seen.first; key <= seen.last; ++key) scores.push_back(capped(scale * product(key), softcap));
  if (scores.empty()) return -std::numeric_limits<double>::infinity();
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - most);
  return most + std::log(sum);
}

void attention(const Attention& op) {
  const Reader q(op.q), k(op.k), v(op.v);
  const int64_t D = op.head_size, group = op.heads / op.kv_heads;
  std::vector<double> scores;
  for (int64_t b = 0; b < op.batch; ++b) {
    for (int64_t t = 0; t < op.seq_len; ++t) {
      const Visible seen = visible(op, b, t);
      for (int64_t h = 0; h < op.heads; ++h) {
        const int64_t query = ((b * op.seq_len + t) * op.heads + h) * D;
        const auto key_at = [&](int64_t s) { return ((b * op.keys + s - op.first_key) * op.kv_heads + h / group) * D; };
        const double here = scores_of(
            seen,
            [&](int64_t s) {
              double sum = 0;
              for (int64_t d = 0; d < D; ++d) sum += q[query + d] * k[key_at(s) + d];
              return sum;
            },
            static_cast<double>(op.scale), static_cast<double>(op.softcap), scores);
        float& known = op.lse[(b * op.heads + h) * op.seq_len + t];
        const auto before = static_cast<double>(known);
        const double lse = op.sums == nullptr ? here : before + std::log1p(std::exp(here - before));
        known = static_cast<float>(lse);
        for (int64_t d = 0; d < D; ++d) {
          double sum = op.sums == nullptr ? 0 : std::exp(before - lse) * static_cast<double>(op.sums[query + d]);
          for (int64_t s = seen.first; s <= seen.last; ++s)
            sum += std::exp(scores[static_cast<size_t>(s - seen.first)] - lse) * v[key_at(s) + d];
          Writer(op.out).set(query + d, sum);
        }
      }
    }
  }
}

// With shares p and d_p = d_out . v: d_score = p (d_p - d_out . out), through the softcap times 1 - (score/softcap)^2.
void attention_backward(const AttentionBackward& op) {
  const Reader q(op.q), k(op.k), v(op.v), out(op.out);
  const int64_t D = op.head_size, group = op.heads / op.kv_heads;
  const int64_t keys = op.batch * op.keys * op.kv_heads * D;
  std::vector<double> d_k(static_cast<size_t>(keys)), d_v(d_k), d_q(static_cast<size_t>(D));
  const auto put = [&](float& to, double value) {
    to = static_cast<float>(op.accumulate ? static_cast<double>(to) + value : value);
  };
  for (int64_t row = 0; row < op.batch * op.seq_len * op.heads; ++row) {
    const int64_t h = row % op.heads, t = row / op.heads % op.seq_len, b = row / op.heads / op.seq_len, query = row * D;
    const auto lse = static_cast<double>(op.lse[(b * op.heads + h) * op.seq_len + t]);
    const Visible seen = visible(op, b, t);
    std::fill(d_q.begin(), d_q.end(), 0.0);
    double delta = 0;
    for (int64_t d = 0; d < D; ++d) delta += static_cast<double>(op.d_out[query + d]) * out[query + d];
    for (int64_t s = seen.first; s <= seen.last; ++s) {
      const int64_t key = ((b * op.keys + s - op.first_key) * op.kv_heads + h / group) * D;
      double product = 0, d_share = 0;
      for (int64_t d = 0; d < D; ++d) {
        product += q[query + d] * k[key + d];
        d_share += static_cast<double>(op.d_out[query + d]) * v[key + d];
      }
      const auto softcap = static_cast<double>(op.softcap), scale = static_cast<double>(op.scale);
      const double score = capped(scale * product, softcap), share = std::exp(score - lse);
      const double slope = softcap > 0 ? 1.0 - score / softcap * (score / softcap) : 1.0;
      const double d_product = share * (d_share - delta) * slope * scale;
      for (int64_t d = 0; d < D; ++d) {
        d_q[static_cast<size_t>(d)] += d_product * k[key + d];
        d_k[static_cast<size_t>(key + d)] += d_product * q[query + d];
        d_v[static_cast<size_t>(key + d)] += share * static_cast<double>(op.d_out[query + d]);
      }
    }
    for (int64_t d = 0; d < D; ++d) put(op.d_q[query + d], d_q[static_cast<size_t>(d)]);
  }
  for (int64_t i = 0; i < keys; ++i) {
    put(op.d_k[i], d_k[static_cast<size_t>(i)]);
    put(op.d_v[i], d_v[static_cast<size_t>(i)]);
  }
}

void cached_attention(const CachedAttention& op) {
  const Reader q(op.q);
  const Writer keys(op.key_cache), values(op.value_cache);
  const int64_t D = op.head_size, group = op.heads / op.kv_heads, width = op.kv_heads * D;
  for (int64_t i = 0; i < op.rows * width; ++i) {
    const int64_t at = op.positions[i / width] * width + i % width;
    keys.set(at, Reader(op.k)[i]);
    values.set(at, Reader(op.v)[i]);
  }
  std::vector<double> scores;
  for (int64_t row = 0; row < op.rows * op.heads; ++row) {
    const int64_t position = op.positions[row / op.heads], head = row % op.heads / group * D;
    const Visible seen{op.window > 0 ? std::max<int64_t>(0, position - op.window + 1) : 0, position};
    const double lse = scores_of(
        seen,
        [&](int64_t s) {
          double sum = 0;
          for (int64_t d = 0; d < D; ++d) sum += q[row * D + d] * keys[s * width + head + d];
          return sum;
        },
        static_cast<double>(op.scale), static_cast<double>(op.softcap), scores);
    for (int64_t d = 0; d < D; ++d) {
      double sum = 0;
      for (int64_t s = seen.first; s <= seen.last; ++s)
        sum += std::exp(scores[static_cast<size_t>(s - seen.first)] - lse) * values[s * width + head + d];
      Writer(op.out).set(row * D + d, sum);
    }
  }
}

}  // namespace

const Kernel entries::attention = plain<Attention, fp64::attention>();
const Kernel entries::attention_backward = plain<AttentionBackward, fp64::attention_backward>();
const Kernel entries::cached_attention = plain<CachedAttention, fp64::cached_attention>();

}  // namespace snug::kernels::fp64
