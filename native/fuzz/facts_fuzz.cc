// Fuzz target: any bytes for the inspector. The facts of an accepted transaction keep every
// promise; a refusal has a name and an offset and is repeatable.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "system/base58.h"
#include "transaction/inspector.h"
#include "transaction/instructions.h"
#include "transaction/sanitize.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

PublicKey key_of(uint8_t byte) {
  PublicKey key;
  key.fill(byte);
  return key;
}

// Keys that the corpus and mutations of its bytes reach easily.
const TransactionInspector& inspector() {
  static const PublicKey tips[] = {key_of(0x62), key_of(0xa4), key_of(0xa5), key_of(0xff)};
  static const KeyRange ranges[] = {{key_of(0x63), key_of(0x64)}, {key_of(0xf0), key_of(0xfe)}};
  static const TransactionInspector made(tips, ranges);
  return made;
}

struct Answer {
  bool accepted;
  Transaction transaction;
  TransactionFacts facts;
  TransactionFault fault;
};

// A copy of exactly the requested size, so that a read beyond it is detected.
Answer inspect(const uint8_t* bytes, size_t length) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[length]);
  if (length) std::memcpy(copy.get(), bytes, length);
  Answer answer{};
  answer.accepted =
      inspector().inspect(copy.get(), length, answer.transaction, answer.facts, answer.fault);
  return answer;
}

// Number of accounts: static keys and those that lookups load.
size_t count_accounts(const uint8_t* bytes, const Transaction& t) {
  size_t accounts = t.key_count;
  size_t at = t.lookups_begin;
  for (size_t i = 0; i < t.lookup_count; i++) {
    at += kPublicKeyBytes;
    for (int list = 0; list < 2; list++) {
      uint16_t count = 0;
      size_t used = 0;
      require(parse_compact_u16(bytes + at, t.message_end - at, count, used) ==
              ParseResult::complete);
      at += used + count;
      accounts += count;
    }
  }
  return accounts;
}

void check_form(const uint8_t* bytes, const Transaction& t) {
  require(t.signature_count >= 1 && t.signature_count <= 12);
  require(t.signature_count == t.required_signatures && t.key_count >= t.signature_count);
  require(t.readonly_signed < t.required_signatures);
  require(size_t{t.required_signatures} + t.readonly_unsigned <= t.key_count);
  require(t.instruction_count <= 64 && (t.config_mask & ~31u) == 0);
  const size_t accounts = count_accounts(bytes, t);
  require(accounts <= 256);
  const uint8_t* keys = bytes + t.keys_begin;
  for (size_t i = 0; i < t.key_count; i++)
    for (size_t j = 0; j < i; j++) require(std::memcmp(keys + i * 32, keys + j * 32, 32) != 0);
  InstructionWalk walk(bytes, t);
  Instruction instruction;
  size_t instructions = 0;
  while (walk.next(instruction)) {
    instructions++;
    require(instruction.program > 0 && instruction.program < t.key_count);
    require(instruction.account_count <= 255);
    for (size_t i = 0; i < instruction.account_count; i++)
      require(instruction.accounts[i] < accounts);
    require(instruction.data >= bytes &&
            instruction.data + instruction.data_bytes <= bytes + t.bytes);
  }
  require(instructions == t.instruction_count);
}

void check_facts(const uint8_t* bytes, const Transaction& t, const TransactionFacts& facts) {
  require(facts.compute_unit_limit <= kComputeUnitsMax);
  if (facts.uses_nonce) {
    require(facts.nonce_account < t.key_count && is_writable(t, facts.nonce_account));
    require(facts.nonce_authority < t.required_signatures);
    require(t.instruction_count > 0);
  }
  bool has_dont_front_key = false;
  bool has_tip_key = false;
  for (size_t i = 0; i < t.key_count; i++) {
    const uint8_t* key = bytes + t.keys_begin + i * kPublicKeyBytes;
    const auto between = [&](uint8_t first, uint8_t last) {
      return std::memcmp(key, key_of(first).data(), 32) >= 0 &&
             std::memcmp(key, key_of(last).data(), 32) <= 0;
    };
    has_dont_front_key |= between(0x63, 0x64) || between(0xf0, 0xfe);
    for (const uint8_t byte : {uint8_t{0x62}, uint8_t{0xa4}, uint8_t{0xa5}, uint8_t{0xff}})
      has_tip_key |= std::memcmp(key, key_of(byte).data(), 32) == 0;
  }
  require(facts.has_dont_front_key == has_dont_front_key);
  require(facts.tip_lamports == 0 || has_tip_key);
}

// Any bytes survive encoding and decoding, and any valid text decoding and encoding.
void check_base58(const uint8_t* bytes, size_t length) {
  static char text[kBase58TextMax], again[kBase58TextMax];
  if (length <= kBase58BytesMax) {
    const size_t text_length = base58_encode(bytes, length, text);
    const std::unique_ptr<uint8_t[]> back(new uint8_t[text_length]);
    size_t count = 0;
    require(base58_decode(text, text_length, back.get(), count));
    require(count == length && std::memcmp(back.get(), bytes, length) == 0);
  }
  const std::unique_ptr<uint8_t[]> decoded(new uint8_t[length]);
  size_t count = 0;
  const char* characters = reinterpret_cast<const char*>(bytes);
  if (!base58_decode(characters, length, decoded.get(), count)) return;
  require(count <= length);
  if (count > kBase58BytesMax) return;
  require(base58_encode(decoded.get(), count, again) == length);
  require(std::memcmp(again, characters, length) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  if (length > 0) check_base58(bytes, length);
  const Answer answer = inspect(bytes, length);
  const Answer same = inspect(bytes, length);
  require(answer.accepted == (answer.fault.refusal == TransactionRefusal::accepted));
  require(same.fault.refusal == answer.fault.refusal && same.fault.offset == answer.fault.offset);
  if (!answer.accepted) {
    require(answer.fault.offset <= length);
    return 0;
  }
  require(answer.transaction.bytes == length);
  check_form(bytes, answer.transaction);
  check_facts(bytes, answer.transaction, answer.facts);
  // With one byte more or less it is not the same transaction.
  require(!inspect(bytes, length - 1).accepted);
  const std::unique_ptr<uint8_t[]> longer(new uint8_t[length + 1]());
  std::memcpy(longer.get(), bytes, length);
  require(!inspect(longer.get(), length + 1).accepted);
  return 0;
}
