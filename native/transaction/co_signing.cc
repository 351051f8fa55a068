#include "transaction/co_signing.h"

#include <algorithm>
#include <cstring>

#include "transaction/instructions.h"
#include "transaction/sanitize.h"

namespace shredway {
namespace {

// ---- names ----------------------------------------------------------------------------------

constexpr RefusalText kCoSigningTexts[kCoSigningRefusalCount] = {
#define X(name, expected, got) {expected, got},
    SHREDWAY_CO_SIGNING_REFUSALS(X)
#undef X
};

const RefusalText& text_of(CoSigningRefusal refusal) {
  return kCoSigningTexts[static_cast<size_t>(refusal)];
}

// ---- the advance ----------------------------------------------------------------------------

// SysvarRecentB1ockHashes11111111111111111111
constexpr PublicKey kRecentBlockhashes{
    0x06, 0xa7, 0xd5, 0x17, 0x19, 0x2c, 0x56, 0x8e, 0xe0, 0x8a, 0x84, 0x5f, 0x73, 0xd2, 0x97, 0x88,
    0xcf, 0x03, 0x5c, 0x31, 0x45, 0xb2, 0x1a, 0xb3, 0x44, 0xd8, 0x06, 0x2e, 0xa9, 0x40, 0x00, 0x00};
constexpr uint8_t kAdvanceData[] = {4, 0, 0, 0};
constexpr size_t kAdvanceAccounts = 3;

// ---- the check ------------------------------------------------------------------------------

// Precondition: the inspector accepted the transaction, so every program is a static key and no
// static key occurs twice. The authority therefore has at most one index.
class Check {
 public:
  Check(const uint8_t* bytes, const Transaction& transaction, CoSigningFault& fault)
      : bytes_(bytes), t_(transaction), fault_(fault) {}

  bool passes(const PublicKey& nonce_account, const PublicKey& authority, CoSigningPlace& out) {
    if (t_.version == TransactionVersion::v1) return refuse(version_1, 0);
    InstructionWalk walk(bytes_, t_);
    Instruction advance;
    if (!walk.next(advance)) return refuse(not_an_advance, t_.instructions_begin);
    if (!check_advance(advance) || !check_nonce_account(advance, nonce_account) ||
        !check_authority(advance, authority))
      return false;
    const size_t place = advance.accounts[2];
    if (!check_other_instructions(walk, place) || !check_lookup_tables(authority) ||
        !check_signatures(place))
      return false;
    out = {static_cast<uint16_t>(signature_offset(place)), t_.message_begin, t_.message_end,
           t_.lifetime_begin};
    return true;
  }

 private:
  using enum CoSigningRefusal;

  bool refuse(CoSigningRefusal refusal, size_t offset, uint64_t got = 0) {
    fault_.refusal = refusal;
    fault_.offset = static_cast<uint16_t>(offset);
    fault_.got = got;
    return false;
  }
  bool refuse_at(const uint8_t* at, CoSigningRefusal refusal, uint64_t got = 0) {
    return refuse(refusal, static_cast<size_t>(at - bytes_), got);
  }
  bool is_key(size_t place, const PublicKey& key) const {
    return place < t_.key_count && std::memcmp(bytes_ + t_.keys_begin + place * kPublicKeyBytes,
                                               key.data(), key.size()) == 0;
  }
  size_t signature_offset(size_t place) const {
    return t_.signatures_begin + place * kTransactionSignatureBytes;
  }
  bool is_missing(size_t place) const {
    const uint8_t* signature = bytes_ + signature_offset(place);
    return std::all_of(signature, signature + kTransactionSignatureBytes,
                       [](uint8_t byte) { return byte == 0; });
  }

  bool check_advance(const Instruction& advance) {
    const bool begins = advance.data_bytes >= sizeof kAdvanceData &&
                        std::memcmp(advance.data, kAdvanceData, sizeof kAdvanceData) == 0;
    if (!is_key(advance.program, kSystemProgram) || !begins)
      return refuse(not_an_advance, advance.begin);
    if (advance.data_bytes != sizeof kAdvanceData)
      return refuse_at(advance.data, advance_data, advance.data_bytes);
    if (advance.account_count != kAdvanceAccounts ||
        !is_key(advance.accounts[1], kRecentBlockhashes))
      return refuse_at(advance.accounts, advance_accounts, advance.account_count);
    return true;
  }

  bool check_nonce_account(const Instruction& advance, const PublicKey& nonce_account) {
    const uint8_t* place = advance.accounts;
    if (*place >= t_.key_count) return refuse_at(place, nonce_account_loaded, *place);
    if (!is_key(*place, nonce_account)) return refuse_at(place, other_nonce_account, *place);
    if (!is_writable(t_, *place)) return refuse_at(place, nonce_account_readonly, *place);
    return true;
  }

  bool check_authority(const Instruction& advance, const PublicKey& authority) {
    const uint8_t* place = advance.accounts + 2;
    if (*place >= t_.key_count) return refuse_at(place, authority_loaded, *place);
    if (!is_key(*place, authority)) return refuse_at(place, other_authority, *place);
    if (*place >= t_.required_signatures) return refuse_at(place, authority_not_signer, *place);
    if (*place == 0) return refuse_at(place, authority_pays_fees);
    if (is_writable(t_, *place)) return refuse_at(place, authority_writable, *place);
    // Keys that no nonce has but that bytes can name: its own authority, the sysvar, the program.
    if (std::find(advance.accounts, place, *place) != place || advance.program == *place)
      return refuse(authority_used_elsewhere, advance.begin, 0);
    return true;
  }

  bool check_other_instructions(InstructionWalk& walk, size_t place) {
    Instruction instruction;
    for (size_t number = 1; walk.next(instruction); number++) {
      const uint8_t* end = instruction.accounts + instruction.account_count;
      const uint8_t* found = std::find(instruction.accounts, end, place);
      if (found != end) return refuse_at(found, authority_used_elsewhere, number);
      if (instruction.program == place)
        return refuse(authority_used_elsewhere, instruction.begin, number);
    }
    return true;
  }

  // A lookup table with the authority's address cannot exist, so no valid transaction needs it.
  bool check_lookup_tables(const PublicKey& authority) {
    size_t at = t_.lookups_begin;
    for (size_t i = 0; i < t_.lookup_count; i++) {
      if (std::memcmp(bytes_ + at, authority.data(), authority.size()) == 0)
        return refuse(authority_as_table, at, i);
      at += kPublicKeyBytes;
      for (int list = 0; list < 2; list++) {
        uint16_t count = 0;
        size_t used = 0;
        (void)parse_compact_u16(bytes_ + at, t_.message_end - at, count, used);  // parsed before
        at += used + count;
      }
    }
    return true;
  }

  bool check_signatures(size_t authority) {
    if (!is_missing(authority))
      return refuse(nothing_missing, signature_offset(authority), authority);
    for (size_t place = 0; place < t_.signature_count; place++)
      if (place != authority && is_missing(place))
        return refuse(other_signature_missing, signature_offset(place), place);
    return true;
  }

  const uint8_t* bytes_;
  const Transaction& t_;
  CoSigningFault& fault_;
};

}  // namespace

const char* co_signing_refusal_expected(CoSigningRefusal refusal) {
  return text_of(refusal).expected;
}
const char* co_signing_refusal_got(CoSigningRefusal refusal) { return text_of(refusal).got; }

bool CoSigningCheck::place(const uint8_t* bytes, size_t length, const PublicKey& nonce_account,
                           const PublicKey& authority, CoSigningPlace& out,
                           CoSigningFault& fault) const {
  Transaction transaction{};
  TransactionFacts facts;
  fault = {};
  if (!inspector_.inspect(bytes, length, transaction, facts, fault.transaction)) {
    fault.refusal = CoSigningRefusal::transaction_refused;
    fault.offset = fault.transaction.offset;
    fault.got = fault.transaction.got;
    return false;
  }
  return Check(bytes, transaction, fault).passes(nonce_account, authority, out);
}

}  // namespace shredway
