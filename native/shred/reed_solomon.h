// Reed-Solomon code over GF(2^8) as Solana uses it for shreds: parity of a FEC set, and recovery
// from any 32 of its 64 shards.
//
// Used by the shredder (parity), the deshredder (recovery) and tests. Codeword layout and matrix as
// in reed-solomon-erasure 6.0 (galois_8): polynomial 0x11D, systematic matrix V * inverse(top k
// rows of V) with V[r][c] = r^c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shredway {

// Implementations of the multiplication: plain C++, AVX2 byte shuffles, or AVX-512 with GFNI. All
// give the same bytes; the first call selects one by the processor's features.
enum class ReedSolomonPath : uint8_t { portable, avx2, gfni };
ReedSolomonPath reed_solomon_path();
// Selects an implementation, for tests and benchmarks. Returns false without effect if the
// processor does not support it.
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
  // false, from those for which it is true. No shard may overlap another. Returns false and writes
  // nothing if fewer than data_count() are present. Thread-safe, allocates nothing.
  bool recover(uint8_t* const* shards, const bool* present, size_t shard_bytes) const;

 private:
  size_t data_, code_;
  std::vector<uint8_t> parity_;  // weights: code_ rows x data_ columns
};

}  // namespace shredway
