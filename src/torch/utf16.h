#pragma once
// Text in UTF-16, as PowerShell writes what is redirected to a file, comes in by pieces and goes out as UTF-8. Without a
// byte order mark at its beginning, text is passed on as it is.

#include <cstdint>
#include <string>
#include <string_view>

namespace snug {

class Utf16Reader {
 public:
  // The text of `bytes`, as far as it is whole; holds until the next call.
  std::string_view read(std::string_view bytes);

  // The rest, where text was too short to tell how it is written.
  std::string_view finish();

 private:
  enum class Order { unknown, none, little, big };

  void decide();
  void take_all(std::string_view bytes);
  void take(unsigned char byte);
  void put(uint32_t unit);

  Order order_ = Order::unknown;
  std::string head_, out_;
  int first_ = -1;     // the first byte of a unit whose second has not come
  uint32_t high_ = 0;  // the first unit of a pair
};

}  // namespace snug
