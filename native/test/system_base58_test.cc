#include "system/base58.h"

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "check.h"

namespace {

using namespace shredway;
using Bytes = std::vector<uint8_t>;

std::string encode(const Bytes& bytes) {
  std::array<char, kBase58TextMax> text;
  return {text.data(), base58_encode(bytes.data(), bytes.size(), text.data())};
}

// "refused", or the bytes. The buffer has exactly the required size, so that the sanitizer detects
// a write beyond it.
struct Decoded {
  bool decoded;
  Bytes bytes;
};
Decoded decode(const std::string& text) {
  const std::unique_ptr<uint8_t[]> buffer(new uint8_t[text.size()]);
  size_t count = 0;
  if (!base58_decode(text.data(), text.size(), buffer.get(), count)) return {false, {}};
  return {true, Bytes(buffer.get(), buffer.get() + count)};
}

// Encodes by the definition, byte by byte.
std::string slow_encode(const Bytes& bytes) {
  constexpr char alphabet[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  std::vector<int> digits;
  for (const uint8_t byte : bytes) {
    int carry = byte;
    for (int& digit : digits) {
      carry += digit * 256;
      digit = carry % 58;
      carry /= 58;
    }
    for (; carry > 0; carry /= 58) digits.push_back(carry % 58);
  }
  std::string text;
  for (size_t i = 0; i < bytes.size() && bytes[i] == 0; i++) text += '1';
  for (size_t i = digits.size(); i-- > 0;) text += alphabet[digits[i]];
  return text;
}

}  // namespace

TEST(system_base58_known_texts) {
  CHECK_EQ(encode({}), "");
  CHECK_EQ(encode({0}), "1");
  CHECK_EQ(encode({0, 0, 57}), "11z");
  CHECK_EQ(encode({58}), "21");
  CHECK_EQ(encode({0x61}), "2g");
  CHECK_EQ(encode(Bytes(32, 0)), std::string(32, '1'));
  const char hello[] = "Hello World!";
  CHECK_EQ(encode(Bytes(hello, hello + 12)), "2NEpo7TZRRrLZSi2U");
  CHECK_EQ(encode({0x00, 0x00, 0x28, 0x7f, 0xb4, 0xcd}), "11233QC4");
}

TEST(system_base58_matches_the_definition_and_decodes_its_own_texts) {
  std::mt19937_64 random(58);
  for (int round = 0; round < 4000; round++) {
    const size_t length = round < 1000 ? static_cast<size_t>(round) % 100 : random() % 300;
    Bytes bytes(length);
    const uint64_t kind = random() % 4;
    for (uint8_t& byte : bytes)
      byte = kind == 0 ? 0xff : kind == 1 ? uint8_t(random() % 8 == 0) : uint8_t(random());
    for (size_t zeros = random() % 5; zeros > 0 && zeros <= length; zeros--) bytes[zeros - 1] = 0;
    const std::string text = encode(bytes);
    CHECK_EQ(text, slow_encode(bytes));
    const Decoded back = decode(text);
    CHECK(back.decoded && back.bytes == bytes);
  }
}

TEST(system_base58_accepts_the_maximum_length) {
  for (const uint8_t byte : Bytes{0, 1, 255}) {
    const Bytes bytes(kBase58BytesMax, byte);
    const std::string text = encode(bytes);
    CHECK_EQ(text, slow_encode(bytes));
    const Decoded back = decode(text);
    CHECK(back.decoded && back.bytes == bytes);
  }
  CHECK_EQ(encode(Bytes(kBase58BytesMax, 255)).size(), size_t{5594});
  for (const char digit : {'1', '2', 'z'}) {
    const Decoded longest = decode(std::string(kBase58TextMax, digit));
    CHECK(longest.decoded);
    if (digit == 'z') CHECK_EQ(longest.bytes.size(), size_t{4101});
    CHECK(!decode(std::string(kBase58TextMax + 1, digit)).decoded);
  }
}

TEST(system_base58_refuses_every_other_character) {
  const std::string alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  CHECK_EQ(alphabet.size(), size_t{58});
  for (int byte = 0; byte < 256; byte++) {
    const bool known = byte != 0 && alphabet.find(static_cast<char>(byte)) != std::string::npos;
    for (const size_t at : {0, 1, 9, 10, 11, 29}) {
      std::string text(30, '5');
      text[at] = static_cast<char>(byte);
      CHECK_EQ(decode(text).decoded, known);
    }
  }
}
