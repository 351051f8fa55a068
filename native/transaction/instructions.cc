#include "transaction/instructions.h"

namespace shredway {
namespace {

constexpr size_t kV1HeaderBytes = 4;

}  // namespace

InstructionWalk::InstructionWalk(const uint8_t* bytes, const Transaction& transaction)
    : bytes_(bytes),
      left_(transaction.instruction_count),
      at_(transaction.instructions_begin),
      payload_at_(at_ + left_ * kV1HeaderBytes),
      end_(transaction.message_end),
      is_v1_(transaction.version == TransactionVersion::v1) {}

bool InstructionWalk::next(Instruction& out) {
  if (left_ == 0) return false;
  left_--;
  out.begin = static_cast<uint16_t>(at_);
  if (is_v1_) next_v1(out);
  else next_legacy_or_v0(out);
  return true;
}

void InstructionWalk::next_v1(Instruction& out) {
  const uint8_t* header = bytes_ + at_;
  out.program = header[0];
  out.account_count = header[1];
  out.data_bytes = static_cast<uint16_t>(header[2] | header[3] << 8);
  out.accounts = bytes_ + payload_at_;
  out.data = out.accounts + out.account_count;
  at_ += kV1HeaderBytes;
  payload_at_ += size_t{out.account_count} + out.data_bytes;
}

void InstructionWalk::next_legacy_or_v0(Instruction& out) {
  out.program = bytes_[at_++];
  out.account_count = read_count();
  out.accounts = bytes_ + at_;
  at_ += out.account_count;
  out.data_bytes = read_count();
  out.data = bytes_ + at_;
  at_ += out.data_bytes;
}

uint16_t InstructionWalk::read_count() {
  if (bytes_[at_] < 0x80) return bytes_[at_++];
  uint16_t count = 0;
  size_t used = 0;
  (void)parse_compact_u16(bytes_ + at_, end_ - at_, count, used);  // parsed before
  at_ += used;
  return count;
}

}  // namespace shredway
