// Instructions: a walk over those of a transaction, in place, whatever its version.
//
// For the sanitiser and the reader of facts. The transaction has parsed (wire.h), so every part
// lies inside its bytes; what the indexes point at is the sanitiser's question.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transaction/wire.h"

namespace shredway {

struct Instruction {
  uint8_t program;          // place of its key
  const uint8_t* accounts;  // places, a byte each
  uint16_t account_count;
  const uint8_t* data;
  uint16_t data_bytes;
  uint16_t begin;  // offset of its first byte (v1: of its header)
};

class InstructionWalk {
 public:
  // `bytes` must be the ones that parsed as `transaction`; both outlive the walk.
  InstructionWalk(const uint8_t* bytes, const Transaction& transaction);
  // False behind the last one.
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
