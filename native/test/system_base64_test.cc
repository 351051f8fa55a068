#include "system/base64.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"

namespace {

using namespace shredway;
using Base64Bytes = std::vector<uint8_t>;

const std::string kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

Base64Bytes base64_bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string to_base64(const Base64Bytes& bytes) {
  const size_t length = base64_text_length(bytes.size());
  const std::unique_ptr<char[]> text(new char[length]);
  base64_encode(bytes.data(), bytes.size(), text.get());
  return {text.get(), length};
}

struct Base64Result {
  bool decoded;
  Base64Bytes bytes;
};
// Both buffers have exactly their size, so that the sanitizer detects an access beyond them.
Base64Result from_base64(const std::string& text, size_t out_max) {
  const std::unique_ptr<char[]> copy(new char[text.size()]);
  std::copy(text.begin(), text.end(), copy.get());
  const std::unique_ptr<uint8_t[]> buffer(new uint8_t[out_max]);
  size_t count = 0;
  if (!base64_decode({copy.get(), text.size()}, buffer.get(), out_max, count)) return {false, {}};
  CHECK(count <= out_max);
  return {true, Base64Bytes(buffer.get(), buffer.get() + count)};
}
bool is_base64(const std::string& text) { return from_base64(text, text.size()).decoded; }

// Encodes by the definition, bit by bit.
std::string slow_base64(const Base64Bytes& bytes) {
  std::string text;
  for (size_t bit = 0; bit < 8 * bytes.size(); bit += 6) {
    unsigned digit = 0;
    for (size_t at = bit; at < bit + 6; at++) {
      const unsigned byte = at / 8 < bytes.size() ? bytes[at / 8] : 0;
      digit = digit << 1 | (byte >> (7 - at % 8) & 1);
    }
    text += kBase64Alphabet[digit];
  }
  while (text.size() % 4 != 0) text += '=';
  return text;
}

}  // namespace

TEST(system_base64_known_texts) {
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xfb\xff\xbf", "+/+/"},
  };
  for (const auto& [plain, text] : vectors) {
    const Base64Bytes bytes = base64_bytes_of(plain);
    CHECK_EQ(to_base64(bytes), text);
    const Base64Result back = from_base64(text, bytes.size());
    CHECK(back.decoded && back.bytes == bytes);
  }
}

TEST(system_base64_matches_the_definition_and_decodes_its_own_texts) {
  std::mt19937_64 random(64);
  for (size_t round = 0; round < 3030; round++) {
    Base64Bytes bytes(round % 101);
    const uint64_t kind = random() % 4;
    for (uint8_t& byte : bytes)
      byte = kind == 0 ? 0xff : kind == 1 ? uint8_t{0} : static_cast<uint8_t>(random());
    const std::string text = to_base64(bytes);
    CHECK_EQ(text.size(), base64_text_length(bytes.size()));
    CHECK_EQ(text, slow_base64(bytes));
    const Base64Result back = from_base64(text, bytes.size());
    CHECK(back.decoded && back.bytes == bytes);
  }
}

TEST(system_base64_refuses_more_bytes_than_the_buffer_holds) {
  for (size_t length = 1; length <= 20; length++) {
    const std::string text = to_base64(Base64Bytes(length, 0x5a));
    CHECK(from_base64(text, length).decoded);
    for (size_t less = 0; less < length; less++) CHECK(!from_base64(text, less).decoded);
  }
}

TEST(system_base64_refuses_wrong_padding) {
  for (const char* text : {"Zg", "Zg=", "Zg===", "Z===", "====", "=", "==", "Zm8", "Zm8==", "Zm9v=",
                           "Zm9v====", "Zg==Zg==", "Zm8=Zm9v", "Z=g=", "=Zg=", "Zg=v", "Zm9vY"})
    CHECK(!is_base64(text));
}

// Only one text of the same bytes is accepted.
TEST(system_base64_refuses_bits_behind_the_last_byte) {
  size_t accepted = 0;
  for (const char digit : kBase64Alphabet) {
    accepted += is_base64(std::string("Z") + digit + "==");
    accepted += is_base64(std::string("Zm") + digit + "=");
    CHECK(is_base64(std::string("Zm9") + digit));
  }
  CHECK_EQ(accepted, size_t{4 + 16});
  CHECK(!is_base64("Zh=="));
  CHECK(!is_base64("Zm9="));
}

TEST(system_base64_refuses_every_other_character) {
  for (int byte = 0; byte < 256; byte++) {
    const auto character = static_cast<char>(byte);
    const bool is_known = kBase64Alphabet.find(character) != std::string::npos;
    for (const size_t at : {0, 1, 2, 3, 4, 6}) {
      std::string text(8, 'A');
      text[at] = character;
      CHECK_EQ(is_base64(text), is_known);
    }
    std::string last(8, 'A');
    last[7] = character;
    CHECK_EQ(is_base64(last), is_known || character == '=');
  }
  for (const char* text : {"Zm9v ", " Zm9v", "Zm9v\n", "Zm 9", "-_-_", "Zm9v\r\n\r\n"})
    CHECK(!is_base64(text));
}

// Only the canonical text of bytes is decoded.
TEST(system_base64_accepts_canonical_texts_only) {
  std::mt19937_64 random(4648);
  size_t accepted = 0;
  for (int round = 0; round < 20'000; round++) {
    std::string text(random() % 4 == 0 ? random() % 13 : 4 * (random() % 4), 'A');
    for (char& character : text)
      character = random() % 40 == 0 ? '=' : kBase64Alphabet[random() % 64];
    for (size_t padding = random() % 3; padding > 0 && padding <= text.size(); padding--)
      text[text.size() - padding] = '=';
    const Base64Result back = from_base64(text, text.size());
    accepted += back.decoded;
    if (back.decoded) CHECK_EQ(slow_base64(back.bytes), text);
  }
  CHECK(accepted > 1000);
}
