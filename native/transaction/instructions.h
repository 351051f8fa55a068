// Instructions: iterates over the instructions of a transaction in place, for all versions.
//
// For the sanitiser and the facts reader. The transaction must have been parsed (wire.h), so every
// part lies inside its bytes; the sanitiser checks the indexes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/ed25519.h"
#include "transaction/wire.h"

namespace shredway {

inline constexpr PublicKey kSystemProgram{};

struct Instruction {
  uint8_t program;          // index of its key
  const uint8_t* accounts;  // indexes, one byte each
  uint16_t account_count;
  const uint8_t* data;
  uint16_t data_bytes;
  uint16_t begin;  // offset of its first byte (v1: of its header)
};

class InstructionWalk {
 public:
  // `bytes` must be those that were parsed as `transaction`; both must outlive the walk.
  InstructionWalk(const uint8_t* bytes, const Transaction& transaction);
  // Returns false after the last instruction.
  bool next(Instruction& out);

 private:
  void next_v1(Instruction& out);
  void next_legacy_or_v0(Instruction& out);
  uint16_t read_count();

  const uint8_t* bytes_;
  size_t left_;
  size_t at_;          // next instruction, or next header (v1)
  size_t payload_at_;  // v1: next payload
  size_t end_;
  bool is_v1_;
};

}  // namespace shredway
