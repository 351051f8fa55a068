#include "transaction/facts.h"

#include <algorithm>
#include <cstring>

#include "system/bytes.h"
#include "transaction/instructions.h"
#include "transaction/sanitize.h"

namespace shredway {
namespace {

using enum TransactionRefusal;

// ---- programs ----

// ComputeBudget111111111111111111111111111111
constexpr PublicKey kComputeBudgetProgram{
    0x03, 0x06, 0x46, 0x6f, 0xe5, 0x21, 0x17, 0x32, 0xff, 0xec, 0xad, 0xba, 0x72, 0xc3, 0x9b, 0xe7,
    0xbc, 0x8c, 0xe5, 0xbb, 0xc5, 0xf7, 0x12, 0x6b, 0x2c, 0x43, 0x9b, 0x3a, 0x40, 0x00, 0x00, 0x00};
// Vote, the loaders 1, 2, upgradeable and 4, and the precompiles for secp256k1 and Ed25519
// signatures. Other former builtin programs are ordinary programs now.
constexpr PublicKey kOtherBuiltins[] = {
    {0x07, 0x61, 0x48, 0x1d, 0x35, 0x74, 0x74, 0xbb, 0x7c, 0x4d, 0x76,
     0x24, 0xeb, 0xd3, 0xbd, 0xb3, 0xd8, 0x35, 0x5e, 0x73, 0xd1, 0x10,
     0x43, 0xfc, 0x0d, 0xa3, 0x53, 0x80, 0x00, 0x00, 0x00, 0x00},
    {0x02, 0xa8, 0xf6, 0x91, 0x4e, 0x88, 0xa1, 0x6b, 0xbd, 0x23, 0x95,
     0x85, 0x5f, 0x64, 0x04, 0xd9, 0xb4, 0xf4, 0x56, 0xb7, 0x82, 0x1b,
     0xb0, 0x14, 0x57, 0x49, 0x42, 0x8c, 0x00, 0x00, 0x00, 0x00},
    {0x02, 0xa8, 0xf6, 0x91, 0x4e, 0x88, 0xa1, 0x6e, 0x39, 0x5a, 0xe1,
     0x28, 0x94, 0x8f, 0xfa, 0x69, 0x56, 0x93, 0x37, 0x68, 0x18, 0xdd,
     0x47, 0x43, 0x52, 0x21, 0xf3, 0xc6, 0x00, 0x00, 0x00, 0x00},
    {0x02, 0xa8, 0xf6, 0x91, 0x4e, 0x88, 0xa1, 0xb0, 0xe2, 0x10, 0x15,
     0x3e, 0xf7, 0x63, 0xae, 0x2b, 0x00, 0xc2, 0xb9, 0x3d, 0x16, 0xc1,
     0x24, 0xd2, 0xc0, 0x53, 0x7a, 0x10, 0x04, 0x80, 0x00, 0x00},
    {0x05, 0x12, 0xb4, 0x11, 0x51, 0x51, 0xe3, 0x7a, 0xad, 0x0a, 0x8b,
     0xc5, 0xd3, 0x88, 0x2e, 0x7b, 0x7f, 0xda, 0x4c, 0xf3, 0xd2, 0xc0,
     0x28, 0xc8, 0xcf, 0x83, 0x36, 0x18, 0x00, 0x00, 0x00, 0x00},
    {0x04, 0xc6, 0xfc, 0x20, 0xf0, 0x50, 0xcc, 0xf0, 0x55, 0x84, 0xd7,
     0x21, 0x1c, 0x9f, 0x8c, 0xf5, 0x9e, 0xc1, 0x47, 0x85, 0xbb, 0x16,
     0x6a, 0x1e, 0x28, 0x30, 0xe8, 0x12, 0x20, 0x00, 0x00, 0x00},
    {0x03, 0x7d, 0x46, 0xd6, 0x7c, 0x93, 0xfb, 0xbe, 0x12, 0xf9, 0x42,
     0x8f, 0x83, 0x8d, 0x40, 0xff, 0x05, 0x70, 0x74, 0x49, 0x27, 0xf4,
     0x8a, 0x64, 0xfc, 0xca, 0x70, 0x44, 0x80, 0x00, 0x00, 0x00},
};
constexpr uint8_t kBuiltinFirstByteMax = 0x07;

bool equal(const uint8_t* key, const PublicKey& other) {
  return std::memcmp(key, other.data(), other.size()) == 0;
}

bool is_other_builtin(const uint8_t* key) {
  if (key[0] > kBuiltinFirstByteMax) return false;
  return std::any_of(std::begin(kOtherBuiltins), std::end(kOtherBuiltins),
                     [&](const PublicKey& builtin) { return equal(key, builtin); });
}

// ---- instruction data: a tag, then values, all little-endian; more may follow ----

constexpr uint32_t kSystemTransfer = 2;
constexpr uint32_t kSystemAdvanceNonce = 4;
constexpr uint32_t kSystemTransferWithSeed = 11;
constexpr size_t kSystemTagBytes = 4;
constexpr size_t kTransferBytes = 12;
// Tag, lamports, length of the seed, seed, owner. A seed above 32 bytes derives no address.
constexpr size_t kTransferWithSeedBytes = 4 + 8 + 8 + kPublicKeyBytes;
constexpr size_t kSeedLengthOffset = 12;
constexpr uint64_t kSeedBytesMax = 32;

constexpr uint8_t kBudgetHeap = 1, kBudgetUnits = 2, kBudgetPrice = 3, kBudgetLoadedBytes = 4;
constexpr size_t kBudgetTags = 5;

constexpr uint64_t kMicroLamports = 1'000'000;

uint64_t fee_of(uint64_t price, uint32_t units) {
  using Wide = unsigned __int128;
  const Wide fee = (static_cast<Wide>(price) * units + (kMicroLamports - 1)) / kMicroLamports;
  return fee > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(fee);
}

class FactsReader {
 public:
  FactsReader(const uint8_t* bytes, const Transaction& transaction, const AddressSet& tip_addresses,
              TransactionFacts& out, TransactionFault& fault)
      : bytes_(bytes), t_(transaction), tip_addresses_(tip_addresses), out_(out), fault_(fault) {}

  bool read() {
    InstructionWalk walk(bytes_, t_);
    Instruction instruction;
    for (bool is_first = true; walk.next(instruction); is_first = false) {
      const uint8_t* program = key(instruction.program);
      bool fine = true;
      if (equal(program, kSystemProgram)) {
        default_units_ += kBuiltinComputeUnits;
        if (is_first) read_nonce(instruction);
        fine = read_transfer(instruction);
      } else if (equal(program, kComputeBudgetProgram)) {
        default_units_ += kBuiltinComputeUnits;
        fine = t_.version == TransactionVersion::v1 || read_budget(instruction);
      } else {
        default_units_ += is_other_builtin(program) ? kBuiltinComputeUnits : kProgramComputeUnits;
      }
      if (!fine) return false;
    }
    finish_budget();
    return true;
  }

 private:
  const uint8_t* key(size_t place) const {
    return bytes_ + t_.keys_begin + place * kPublicKeyBytes;
  }
  bool is_signer(size_t place) const { return place < t_.required_signatures; }
  bool is_static_writable(size_t place) const {
    return place < t_.key_count && is_writable(t_, place);
  }
  bool refuse(TransactionRefusal refusal, const Instruction& instruction, uint64_t got) {
    fault_ = {refusal, instruction.begin, got};
    return false;
  }

  static uint32_t system_tag(const Instruction& instruction) {
    if (instruction.data_bytes < kSystemTagBytes) return UINT32_MAX;
    return load_u32(instruction.data);
  }

  void read_nonce(const Instruction& instruction) {
    if (system_tag(instruction) != kSystemAdvanceNonce || instruction.account_count == 0) return;
    if (!is_static_writable(instruction.accounts[0])) return;
    constexpr size_t kUsualAuthority = 2;
    const uint8_t* end = instruction.accounts + instruction.account_count;
    const bool is_usual = instruction.account_count > kUsualAuthority &&
                          is_signer(instruction.accounts[kUsualAuthority]);
    const uint8_t* authority = is_usual
                                   ? instruction.accounts + kUsualAuthority
                                   : std::find_if(instruction.accounts, end,
                                                  [&](uint8_t place) { return is_signer(place); });
    // No possible authority signs, so validators treat the lifetime as a blockhash.
    if (authority == end) return;
    out_.uses_nonce = true;
    out_.nonce_account = instruction.accounts[0];
    out_.nonce_authority = *authority;
  }

  bool read_transfer(const Instruction& instruction) {
    switch (system_tag(instruction)) {
      case kSystemTransfer:
        if (instruction.data_bytes < kTransferBytes || instruction.account_count < 2) return true;
        return add_tip(instruction, instruction.accounts[0], instruction.accounts[1]);
      case kSystemTransferWithSeed: {
        if (instruction.data_bytes < kTransferWithSeedBytes || instruction.account_count < 3)
          return true;
        const auto seed_bytes = load_u64(instruction.data + kSeedLengthOffset);
        if (seed_bytes > kSeedBytesMax ||
            instruction.data_bytes < kTransferWithSeedBytes + seed_bytes)
          return true;
        return add_tip(instruction, instruction.accounts[1], instruction.accounts[2]);
      }
      default:
        return true;
    }
  }

  // In both instructions the lamports follow the tag, and the source is the first account.
  bool add_tip(const Instruction& instruction, size_t signer, size_t recipient) {
    const size_t source = instruction.accounts[0];
    if (!is_signer(signer) || !is_static_writable(source) || !is_static_writable(recipient))
      return true;
    if (!tip_addresses_.contains(key(recipient)) || tip_addresses_.contains(key(source)))
      return true;
    const auto lamports = load_u64(instruction.data + kSystemTagBytes);
    if (__builtin_add_overflow(out_.tip_lamports, lamports, &out_.tip_lamports))
      return refuse(tips_overflow, instruction, 0);
    return true;
  }

  bool read_budget(const Instruction& instruction) {
    const uint8_t tag = instruction.data_bytes == 0 ? 0 : instruction.data[0];
    if (tag == 0 || tag >= kBudgetTags) return refuse(compute_budget_unknown, instruction, tag);
    const size_t value_bytes = tag == kBudgetPrice ? sizeof(uint64_t) : sizeof(uint32_t);
    if (instruction.data_bytes < 1 + value_bytes)
      return refuse(compute_budget_unknown, instruction, tag);
    if (is_set_[tag]) return refuse(compute_budget_repeated, instruction, tag);
    is_set_[tag] = true;
    if (tag == kBudgetPrice) {
      price_ = load_u64(instruction.data + 1);
      return true;
    }
    const auto value = load_u32(instruction.data + 1);
    if (tag == kBudgetUnits) units_ = value;
    if (tag == kBudgetHeap && !is_heap_size(value))
      return refuse(heap_size_invalid, instruction, value);
    if (tag == kBudgetLoadedBytes && value == 0) return refuse(loaded_bytes_zero, instruction, 0);
    return true;
  }

  void finish_budget() {
    if (t_.version == TransactionVersion::v1) {
      const TransactionConfig config = read_config(bytes_, t_);
      out_.compute_unit_limit = std::min(config.compute_unit_limit, kComputeUnitsMax);
      out_.priority_fee_lamports = config.priority_fee_lamports;
      return;
    }
    out_.compute_unit_limit =
        std::min(is_set_[kBudgetUnits] ? units_ : default_units_, kComputeUnitsMax);
    out_.compute_unit_price = price_;
    out_.priority_fee_lamports = fee_of(price_, out_.compute_unit_limit);
  }

  const uint8_t* bytes_;
  const Transaction& t_;
  const AddressSet& tip_addresses_;
  TransactionFacts& out_;
  TransactionFault& fault_;
  uint32_t default_units_ = 0;  // at most 64 instructions
  uint32_t units_ = 0;
  uint64_t price_ = 0;
  bool is_set_[kBudgetTags] = {};
};

bool has_dont_front_key(const uint8_t* bytes, const Transaction& t,
                        const KeyRanges& dont_front_keys) {
  for (size_t i = 0; i < t.key_count; i++)
    if (dont_front_keys.contains(bytes + t.keys_begin + i * kPublicKeyBytes)) return true;
  return false;
}

}  // namespace

bool read_facts(const uint8_t* bytes, const Transaction& transaction,
                const AddressSet& tip_addresses, const KeyRanges& dont_front_keys,
                TransactionFacts& out, TransactionFault& fault) {
  out = {};
  if (!FactsReader(bytes, transaction, tip_addresses, out, fault).read()) return false;
  out.has_dont_front_key = has_dont_front_key(bytes, transaction, dont_front_keys);
  return true;
}

}  // namespace shredway
