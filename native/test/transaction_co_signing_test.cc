// Co-signing: the transactions that a nonce authority may sign, and every way to misuse its
// signature.
#include <algorithm>
#include <cstring>
#include <memory>

#include "check.h"
#include "transaction/co_signing.h"
#include "transaction_support.h"
#include "verify/signature_verifier.h"

// Their constants name other accounts than those of transaction_facts_test.cc.
namespace co_signing {
namespace {

using namespace shredway;
using namespace shredway::test;

constexpr TransactionVersion kSignedVersions[] = {TransactionVersion::legacy,
                                                  TransactionVersion::v0};

// Indexes of the keys: 0 payer, 1 another signer, 2 the authority, 3 the nonce account, 4 another
// account, 5 System, 6 the sysvar, 7 another program. The first two are writable, and so are 3 and
// 4.
constexpr uint8_t kPayer = 0, kSigner = 1, kAuthority = 2, kNonce = 3, kSomebody = 4, kSystem = 5,
                  kSysvar = 6, kProgram = 7, kKeys = 8;
constexpr PublicKey kSysvarKey{0x06, 0xa7, 0xd5, 0x17, 0x19, 0x2c, 0x56, 0x8e, 0xe0, 0x8a, 0x84,
                               0x5f, 0x73, 0xd2, 0x97, 0x88, 0xcf, 0x03, 0x5c, 0x31, 0x45, 0xb2,
                               0x1a, 0xb3, 0x44, 0xd8, 0x06, 0x2e, 0xa9, 0x40, 0x00, 0x00};

struct Attempt {
  TransactionVersion version = TransactionVersion::legacy;
  std::vector<TestInstruction> instructions;
  uint8_t required_signatures = 3, readonly_signed = 1, readonly_unsigned = 3;
  std::vector<TestLookup> lookups;
  std::vector<uint8_t> missing{kAuthority};
  PublicKey nonce_account = key_of(0xa0 + kNonce), authority = key_of(0xa0 + kAuthority);
};

Bytes word(uint32_t tag) {
  Bytes bytes;
  append(bytes, tag);
  return bytes;
}
TestInstruction advance_by(Bytes accounts) { return {kSystem, std::move(accounts), word(4)}; }
TestInstruction advance() { return advance_by({kNonce, kSysvar, kAuthority}); }
TestInstruction transfer(uint8_t from, uint8_t to) {
  Bytes data = word(2);
  append(data, uint64_t{1});
  return {kSystem, {from, to}, data};
}

Attempt attempt(TransactionVersion version, std::vector<TestInstruction> instructions) {
  Attempt made;
  made.version = version;
  made.instructions = std::move(instructions);
  return made;
}

WrittenTransaction write(const Attempt& made) {
  TestTransaction parts;
  parts.version = made.version;
  parts.signatures = parts.required_signatures = made.required_signatures;
  parts.readonly_signed = made.readonly_signed;
  parts.readonly_unsigned = made.readonly_unsigned;
  parts.keys = kKeys;
  parts.instructions = made.instructions;
  parts.lookups = made.lookups;
  WrittenTransaction written = write_transaction(parts);
  uint8_t* bytes = written.bytes.data();
  for (uint8_t place = 0; place < kKeys; place++) {
    const PublicKey key = place == kSystem   ? key_of(0)
                          : place == kSysvar ? kSysvarKey
                                             : key_of(static_cast<uint8_t>(0xa0 + place));
    std::memcpy(bytes + written.layout.keys_begin + place * 32, key.data(), 32);
  }
  for (const uint8_t place : made.missing)
    std::memset(bytes + written.layout.signatures_begin + place * 64, 0, 64);
  return written;
}

struct Answer {
  std::string refusal;
  CoSigningPlace place;
  CoSigningFault fault;
};

// A copy of exactly the given size, so that the sanitizer detects a read beyond it.
Answer ask(const Attempt& made, const Bytes& bytes) {
  static const CoSigningCheck check;
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  Answer answer{};
  const bool is_found = check.place(copy.get(), bytes.size(), made.nonce_account, made.authority,
                                    answer.place, answer.fault);
  answer.refusal = co_signing_refusal_name(answer.fault.refusal);
  CHECK_EQ(is_found, answer.refusal == "accepted");
  return answer;
}
Answer ask(const Attempt& made) { return ask(made, write(made).bytes); }

// For both versions that may be signed.
std::string refusal_of(Attempt made) {
  made.version = TransactionVersion::v0;
  const std::string of_v0 = ask(made).refusal;
  if (!made.lookups.empty()) return of_v0;
  made.version = TransactionVersion::legacy;
  CHECK_EQ(ask(made).refusal, of_v0);
  return of_v0;
}
std::string refusal_of(std::vector<TestInstruction> instructions) {
  return refusal_of(attempt(TransactionVersion::v0, std::move(instructions)));
}

}  // namespace

TEST(co_signing_finds_the_place_of_the_missing_signature) {
  for (const TransactionVersion version : kSignedVersions) {
    for (const auto& rest : std::vector<std::vector<TestInstruction>>{
             {},
             {transfer(kPayer, kSomebody)},
             {{kProgram, {kSigner, kNonce, kSysvar, kPayer}, {1, 2, 3}}, {kProgram, {}, {}}}}) {
      Attempt made = attempt(version, {advance()});
      made.instructions.insert(made.instructions.end(), rest.begin(), rest.end());
      if (version == TransactionVersion::v0) made.lookups = {{0x70, {1}, {2}}, {0x71, {}, {9}}};
      const WrittenTransaction written = write(made);
      const Answer answer = ask(made, written.bytes);
      CHECK_EQ(answer.refusal, "accepted");
      CHECK_EQ(answer.place.signature_at, 1u + kAuthority * 64);
      CHECK_EQ(answer.place.message_begin, 1u + 3 * 64);
      CHECK_EQ(answer.place.message_end, written.bytes.size());
      CHECK_EQ(answer.place.lifetime_begin, written.layout.lifetime_begin);
    }
  }
}

TEST(co_signing_finds_signatures_by_the_index_of_the_key) {
  for (const TransactionVersion version : kSignedVersions) {
    Attempt made = attempt(version, {advance_by({kNonce, kSysvar, kSigner})});
    made.authority = key_of(0xa0 + kSigner);
    made.required_signatures = 2;
    made.missing = {kSigner};
    CHECK_EQ(ask(made).place.signature_at, 1u + 64);
    CHECK_EQ(ask(made).place.message_begin, 1u + 2 * 64);
    made.required_signatures = 3;
    made.readonly_signed = 2;
    CHECK_EQ(ask(made).refusal, "accepted");
    CHECK_EQ(ask(made).place.signature_at, 1u + 64);
    CHECK_EQ(ask(made).place.message_begin, 1u + 3 * 64);
  }
}

TEST(co_signing_completes_a_transaction_that_verifies) {
  const SigningKey keys[] = {SigningKey({1}), SigningKey({2}), SigningKey({3})};
  for (const TransactionVersion version : kSignedVersions) {
    Attempt made = attempt(version, {advance(), transfer(kPayer, kSomebody)});
    made.authority = keys[kAuthority].public_key();
    WrittenTransaction written = write(made);
    uint8_t* bytes = written.bytes.data();
    const Transaction& layout = written.layout;
    for (size_t place = 0; place < 3; place++)
      std::memcpy(bytes + layout.keys_begin + place * 32, keys[place].public_key().data(), 32);
    const size_t message_bytes = layout.message_end - layout.message_begin;
    Signature signature;
    for (size_t place = 0; place < 2; place++) {
      CHECK(keys[place].sign(bytes + layout.message_begin, message_bytes, signature));
      std::memcpy(bytes + layout.signatures_begin + place * 64, signature.data(), 64);
    }
    VerifyingKeys known;
    CHECK(!verify_signatures(bytes, written.bytes.size(), known));
    const Answer answer = ask(made, written.bytes);
    CHECK_EQ(answer.refusal, "accepted");
    CHECK(keys[kAuthority].sign(bytes + answer.place.message_begin,
                                answer.place.message_end - answer.place.message_begin, signature));
    std::memcpy(bytes + answer.place.signature_at, signature.data(), 64);
    CHECK(verify_signatures(bytes, written.bytes.size(), known));
    CHECK_EQ(ask(made, written.bytes).refusal, "nothing_missing");
  }
}

TEST(co_signing_refuses_invalid_transactions) {
  const Attempt made = attempt(TransactionVersion::v0, {advance()});
  const Bytes whole = write(made).bytes;
  const auto refused = [&](const Bytes& bytes) {
    const Answer answer = ask(made, bytes);
    CHECK_EQ(answer.refusal, "transaction_refused");
    CHECK_EQ(answer.fault.got, answer.fault.transaction.got);
    CHECK_EQ(answer.fault.offset, answer.fault.transaction.offset);
    return std::string(transaction_refusal_name(answer.fault.transaction.refusal));
  };
  Bytes bytes = whole;
  bytes.push_back(0);
  CHECK_EQ(refused(bytes), "trailing_bytes");
  for (size_t length = 0; length < whole.size(); length++) {
    const Bytes cut(whole.begin(), whole.begin() + long(length));
    CHECK_EQ(refused(cut), "cut_short");
  }
  bytes = whole;
  bytes[1 + 3 * 64] = 0x82;  // the version of the message
  CHECK_EQ(refused(bytes), "version_unknown");
  bytes = whole;
  bytes[1 + 3 * 64 + 1] = 2;  // number of required signatures
  CHECK_EQ(refused(bytes), "signature_count_wrong");
  Attempt twice = made;
  twice.instructions.push_back({0, {}, {}});
  CHECK_EQ(ask(twice).refusal, "transaction_refused");
}

TEST(co_signing_refuses_version_1) {
  Attempt made = attempt(TransactionVersion::v1, {advance()});
  CHECK_EQ(ask(made).refusal, "version_1");
  made.missing = {};
  CHECK_EQ(ask(made).refusal, "version_1");
}

TEST(co_signing_requires_the_advance_first) {
  CHECK_EQ(refusal_of(std::vector<TestInstruction>{}), "not_an_advance");
  CHECK_EQ(refusal_of({transfer(kPayer, kSomebody), advance()}), "not_an_advance");
  for (const uint32_t tag : {0u, 1u, 2u, 3u, 5u, 6u, 7u, 12u, 0x104u, 0x04000000u})
    CHECK_EQ(refusal_of({{kSystem, {kNonce, kSysvar, kAuthority}, word(tag)}}), "not_an_advance");
  CHECK_EQ(refusal_of({{kSystem, {kNonce, kSysvar, kAuthority}, {4, 0, 0}}}), "not_an_advance");
  CHECK_EQ(refusal_of({{kSystem, {kNonce, kSysvar, kAuthority}, {}}}), "not_an_advance");
  CHECK_EQ(refusal_of({{kProgram, {kNonce, kSysvar, kAuthority}, word(4)}}), "not_an_advance");
}

TEST(co_signing_refuses_an_advance_with_other_accounts_or_data) {
  CHECK_EQ(refusal_of({{kSystem, {kNonce, kSysvar, kAuthority}, {4, 0, 0, 0, 0}}}), "advance_data");
  CHECK_EQ(refusal_of({advance_by({})}), "advance_accounts");
  CHECK_EQ(refusal_of({advance_by({kNonce, kAuthority})}), "advance_accounts");
  CHECK_EQ(refusal_of({advance_by({kNonce, kSysvar})}), "advance_accounts");
  CHECK_EQ(refusal_of({advance_by({kNonce, kSysvar, kAuthority, kSomebody})}), "advance_accounts");
  CHECK_EQ(refusal_of({advance_by({kNonce, kSysvar, kAuthority, kAuthority})}), "advance_accounts");
  CHECK_EQ(refusal_of({advance_by({kNonce, kSomebody, kAuthority})}), "advance_accounts");
  CHECK_EQ(refusal_of({advance_by({kNonce, kAuthority, kSysvar})}), "advance_accounts");
  Attempt loaded = attempt(TransactionVersion::v0, {advance_by({kNonce, kKeys, kAuthority})});
  loaded.lookups = {{0x70, {}, {1}}};
  CHECK_EQ(refusal_of(loaded), "advance_accounts");
}

TEST(co_signing_refuses_another_nonce_account) {
  CHECK_EQ(refusal_of({advance_by({kSomebody, kSysvar, kAuthority})}), "other_nonce_account");
  CHECK_EQ(refusal_of({advance_by({kAuthority, kSysvar, kAuthority})}), "other_nonce_account");
  Attempt made = attempt(TransactionVersion::v0, {advance()});
  made.readonly_unsigned = 5;
  CHECK_EQ(refusal_of(made), "nonce_account_readonly");
  made = attempt(TransactionVersion::v0, {advance_by({kKeys, kSysvar, kAuthority})});
  made.lookups = {{0x70, {1}, {}}};
  CHECK_EQ(refusal_of(made), "nonce_account_loaded");
  // One bit of the key.
  for (const size_t at : {size_t{0}, size_t{31}}) {
    made = attempt(TransactionVersion::v0, {advance()});
    made.nonce_account[at] ^= 1;
    CHECK_EQ(refusal_of(made), "other_nonce_account");
    made = attempt(TransactionVersion::v0, {advance()});
    made.authority[at] ^= 1;
    CHECK_EQ(refusal_of(made), "other_authority");
  }
}

TEST(co_signing_refuses_another_role_of_the_authority) {
  CHECK_EQ(refusal_of({advance_by({kNonce, kSysvar, kSigner})}), "other_authority");
  CHECK_EQ(refusal_of({advance_by({kNonce, kSysvar, kNonce})}), "other_authority");
  Attempt made = attempt(TransactionVersion::v0, {advance_by({kNonce, kSysvar, kKeys})});
  made.lookups = {{0x70, {}, {1}}};
  CHECK_EQ(refusal_of(made), "authority_loaded");
  made = attempt(TransactionVersion::v0, {advance_by({kNonce, kSysvar, kSomebody})});
  made.authority = key_of(0xa0 + kSomebody);
  CHECK_EQ(refusal_of(made), "authority_not_signer");
  // The first account after the signers.
  made = attempt(TransactionVersion::v0, {advance_by({kSomebody, kSysvar, kNonce})});
  made.nonce_account = key_of(0xa0 + kSomebody);
  made.authority = key_of(0xa0 + kNonce);
  CHECK_EQ(refusal_of(made), "authority_not_signer");
  made = attempt(TransactionVersion::v0, {advance_by({kNonce, kSysvar, kPayer})});
  made.authority = key_of(0xa0 + kPayer);
  made.missing = {kPayer};
  CHECK_EQ(refusal_of(made), "authority_pays_fees");
  made = attempt(TransactionVersion::v0, {advance()});
  made.readonly_signed = 0;
  CHECK_EQ(refusal_of(made), "authority_writable");
  // The account is its own authority; or the sysvar or the program is the authority.
  made = attempt(TransactionVersion::v0, {advance_by({kAuthority, kSysvar, kAuthority})});
  made.nonce_account = made.authority;
  CHECK_EQ(refusal_of(made), "nonce_account_readonly");
  made.readonly_signed = 0;
  CHECK_EQ(refusal_of(made), "authority_writable");
  for (const uint8_t place : {kSysvar, kSystem}) {
    made = attempt(TransactionVersion::v0, {advance_by({kNonce, kSysvar, place})});
    made.required_signatures = 8;
    made.readonly_signed = 3;
    made.readonly_unsigned = 0;
    made.authority = place == kSysvar ? kSysvarKey : key_of(0);
    made.missing = {place};
    CHECK_EQ(refusal_of(made), "authority_used_elsewhere");
  }
}

TEST(co_signing_refuses_an_authority_in_any_other_instruction) {
  const TestInstruction others[] = {
      transfer(kAuthority, kSomebody),
      transfer(kPayer, kAuthority),
      advance(),
      {kSystem, {kNonce, kSomebody, kSysvar, kSysvar, kAuthority}, word(5)},  // withdraw
      {kSystem, {kNonce, kAuthority}, word(7)},                               // authorise
      {kSystem, {kNonce}, word(7)},
      {kProgram, {kAuthority}, {}},
      {kProgram, {kPayer, kSomebody, kSigner, kAuthority}, {9}},
      {kAuthority, {}, {}},  // as a program
      {kAuthority, {kPayer}, {1}},
  };
  for (const TestInstruction& other : others) {
    const bool has_it =
        other.program == kAuthority ||
        std::find(other.accounts.begin(), other.accounts.end(), kAuthority) != other.accounts.end();
    const std::string expected = has_it ? "authority_used_elsewhere" : "accepted";
    CHECK_EQ(refusal_of({advance(), other}), expected);
    // Also after many other instructions.
    std::vector<TestInstruction> many{advance()};
    many.resize(63, {kProgram, {kPayer}, {}});
    many.push_back(other);
    const Answer answer = ask(attempt(TransactionVersion::legacy, many));
    CHECK_EQ(answer.refusal, expected);
    CHECK_EQ(answer.fault.got, has_it ? 63u : 0u);
  }
}

TEST(co_signing_refuses_an_authority_that_is_a_lookup_table) {
  Attempt made = attempt(TransactionVersion::v0, {advance()});
  made.lookups = {{0x70, {1}, {2, 3}}, {0xa0 + kAuthority, {}, {4}}};
  CHECK_EQ(ask(made).refusal, "authority_as_table");
  CHECK_EQ(ask(made).fault.got, 1u);
  made.lookups = {{0xa0 + kNonce, {}, {4}}};
  CHECK_EQ(ask(made).refusal, "accepted");  // not a table either, but that affects only the sender
}

TEST(co_signing_refuses_a_present_signature_or_other_missing_ones) {
  Attempt made = attempt(TransactionVersion::v0, {advance()});
  made.missing = {};
  CHECK_EQ(refusal_of(made), "nothing_missing");
  made.missing = {kPayer};
  CHECK_EQ(refusal_of(made), "nothing_missing");
  for (const uint8_t other : {kPayer, kSigner}) {
    made.missing = {other, kAuthority};
    CHECK_EQ(refusal_of(made), "other_signature_missing");
    CHECK_EQ(ask(made).fault.got, other);
  }
  // The last signature, after the authority's.
  Attempt between = attempt(TransactionVersion::v0, {advance_by({kNonce, kSysvar, kSigner})});
  between.authority = key_of(0xa0 + kSigner);
  between.readonly_signed = 2;
  between.missing = {kSigner, kAuthority};
  CHECK_EQ(refusal_of(between), "other_signature_missing");
  CHECK_EQ(ask(between).fault.got, kAuthority);
  // A single bit makes the signature present.
  made.missing = {kAuthority};
  for (const size_t at : {size_t{0}, size_t{31}, size_t{63}}) {
    Bytes bytes = write(made).bytes;
    bytes[1 + kAuthority * 64 + at] = 0x80;
    CHECK_EQ(ask(made, bytes).refusal, "nothing_missing");
  }
}

TEST(co_signing_refusals_have_different_names_and_texts) {
  for (size_t i = 0; i < kCoSigningRefusalCount; i++) {
    const auto refusal = static_cast<CoSigningRefusal>(i);
    CHECK_EQ(*co_signing_refusal_expected(refusal) == '\0', i == 0);
    CHECK_EQ(*co_signing_refusal_got(refusal) == '\0', i == 0);
    for (size_t j = 0; j < i; j++)
      CHECK(std::strcmp(co_signing_refusal_name(refusal),
                        co_signing_refusal_name(static_cast<CoSigningRefusal>(j))) != 0);
  }
}

}  // namespace co_signing
