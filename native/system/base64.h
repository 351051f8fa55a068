// Base64 (RFC 4648, section 4): the text form of transactions in JSON.
//
// Only the canonical form with padding: every sequence of bytes has exactly one text. No
// allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shredway {

constexpr size_t base64_text_length(size_t bytes) { return (bytes + 2) / 3 * 4; }

// Writes base64_text_length(length) characters.
void base64_encode(const uint8_t* bytes, size_t length, char* out);
// Writes at most `out_max` bytes; returns false if the text is not canonical or longer.
bool base64_decode(std::string_view text, uint8_t* out, size_t out_max, size_t& out_bytes);

}  // namespace shredway
