// Base58 (Bitcoin's alphabet, without check digits): Solana's text form of keys, signatures and, in
// older clients, transactions.
//
// Used on the event loop for each request; no allocation. The cost grows with the square of the
// length, so the length is bounded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shredway {

inline constexpr size_t kBase58BytesMax = 4096;  // maximum of decoded bytes: a v1 transaction
// Maximum length of a text: 4,096 bytes need at most 5,594 characters.
inline constexpr size_t kBase58TextMax = 5600;

// Writes the text of `length` <= kBase58BytesMax bytes and returns its length; `out` must have
// space for kBase58TextMax characters.
size_t base58_encode(const uint8_t* bytes, size_t length, char* out);
// Writes the bytes of a text; `out` must have space for as many bytes as the text has characters.
// Returns false if the text has a character outside the alphabet or more than kBase58TextMax.
bool base58_decode(const char* text, size_t length, uint8_t* out, size_t& out_bytes);

}  // namespace shredway
