// Reed-Solomon over GF(2^8) as the network's shreds use it: parity of a FEC set, and recovery from
// any 32 of its 64 shards.
//
// Called by the shredder (parity), the deshredder (recovery) and tests. Codeword layout and matrix
// as reed-solomon-erasure 6.0 (galois_8): polynomial 0x11D, systematic matrix
// V * inverse(top k rows of V) with V[r][c] = r^c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shredway {

// How shards are multiplied: plain C++, AVX2 byte shuffles, or AVX-512 with GFNI. All give the same
// bytes; the processor decides at the first call.
enum class ReedSolomonPath : uint8_t { portable, avx2, gfni };
ReedSolomonPath reed_solomon_path();
// Tests and benches: use exactly this one; false, and nothing changed, when the processor lacks it.
bool reed_solomon_use(ReedSolomonPath path);

class ReedSolomon {
 public:
  // 1 <= data, code and data + code <= 255.
  ReedSolomon(size_t data, size_t code);
  size_t data_count() const { return data_; }
  size_t code_count() const { return code_; }
  // Computes all code shards from all data shards, each of shard_bytes. No shard may overlap
  // another. Thread-safe.
  void encode(const uint8_t* const* data_shards, uint8_t* const* code_shards,
              size_t shard_bytes) const;
  // Computes every shard i of data_count() + code_count() (data first) for which present[i] is
  // false, from those for which it is true. No shard may overlap another. False, and nothing
  // written, when fewer than data_count() are present. Thread-safe, allocates nothing.
  bool recover(uint8_t* const* shards, const bool* present, size_t shard_bytes) const;

 private:
  size_t data_, code_;
  std::vector<uint8_t> parity_;  // weights: code_ rows x data_ columns
};

}  // namespace shredway
