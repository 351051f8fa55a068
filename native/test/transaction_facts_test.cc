// Tips, compute budget, fees, nonces and don't-front addresses of constructed transactions.
#include <cstring>

#include "check.h"
#include "transaction/facts.h"
#include "transaction/sanitize.h"
#include "transaction_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

constexpr uint64_t kU64Max = UINT64_MAX;

// Indexes of the keys in every transaction of this file: 0 payer, 1 second signer, 2 read-only
// signer, 3 writable, 4 tip, 5 second tip, 6 writable, 7 System, 8 ComputeBudget, 9 Vote, 10
// another program.
constexpr uint8_t kPayer = 0, kSigner = 1, kReadonlySigner = 2, kOther = 3, kTip = 4, kTip2 = 5,
                  kNonce = 6, kSystem = 7, kBudget = 8, kVote = 9, kProgram = 10;
constexpr uint8_t kKeys = 11;
const PublicKey kTipKey = key_of(0xa4), kTipKey2 = key_of(0xa5), kReadonlyTip = key_of(0xaa);

PublicKey program_key(uint8_t place) {
  constexpr PublicKey budget{0x03, 0x06, 0x46, 0x6f, 0xe5, 0x21, 0x17, 0x32, 0xff, 0xec, 0xad,
                             0xba, 0x72, 0xc3, 0x9b, 0xe7, 0xbc, 0x8c, 0xe5, 0xbb, 0xc5, 0xf7,
                             0x12, 0x6b, 0x2c, 0x43, 0x9b, 0x3a, 0x40, 0x00, 0x00, 0x00};
  constexpr PublicKey vote{0x07, 0x61, 0x48, 0x1d, 0x35, 0x74, 0x74, 0xbb, 0x7c, 0x4d, 0x76,
                           0x24, 0xeb, 0xd3, 0xbd, 0xb3, 0xd8, 0x35, 0x5e, 0x73, 0xd1, 0x10,
                           0x43, 0xfc, 0x0d, 0xa3, 0x53, 0x80, 0x00, 0x00, 0x00, 0x00};
  switch (place) {
    case kSystem:
      return key_of(0);
    case kBudget:
      return budget;
    case kVote:
      return vote;
    case kProgram:
      return kReadonlyTip;  // read-only: it cannot receive lamports
    default:
      return key_of(static_cast<uint8_t>(0xa0 + place));
  }
}

struct Made {
  TransactionVersion version = TransactionVersion::legacy;
  std::vector<TestInstruction> instructions;
  uint32_t config_mask = 0;
  Bytes config;
};

Bytes write(const Made& made) {
  TestTransaction parts;
  parts.version = made.version;
  parts.signatures = parts.required_signatures = 3;
  parts.readonly_signed = 1;
  parts.readonly_unsigned = 4;
  parts.keys = kKeys;
  parts.config_mask = made.config_mask;
  parts.instructions = made.instructions;
  if (made.version == TransactionVersion::v0) parts.lookups = {{0x70, {1, 2}, {3}}};
  WrittenTransaction written = write_transaction(parts);
  for (uint8_t place = 0; place < kKeys; place++) {
    const PublicKey key = program_key(place);
    std::memcpy(written.bytes.data() + written.layout.keys_begin + place * 32, key.data(), 32);
  }
  std::copy(made.config.begin(), made.config.end(),
            written.bytes.begin() + written.layout.config_begin);
  return written.bytes;
}

struct Read {
  std::string refusal;
  TransactionFacts facts;
};

Read read(const Made& made, const std::vector<KeyRange>& ranges = {}) {
  static const std::vector<PublicKey> tips{kTipKey, kTipKey2, kReadonlyTip};
  static const AddressSet addresses(tips);
  const Bytes bytes = write(made);
  Transaction transaction{};
  TransactionFault fault;
  CHECK(parse_transaction(bytes.data(), bytes.size(), transaction) == ParseResult::complete);
  CHECK(sanitize(bytes.data(), transaction, fault));
  Read out;
  (void)read_facts(bytes.data(), transaction, addresses, KeyRanges(ranges), out.facts, fault);
  out.refusal = transaction_refusal_name(fault.refusal);
  return out;
}
Read read(TransactionVersion version, std::vector<TestInstruction> instructions) {
  return read(Made{version, std::move(instructions), 0, {}});
}
uint64_t tip_of(TransactionVersion version, std::vector<TestInstruction> instructions) {
  const Read out = read(version, std::move(instructions));
  CHECK_EQ(out.refusal, "accepted");
  return out.facts.tip_lamports;
}

template <typename... Values>
Bytes data_of(Values... values) {
  Bytes bytes;
  (append(bytes, values), ...);
  return bytes;
}
Bytes transfer_data(uint64_t lamports) { return data_of(uint32_t{2}, lamports); }
TestInstruction transfer(uint8_t from, uint8_t to, uint64_t lamports) {
  return {kSystem, {from, to}, transfer_data(lamports)};
}
TestInstruction seeded(uint8_t from, uint8_t base, uint8_t to, uint64_t lamports,
                       size_t seed_bytes) {
  Bytes data = data_of(uint32_t{11}, lamports, uint64_t{seed_bytes});
  data.resize(data.size() + seed_bytes + 32, 's');
  return {kSystem, {from, base, to}, data};
}
template <typename Integer>
TestInstruction budget(uint8_t tag, Integer value) {
  return {kBudget, {}, data_of(tag, value)};
}

}  // namespace

// ---- tips -----------------------------------------------------------------------------------

TEST(transaction_facts_sum_tips) {
  for (const TransactionVersion version : kVersions) {
    CHECK_EQ(tip_of(version, {}), uint64_t{0});
    CHECK_EQ(tip_of(version, {transfer(kPayer, kTip, 5000)}), uint64_t{5000});
    CHECK_EQ(tip_of(version, {transfer(kPayer, kTip, 5000), transfer(kSigner, kTip2, 7),
                              transfer(kPayer, kTip, 1), transfer(kPayer, kOther, 9000)}),
             uint64_t{5008});
    CHECK_EQ(tip_of(version, {transfer(kPayer, kTip, 0)}), uint64_t{0});
    CHECK_EQ(tip_of(version, {seeded(kOther, kSigner, kTip, 30, 0)}), uint64_t{30});
    CHECK_EQ(tip_of(version, {seeded(kOther, kSigner, kTip, 30, 32)}), uint64_t{30});
  }
}

TEST(transaction_facts_read_data_like_the_system_program) {
  const auto version = TransactionVersion::legacy;
  TestInstruction longer = transfer(kPayer, kTip, 11);
  longer.data.push_back(0xff);  // bytes after the data are ignored
  longer.accounts.push_back(kOther);
  CHECK_EQ(tip_of(version, {longer}), uint64_t{11});
  TestInstruction shorter = transfer(kPayer, kTip, 11);
  shorter.data.pop_back();
  CHECK_EQ(tip_of(version, {shorter}), uint64_t{0});
  for (const size_t kept : {0, 1, 3, 4})
    CHECK_EQ(tip_of(version, {{kSystem, {kPayer, kTip}, Bytes(kept, 2)}}), uint64_t{0});
  CHECK_EQ(tip_of(version, {{kSystem, {kPayer}, transfer_data(5)}}), uint64_t{0});
  CHECK_EQ(tip_of(version, {{kSystem, {}, transfer_data(5)}}), uint64_t{0});
  // Another instruction, or another program.
  for (const uint32_t tag : {0u, 1u, 3u, 5u, 12u, 0x102u})
    CHECK_EQ(tip_of(version, {{kSystem, {kPayer, kTip}, data_of(tag, uint64_t{5})}}), uint64_t{0});
  CHECK_EQ(tip_of(version, {{kProgram, {kPayer, kTip}, transfer_data(5)}}), uint64_t{0});

  TestInstruction seed = seeded(kOther, kSigner, kTip, 30, 8);
  seed.data.push_back(1);
  CHECK_EQ(tip_of(version, {seed}), uint64_t{30});
  seed.data.resize(seed.data.size() - 2);
  CHECK_EQ(tip_of(version, {seed}), uint64_t{0});
  CHECK_EQ(tip_of(version, {seeded(kOther, kSigner, kTip, 30, 33)}), uint64_t{0});
  seed = seeded(kOther, kSigner, kTip, 30, 0);
  store(seed.data, 12, kU64Max);  // the length of the seed
  CHECK_EQ(tip_of(version, {seed}), uint64_t{0});
  seed = seeded(kOther, kSigner, kTip, 30, 0);
  seed.accounts.pop_back();
  CHECK_EQ(tip_of(version, {seed}), uint64_t{0});
}

TEST(transaction_facts_count_only_tips_that_can_be_paid) {
  for (const TransactionVersion version : kVersions) {
    CHECK_EQ(tip_of(version, {transfer(kOther, kTip, 5)}), uint64_t{0});           // does not sign
    CHECK_EQ(tip_of(version, {transfer(kReadonlySigner, kTip, 5)}), uint64_t{0});  // read-only
    CHECK_EQ(tip_of(version, {transfer(kPayer, kProgram, 5)}), uint64_t{0});       // read-only
    // base: does not sign
    CHECK_EQ(tip_of(version, {seeded(kOther, kNonce, kTip, 5, 1)}), uint64_t{0});
    CHECK_EQ(tip_of(version, {seeded(kOther, kReadonlySigner, kTip, 5, 1)}), uint64_t{5});
    CHECK_EQ(tip_of(version, {seeded(kVote, kSigner, kTip, 5, 1)}), uint64_t{0});  // read-only
    CHECK_EQ(tip_of(version, {seeded(kTip2, kSigner, kTip, 5, 1)}), uint64_t{0});  // from a tip
    CHECK_EQ(tip_of(version, {seeded(kTip, kSigner, kTip, 5, 1)}), uint64_t{0});
  }
  // The addresses of loaded accounts are unknown.
  CHECK_EQ(tip_of(TransactionVersion::v0, {transfer(kPayer, kKeys, 5)}), uint64_t{0});
  CHECK_EQ(tip_of(TransactionVersion::v0, {seeded(kKeys, kSigner, kTip, 5, 1)}), uint64_t{0});
}

TEST(transaction_facts_refuse_a_sum_beyond_u64) {
  for (const TransactionVersion version : kVersions) {
    CHECK_EQ(tip_of(version, {transfer(kPayer, kTip, kU64Max)}), kU64Max);
    CHECK_EQ(tip_of(version, {transfer(kPayer, kTip, kU64Max), transfer(kPayer, kTip2, 0)}),
             kU64Max);
    CHECK_EQ(read(version, {transfer(kPayer, kTip, kU64Max), transfer(kPayer, kTip2, 1)}).refusal,
             "tips_overflow");
    CHECK_EQ(tip_of(version, {transfer(kPayer, kTip, kU64Max), transfer(kPayer, kOther, 1)}),
             kU64Max);
  }
}

// ---- compute budget -------------------------------------------------------------------------

TEST(transaction_facts_default_limits) {
  const auto units = [](std::vector<TestInstruction> instructions) {
    return read(TransactionVersion::legacy, std::move(instructions)).facts.compute_unit_limit;
  };
  CHECK_EQ(units({}), 0u);
  CHECK_EQ(units({transfer(kPayer, kOther, 1)}), 3'000u);
  CHECK_EQ(units({{kVote, {}, {}}, {kProgram, {}, {}}}), 203'000u);
  CHECK_EQ(units({budget(3, uint64_t{1}), {kProgram, {}, {}}}), 203'000u);
  CHECK_EQ(units(std::vector<TestInstruction>(7, {kProgram, {}, {}})), 1'400'000u);
  CHECK_EQ(units(std::vector<TestInstruction>(64, {kProgram, {}, {}})), 1'400'000u);
}

TEST(transaction_facts_read_the_compute_budget) {
  for (const TransactionVersion version : {TransactionVersion::legacy, TransactionVersion::v0}) {
    TransactionFacts facts = read(version, {budget(2, 500u), {kProgram, {}, {}}}).facts;
    CHECK_EQ(facts.compute_unit_limit, 500u);
    CHECK_EQ(facts.priority_fee_lamports, uint64_t{0});
    facts = read(version, {budget(2, ~0u), budget(3, uint64_t{1'000'000})}).facts;
    CHECK_EQ(facts.compute_unit_limit, 1'400'000u);
    CHECK_EQ(facts.priority_fee_lamports, uint64_t{1'400'000});
    facts = read(version, {budget(2, 0u), budget(3, kU64Max), {kProgram, {}, {}}}).facts;
    CHECK_EQ(facts.compute_unit_limit, 0u);
    CHECK_EQ(facts.priority_fee_lamports, uint64_t{0});
    facts = read(version, {budget(2, 1u), budget(3, uint64_t{1})}).facts;
    CHECK_EQ(facts.priority_fee_lamports, uint64_t{1});  // rounded up
    facts = read(version, {budget(2, 1'000'000u), budget(3, uint64_t{7})}).facts;
    CHECK_EQ(facts.priority_fee_lamports, uint64_t{7});
    facts = read(version, {budget(2, 1'000'001u), budget(3, uint64_t{7})}).facts;
    CHECK_EQ(facts.priority_fee_lamports, uint64_t{8});
    facts = read(version, {budget(2, 1'000'000u), budget(3, kU64Max)}).facts;
    CHECK_EQ(facts.priority_fee_lamports, kU64Max);
    facts = read(version, {budget(2, 1'400'000u), budget(3, kU64Max)}).facts;
    CHECK_EQ(facts.priority_fee_lamports, kU64Max);  // the product exceeds u64
    CHECK_EQ(read(version, {budget(1, 64u * 1024), budget(4, 1u)}).refusal, "accepted");
    // Bytes after the value are ignored.
    CHECK_EQ(read(version, {budget(2, uint64_t{500})}).facts.compute_unit_limit, 500u);
  }
}

TEST(transaction_facts_refuse_an_invalid_compute_budget) {
  const auto refusal = [](std::vector<TestInstruction> instructions) {
    const std::string of_v0 = read(TransactionVersion::v0, instructions).refusal;
    CHECK_EQ(read(TransactionVersion::v1, instructions).refusal, "accepted");  // ignored there
    CHECK_EQ(read(TransactionVersion::legacy, std::move(instructions)).refusal, of_v0);
    return of_v0;
  };
  CHECK_EQ(refusal({{kBudget, {}, {}}}), "compute_budget_unknown");
  for (const uint8_t tag : Bytes{0, 5, 6, 255})
    CHECK_EQ(refusal({budget(tag, uint64_t{1})}), "compute_budget_unknown");
  for (const uint8_t tag : Bytes{1, 2, 3, 4}) {
    Bytes data(tag == 3 ? 8 : 4, 0);  // one byte too short
    data[0] = tag;
    CHECK_EQ(refusal({{kBudget, {}, data}}), "compute_budget_unknown");
    const uint64_t value = tag == 1 ? 32 * 1024 : 1;
    CHECK_EQ(refusal({budget(tag, value)}), "accepted");
    CHECK_EQ(refusal({budget(tag, value), {kProgram, {}, {}}, budget(tag, value)}),
             "compute_budget_repeated");
  }
  CHECK_EQ(refusal({budget(1, 0u)}), "heap_size_invalid");
  CHECK_EQ(refusal({budget(1, 32u * 1024 + 1)}), "heap_size_invalid");
  CHECK_EQ(refusal({budget(1, 257u * 1024)}), "heap_size_invalid");
  CHECK_EQ(refusal({budget(4, 0u)}), "loaded_bytes_zero");
}

TEST(transaction_facts_read_the_v1_configuration) {
  Made made{TransactionVersion::v1, {budget(2, 500u), budget(3, uint64_t{9})}, 0, {}};
  TransactionFacts facts = read(made).facts;
  CHECK_EQ(facts.compute_unit_limit, 0u);
  CHECK_EQ(facts.priority_fee_lamports, uint64_t{0});
  made.config_mask = 0b111;
  made.config = data_of(uint64_t{1} << 60, 77u);
  facts = read(made).facts;
  CHECK_EQ(facts.compute_unit_limit, 77u);
  CHECK_EQ(facts.priority_fee_lamports, uint64_t{1} << 60);
  made.config_mask = 0b1100;
  made.config = data_of(2'000'000u, 5u);
  facts = read(made).facts;
  CHECK_EQ(facts.compute_unit_limit, 1'400'000u);
  CHECK_EQ(facts.priority_fee_lamports, uint64_t{0});
  made.config_mask = 0b11011;
  made.config = data_of(uint64_t{3}, 5u, 64u * 1024);
  facts = read(made).facts;
  CHECK_EQ(facts.compute_unit_limit, 0u);
  CHECK_EQ(facts.priority_fee_lamports, uint64_t{3});
}

// ---- nonce ----------------------------------------------------------------------------------

TEST(transaction_facts_find_the_durable_nonce) {
  const Bytes advance = data_of(uint32_t{4});
  for (const TransactionVersion version : kVersions) {
    const auto nonce = [&](std::vector<TestInstruction> instructions) {
      const TransactionFacts facts = read(version, std::move(instructions)).facts;
      if (!facts.uses_nonce) return std::string("none");
      return std::to_string(facts.nonce_account) + " by " + std::to_string(facts.nonce_authority);
    };
    CHECK_EQ(nonce({}), "none");
    CHECK_EQ(nonce({{kSystem, {kNonce, kVote, kSigner}, advance}}), "6 by 1");
    CHECK_EQ(nonce({{kSystem, {kNonce, kVote, kReadonlySigner, kPayer}, advance}}), "6 by 2");
    CHECK_EQ(nonce({{kSystem, {kNonce, kVote, kSigner}, {4, 0, 0, 0, 9}}}), "6 by 1");
    CHECK_EQ(nonce({{kSystem, {kNonce, kVote, kOther, kSigner}, advance}}), "6 by 1");
    CHECK_EQ(nonce({{kSystem, {kPayer, kVote}, advance}}), "0 by 0");
    CHECK_EQ(nonce({{kSystem, {kNonce, kVote, kOther}, advance}}), "none");  // no signer
    CHECK_EQ(nonce({{kSystem, {}, advance}}), "none");
    CHECK_EQ(nonce({{kSystem, {kVote, kVote, kSigner}, advance}}), "none");  // not writable
    CHECK_EQ(nonce({{kSystem, {kReadonlySigner, kVote, kSigner}, advance}}), "none");
    CHECK_EQ(nonce({{kSystem, {kNonce, kVote, kSigner}, {4, 0, 0}}}), "none");
    CHECK_EQ(nonce({{kSystem, {kNonce, kVote, kSigner}, {4, 0, 0, 1}}}), "none");
    CHECK_EQ(nonce({{kProgram, {kNonce, kVote, kSigner}, advance}}), "none");
    CHECK_EQ(nonce({transfer(kPayer, kTip, 1), {kSystem, {kNonce, kVote, kSigner}, advance}}),
             "none");  // not the first
  }
  const Made loaded{TransactionVersion::v0, {{kSystem, {kKeys, kVote, kSigner}, advance}}, 0, {}};
  CHECK(!read(loaded).facts.uses_nonce);
}

// ---- sets of keys ---------------------------------------------------------------------------

TEST(transaction_facts_find_dont_front_keys_at_both_ends_of_a_range) {
  const Made made{TransactionVersion::legacy, {}, 0, {}};
  const auto seen = [&](const PublicKey& first, const PublicKey& last) {
    return read(made, {{key_of(0xf0), key_of(0xf1)}, {first, last}}).facts.has_dont_front_key;
  };
  const PublicKey key = program_key(kOther);  // 0xa3 in every byte; its neighbours are a2 and a4
  PublicKey below = key, above = key;
  below[31]--;
  above[31]++;
  CHECK(!read(made).facts.has_dont_front_key);
  CHECK(seen(key, key));
  CHECK(seen(below, key));
  CHECK(seen(key, above));
  CHECK(seen(below, above));
  CHECK(!seen(above, above));
  CHECK(!seen(below, below));
  CHECK(!seen(above, below));  // empty
  CHECK(seen(key_of(0), key_of(0xff)));
}

TEST(transaction_facts_address_set_is_exact) {
  std::mt19937_64 random(5);
  for (const size_t count : {0, 1, 2, 17, 300, 4096}) {
    std::vector<PublicKey> keys(count);
    for (PublicKey& key : keys)
      for (uint8_t& byte : key) byte = static_cast<uint8_t>(random());
    if (count > 2) {
      keys[1] = keys[0];  // twice
      keys[2] = keys[0];
      keys[2][31] ^= 1;  // the same first bytes
    }
    const AddressSet set(keys);
    for (const PublicKey& key : keys) {
      CHECK(set.contains(key.data()));
      PublicKey other = key;
      other[8 + random() % 24] ^= 0x10;
      CHECK(!set.contains(other.data()));
    }
    CHECK(!set.contains(key_of(0).data()));
  }
}
