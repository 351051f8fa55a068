// Every refusal of the form, each from a valid transaction with one fault.
#include <cstring>
#include <functional>

#include "check.h"
#include "transaction/inspector.h"
#include "transaction/instructions.h"
#include "transaction/sanitize.h"
#include "transaction_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

struct Inspection {
  std::string name;
  size_t offset;
  uint64_t got;
  Transaction transaction;
};

Inspection inspect(const Bytes& bytes) {
  static const TransactionInspector inspector({}, {});
  // Detects a read beyond the end.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  Transaction transaction{};
  TransactionFacts facts;
  TransactionFault fault;
  const bool accepted = inspector.inspect(copy.get(), bytes.size(), transaction, facts, fault);
  CHECK_EQ(accepted, fault.refusal == TransactionRefusal::accepted);
  return {transaction_refusal_name(fault.refusal), fault.offset, fault.got, transaction};
}
Inspection inspect(const TestTransaction& parts) { return inspect(write_transaction(parts).bytes); }

// Two signers (one read-only), two others (one read-only), and instructions of the last one.
TestTransaction fine_parts(TransactionVersion version) {
  TestTransaction parts;
  parts.version = version;
  parts.signatures = parts.required_signatures = 2;
  parts.readonly_signed = 1;
  parts.readonly_unsigned = 1;
  parts.keys = 4;
  parts.instructions = {{3, {0, 1, 2}, {9, 8, 7}}, {3, {}, Bytes(140, 5)}, {3, {3, 3}, {}}};
  if (version == TransactionVersion::v0) {
    parts.lookups = {{0x70, {1, 2}, {3}}, {0x71, {}, {9}}};
    parts.instructions[0].accounts.push_back(7);  // the last loaded account
  }
  return parts;
}

struct Case {
  const char* name;
  std::function<void(TestTransaction&)> change;
  uint64_t got;
};

}  // namespace

TEST(transaction_sanitize_accepts_valid_transactions) {
  for (const TransactionVersion version : kVersions) {
    const Inspection answer = inspect(fine_parts(version));
    CHECK_EQ(answer.name, "accepted");
    CHECK(answer.transaction.version == version);
  }
}

TEST(transaction_sanitize_refuses_one_fault_in_every_version) {
  const Case cases[] = {
      {"signatures_out_of_range",
       [](auto& p) { p.signatures = p.required_signatures = p.readonly_signed = 0; }, 0},
      {"keys_too_few", [](auto& p) { p.readonly_unsigned = 3; }, 4},
      {"keys_too_few", [](auto& p) { p.keys = 1, p.readonly_unsigned = 0; }, 1},
      {"fee_payer_readonly", [](auto& p) { p.readonly_signed = 2; }, 2},
      {"fee_payer_readonly", [](auto& p) { p.readonly_signed = 255; }, 255},
      {"program_is_fee_payer", [](auto& p) { p.instructions[1].program = 0; }, 0},
      {"program_out_of_range", [](auto& p) { p.instructions[1].program = 4; }, 4},
      {"program_out_of_range", [](auto& p) { p.instructions[2].program = 255; }, 255},
      {"account_out_of_range", [](auto& p) { p.instructions[2].accounts[1] = 255; }, 255},
      {"instructions_too_many",
       [](auto& p) {
         if (p.version == TransactionVersion::v1) p.signatures = 7;  // mark: cannot be written
         p.instructions.assign(65, {3, {}, {}});
       },
       65},
  };
  for (const TransactionVersion version : kVersions) {
    for (const Case& one : cases) {
      TestTransaction parts = fine_parts(version);
      one.change(parts);
      if (version == TransactionVersion::v1 && parts.signatures == 7) continue;
      const Inspection answer = inspect(parts);
      CHECK_EQ(answer.name, one.name);
      CHECK_EQ(answer.got, one.got);
    }
  }
}

TEST(transaction_sanitize_accepts_the_limits) {
  for (const TransactionVersion version : kVersions) {
    TestTransaction parts = fine_parts(version);
    parts.instructions.assign(64, {3, {}, {}});
    CHECK_EQ(inspect(parts).name, "accepted");
    parts = fine_parts(version);
    parts.instructions = {{3, Bytes(255, 1), {}}};
    CHECK_EQ(inspect(parts).name, "accepted");
  }
}

TEST(transaction_sanitize_counts_signatures) {
  for (const TransactionVersion version : {TransactionVersion::legacy, TransactionVersion::v0}) {
    TestTransaction parts = fine_parts(version);
    parts.signatures = 1;
    Inspection answer = inspect(parts);
    CHECK_EQ(answer.name, "signature_count_wrong");
    CHECK_EQ(answer.got, uint64_t{1});
    parts.signatures = 0;
    CHECK_EQ(inspect(parts).name, "signature_count_wrong");
    parts.signatures = 3;
    CHECK_EQ(inspect(parts).name, "signature_count_wrong");
    parts = fine_parts(version);
    parts.required_signatures = 13;
    answer = inspect(parts);
    CHECK_EQ(answer.name, "signatures_out_of_range");
    CHECK_EQ(answer.got, uint64_t{13});
  }
  TestTransaction parts = fine_parts(TransactionVersion::v1);
  parts.required_signatures = 12;
  parts.keys = 64;
  CHECK_EQ(inspect(parts).name, "accepted");
}

TEST(transaction_sanitize_bounds_accounts_with_lookups) {
  TestTransaction parts = fine_parts(TransactionVersion::v0);
  parts.instructions[0].accounts.back() = 8;  // one beyond the last loaded account
  Inspection answer = inspect(parts);
  CHECK_EQ(answer.name, "account_out_of_range");
  CHECK_EQ(answer.got, uint64_t{8});
  parts = fine_parts(TransactionVersion::v0);
  parts.instructions[1].program = 5;  // loaded: cannot be a program
  CHECK_EQ(inspect(parts).name, "program_out_of_range");

  parts = fine_parts(TransactionVersion::v0);
  parts.lookups = {{0x70, Bytes(200, 1), {}}, {0x71, {}, Bytes(52, 2)}};
  parts.instructions[0].accounts.back() = 255;
  CHECK_EQ(inspect(parts).name, "accepted");
  parts.lookups[1].readonly.push_back(3);
  answer = inspect(parts);
  CHECK_EQ(answer.name, "accounts_too_many");
  CHECK_EQ(answer.got, uint64_t{257});

  parts = fine_parts(TransactionVersion::v0);
  parts.lookups[1].readonly.clear();
  CHECK_EQ(inspect(parts).name, "lookup_empty");

  parts = fine_parts(TransactionVersion::legacy);
  parts.instructions = {{3, Bytes(256, 1), {}}};
  answer = inspect(parts);
  CHECK_EQ(answer.name, "instruction_accounts_too_many");
  CHECK_EQ(answer.got, uint64_t{256});
}

TEST(transaction_sanitize_refuses_repeated_keys) {
  for (const TransactionVersion version : kVersions) {
    const WrittenTransaction fine = write_transaction(fine_parts(version));
    for (size_t i = 0; i < 4; i++) {
      for (size_t j = 0; j < 4; j++) {
        Bytes bytes = fine.bytes;
        uint8_t* keys = bytes.data() + fine.layout.keys_begin;
        std::memcpy(keys + j * 32, fine.bytes.data() + fine.layout.keys_begin + i * 32, 32);
        const Inspection answer = inspect(bytes);
        CHECK_EQ(answer.name, i == j ? "accepted" : "key_repeated");
        if (i != j) {
          CHECK_EQ(answer.got, uint64_t{std::max(i, j)});
          CHECK_EQ(answer.offset, fine.layout.keys_begin + std::max(i, j) * 32);
        }
        if (i != j) keys[j * 32 + 31] ^= 1;  // the same first bytes, another key
        CHECK_EQ(inspect(bytes).name, "accepted");
      }
    }
  }
}

TEST(transaction_sanitize_checks_the_v1_configuration) {
  TestTransaction parts = fine_parts(TransactionVersion::v1);
  for (uint32_t mask = 0; mask < 64; mask++) {
    parts.config_mask = mask;
    WrittenTransaction written = write_transaction(parts);
    const bool has_heap = mask & 16;
    const uint32_t heap = 64 * 1024;
    if (has_heap)
      store(written.bytes, size_t{written.layout.instructions_begin} - (mask & 32 ? 8 : 4), heap);
    const char* expected = mask & 32                            ? "config_mask_unknown"
                           : (mask & 3) != 0 && (mask & 3) != 3 ? "config_fee_bits"
                                                                : "accepted";
    const Inspection answer = inspect(written.bytes);
    CHECK_EQ(answer.name, expected);
    if (answer.name != "accepted") CHECK_EQ(answer.got, uint64_t{mask});
  }
  for (uint32_t bit = 5; bit < 32; bit++) {
    parts.config_mask = 1u << bit;
    CHECK_EQ(inspect(parts).name, "config_mask_unknown");
  }
  const std::pair<uint32_t, bool> heaps[] = {
      {32 * 1024, true},      {256 * 1024, true},  {33 * 1024, true},
      {31 * 1024, false},     {257 * 1024, false}, {0, false},
      {32 * 1024 + 1, false}, {~0u, false},        {1u << 31, false},
  };
  for (const auto& [bytes, fine] : heaps) {
    parts.config_mask = 31;
    WrittenTransaction written = write_transaction(parts);
    store(written.bytes, size_t{written.layout.instructions_begin} - 4, bytes);
    const Inspection answer = inspect(written.bytes);
    CHECK_EQ(answer.name, fine ? "accepted" : "heap_size_invalid");
    if (!fine) CHECK_EQ(answer.got, uint64_t{bytes});
  }
}

TEST(transaction_sanitize_refuses_bytes_that_are_not_a_transaction) {
  CHECK_EQ(inspect(Bytes{}).name, "cut_short");
  CHECK_EQ(inspect(Bytes(5000, 1)).name, "too_long");
  CHECK_EQ(inspect(Bytes(4097, 0x81)).got, uint64_t{4097});
  CHECK_EQ(inspect(Bytes(1233, 0)).name, "trailing_bytes");
  for (const size_t bytes : {1233, 1300, 4000})
    CHECK_EQ(inspect(transaction_of_bytes(TransactionVersion::v0, bytes).bytes).name, "too_long");
  CHECK_EQ(inspect(Bytes{0x80}).name, "signatures_not_first");
  for (const int first : {0x82, 0x83, 0xff}) {
    const Inspection answer = inspect(Bytes(100, static_cast<uint8_t>(first)));
    CHECK_EQ(answer.name, "version_unknown");
    CHECK_EQ(answer.got, uint64_t(first - 0x80));
  }
  for (const TransactionVersion version : kVersions) {
    const WrittenTransaction written = write_transaction(fine_parts(version));
    Bytes bytes = written.bytes;
    bytes.push_back(0);
    Inspection answer = inspect(bytes);
    CHECK_EQ(answer.name, "trailing_bytes");
    CHECK_EQ(answer.got, uint64_t{1});
    CHECK_EQ(answer.offset, written.bytes.size());
    for (size_t length = 0; length < written.bytes.size(); length++) {
      answer = inspect(Bytes(written.bytes.begin(), written.bytes.begin() + long(length)));
      CHECK_EQ(answer.name, "cut_short");
      CHECK_EQ(answer.got, uint64_t{length});
    }
  }
  WrittenTransaction v0 = write_transaction(fine_parts(TransactionVersion::v0));
  v0.bytes[v0.layout.message_begin] = 0x81;  // v1 has no signatures in front
  Inspection answer = inspect(v0.bytes);
  CHECK_EQ(answer.name, "version_after_signatures");
  CHECK_EQ(answer.got, uint64_t{1});
  v0.bytes[v0.layout.message_begin] = 0x82;
  answer = inspect(v0.bytes);
  CHECK_EQ(answer.name, "version_unknown");
  CHECK_EQ(answer.got, uint64_t{2});
  CHECK_EQ(answer.offset, size_t{v0.layout.message_begin});
}

TEST(transaction_sanitize_names_the_received_count_or_length) {
  const auto check = [](const Bytes& bytes, const char* name, size_t offset, uint64_t got) {
    const Inspection answer = inspect(bytes);
    CHECK_EQ(answer.name, name);
    CHECK_EQ(answer.offset, offset);
    CHECK_EQ(answer.got, got);
  };
  // 27 signatures and a header
  check({0x1b, 0x43, 0xbf}, "parts_too_long", 1, 1 + 27 * 64 + 3);
  const auto with = [](size_t at, std::initializer_list<uint8_t> values) {
    WrittenTransaction written = write_transaction(fine_parts(TransactionVersion::legacy));
    const size_t keys = size_t{written.layout.message_begin} + 3;
    std::copy(values.begin(), values.end(), written.bytes.begin() + long(keys + at));
    return written.bytes;
  };
  const size_t keys =
      write_transaction(fine_parts(TransactionVersion::legacy)).layout.message_begin + size_t{3};
  check(with(0, {0x7f}), "parts_too_long", keys + 1, keys + 1 + 128 * 32);
  check(with(0, {0x81, 0x00}), "count_invalid", keys + 1, 0);
  check(with(0, {0x81, 0x81, 0x00}), "count_invalid", keys + 2, 0);
  check(with(0, {0xff, 0xff, 0x04}), "count_invalid", keys + 2, 4);
  check(with(0, {0xff, 0xff, 0xff}), "count_invalid", keys + 2, 255);
  const auto v1 = [](size_t at, uint8_t value) {
    Bytes bytes = write_transaction(fine_parts(TransactionVersion::v1)).bytes;
    bytes[at] = value;
    return bytes;
  };
  check(v1(1, 13), "signatures_out_of_range", 1, 13);
  check(v1(40, 65), "instructions_too_many", 40, 65);
  check(v1(41, 65), "keys_too_many", 41, 65);
}

TEST(transaction_sanitize_texts_have_expected_and_received_values) {
  for (size_t i = 1; i < kTransactionRefusalCount; i++) {
    const auto refusal = static_cast<TransactionRefusal>(i);
    CHECK(std::strlen(transaction_refusal_name(refusal)) > 0);
    CHECK(std::strlen(transaction_refusal_expected(refusal)) > 0);
    CHECK(std::strlen(transaction_refusal_got(refusal)) > 0);
  }
}

TEST(transaction_instructions_are_read_as_written) {
  std::mt19937_64 random(31);
  for (int round = 0; round < 3000; round++) {
    const TestTransaction parts = random_parts(random, kVersions[round % 3]);
    const WrittenTransaction written = write_transaction(parts);
    Transaction transaction{};
    if (parse_transaction(written.bytes.data(), written.bytes.size(), transaction) !=
        ParseResult::complete)
      continue;
    InstructionWalk walk(written.bytes.data(), transaction);
    Instruction instruction;
    for (const TestInstruction& expected : parts.instructions) {
      CHECK(walk.next(instruction));
      CHECK_EQ(instruction.program, expected.program);
      CHECK_EQ(written.bytes[instruction.begin], expected.program);
      CHECK(Bytes(instruction.accounts, instruction.accounts + instruction.account_count) ==
            expected.accounts);
      CHECK(Bytes(instruction.data, instruction.data + instruction.data_bytes) == expected.data);
    }
    CHECK(!walk.next(instruction));
  }
}

// No accepted transaction leads to a read outside: random parts, changed bytes.
TEST(transaction_sanitize_survives_any_bytes) {
  std::mt19937_64 random(77);
  size_t accepted = 0;
  for (int round = 0; round < 30'000; round++) {
    const TransactionVersion version = kVersions[round % 3];
    Bytes bytes =
        write_transaction(round % 2 ? fine_parts(version) : random_parts(random, version)).bytes;
    for (size_t changes = random() % 4; changes > 0; changes--)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    accepted += inspect(bytes).name == "accepted";
  }
  CHECK(accepted > 1000);
}
