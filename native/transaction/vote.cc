#include "transaction/vote.h"

#include <cstring>

namespace shredway {
namespace {

// Vote111111111111111111111111111111111111111
constexpr uint8_t kVoteProgram[kPublicKeyBytes] = {
    0x07, 0x61, 0x48, 0x1d, 0x35, 0x74, 0x74, 0xbb, 0x7c, 0x4d, 0x76, 0x24, 0xeb, 0xd3, 0xbd, 0xb3,
    0xd8, 0x35, 0x5e, 0x73, 0xd1, 0x10, 0x43, 0xfc, 0x0d, 0xa3, 0x53, 0x80, 0x00, 0x00, 0x00, 0x00};

}  // namespace

bool is_simple_vote(const uint8_t* bytes, const Transaction& transaction) {
  if (transaction.version == TransactionVersion::v1 || transaction.instruction_count != 1)
    return false;
  const uint8_t program = bytes[transaction.instructions_begin];
  return program < transaction.key_count &&
         std::memcmp(bytes + transaction.keys_begin + program * kPublicKeyBytes, kVoteProgram,
                     kPublicKeyBytes) == 0;
}

}  // namespace shredway
