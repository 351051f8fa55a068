// Base58 (Bitcoin's alphabet, without check digits): how the network writes keys, signatures and,
// by old habit, transactions.
//
// Called on the event loop for each request; no allocation. The cost grows with the square of the
// length, which is therefore bounded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shredway {

inline constexpr size_t kBase58BytesMax = 4096;  // of what is encoded: a v1 transaction
// Of a text: 4,096 bytes need at most 5,594.
inline constexpr size_t kBase58TextMax = 5600;

// Writes the text of `length` <= kBase58BytesMax bytes and returns how many characters it has;
// `out` has room for kBase58TextMax.
size_t base58_encode(const uint8_t* bytes, size_t length, char* out);
// Writes the bytes of a text; `out` has room for as many bytes as the text has characters. False
// for a character outside the alphabet and for more than kBase58TextMax of them.
bool base58_decode(const char* text, size_t length, uint8_t* out, size_t& out_bytes);

}  // namespace shredway
