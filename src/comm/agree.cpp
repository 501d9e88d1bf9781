#include "comm/agree.h"

#include <algorithm>
#include <array>

namespace snug {

void sum_over_ranks(Communicator& ranks, std::span<double> values) {
  std::array<double, 64> staging{};
  ranks.all_reduce(std::as_writable_bytes(values), DType::f64, std::as_writable_bytes(std::span(staging)));
}

std::vector<int64_t> all_ranks(Communicator& ranks, int64_t value) {
  std::vector<int64_t> all(static_cast<size_t>(ranks.ranks()));
  ranks.all_gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

std::vector<std::string> texts_of_ranks(Communicator& ranks, const std::string& text) {
  const std::vector<int64_t> sizes = all_ranks(ranks, static_cast<int64_t>(text.size()));
  const auto most = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::string own = text, all(most * sizes.size(), ' ');
  own.resize(most);
  ranks.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes.size(); ++rank)
    texts.push_back(all.substr(rank * most, static_cast<size_t>(sizes[rank])));
  return texts;
}

std::string of_first_rank(Communicator& ranks, const std::string& text) {
  std::string given = text;
  given.resize(static_cast<size_t>(all_ranks(ranks, static_cast<int64_t>(text.size())).front()));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(given));
  if (ranks.rank() > 0) ranks.receive(bytes);
  if (ranks.rank() + 1 < ranks.ranks()) ranks.send(bytes);
  return given;
}

}  // namespace snug
