#include "verify/signature_verifier.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>

#include "check.h"
#include "transaction_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

// Signs with `signers` keys whose seeds count up from `seed`.
Bytes signed_transaction(TransactionVersion version, uint8_t signers, uint8_t seed,
                         size_t data_bytes = 20) {
  TestTransaction parts;
  parts.version = version;
  parts.signatures = parts.required_signatures = signers;
  parts.keys = static_cast<uint16_t>(signers + 1);
  parts.instructions = {{signers, {0}, Bytes(data_bytes, seed)}};
  auto [bytes, layout] = write_transaction(parts);
  std::vector<std::unique_ptr<SigningKey>> keys;
  for (uint8_t i = 0; i < signers; i++) {
    std::array<uint8_t, 32> key_seed{};
    key_seed[0] = static_cast<uint8_t>(seed + i);
    key_seed[1] = 0x77;
    keys.push_back(std::make_unique<SigningKey>(key_seed));
    std::memcpy(bytes.data() + layout.keys_begin + i * 32, keys.back()->public_key().data(), 32);
  }
  for (uint8_t i = 0; i < signers; i++) {
    Signature signature;
    CHECK(keys[i]->sign(bytes.data() + layout.message_begin,
                        size_t{layout.message_end} - layout.message_begin, signature));
    std::memcpy(bytes.data() + layout.signatures_begin + i * 64, signature.data(), 64);
  }
  return bytes;
}

bool verify(const Bytes& bytes) {
  VerifyingKeys keys;
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return verify_signatures(copy.get(), bytes.size(), keys);
}

std::unique_ptr<SignatureVerifier> open(uint32_t threads, uint32_t queue_max) {
  std::string error;
  auto verifier = SignatureVerifier::open(threads, queue_max, error);
  CHECK_EQ(error, "");
  return verifier;
}

class ResultNotifier final : public VerifierNotifier {
 public:
  void notify() override {
    const std::lock_guard lock(mutex_);
    notifications_++;
    is_notified_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    is_notified_.wait(lock, [&] { return notifications_ > handled_; });
    handled_ = notifications_;
  }
  size_t rings() {
    const std::lock_guard lock(mutex_);
    return notifications_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_notified_;
  size_t notifications_ = 0, handled_ = 0;
};

using Outcomes = std::map<uint32_t, VerifyOutcome>;

void drain_all(SignatureVerifier& verifier, Outcomes& into) {
  VerifyResult results[3];  // small, so that one drain does not return all
  for (size_t count = 3; count == 3;) {
    count = verifier.drain(results, 3);
    for (size_t i = 0; i < count; i++) {
      CHECK(!into.contains(results[i].ticket));
      into[results[i].ticket] = results[i].outcome;
    }
  }
}

}  // namespace

// ---- one transaction ------------------------------------------------------------------------

TEST(verify_accepts_every_version_and_number_of_signers) {
  for (const TransactionVersion version : kVersions)
    for (const uint8_t signers : Bytes{1, 2, 7})
      CHECK(verify(signed_transaction(version, signers, signers)));
  CHECK(verify(signed_transaction(TransactionVersion::v1, 12, 40, 2500)));
}

TEST(verify_refuses_each_changed_bit_of_signature_key_and_message) {
  for (const TransactionVersion version : kVersions) {
    const Bytes fine = signed_transaction(version, 2, 9);
    Transaction t{};
    CHECK(parse_transaction(fine.data(), fine.size(), t) == ParseResult::complete);
    const auto verifies_with_flipped_bit = [&](size_t at) {
      Bytes bytes = fine;
      bytes[at] ^= 0x10;
      return verify(bytes);
    };
    for (size_t at = 0; at < 128; at += 7)
      CHECK(!verifies_with_flipped_bit(t.signatures_begin + at));
    for (size_t at = 0; at < 64; at += 5) CHECK(!verifies_with_flipped_bit(t.keys_begin + at));
    for (size_t at = 0; at < 32; at += 5) CHECK(!verifies_with_flipped_bit(t.lifetime_begin + at));
    CHECK(!verifies_with_flipped_bit(t.message_end - 1u));
    // Swaps the two signatures.
    Bytes swapped = fine;
    std::swap_ranges(swapped.begin() + t.signatures_begin,
                     swapped.begin() + t.signatures_begin + 64,
                     swapped.begin() + t.signatures_begin + 64);
    CHECK(!verify(swapped));
  }
}

TEST(verify_refuses_bytes_that_are_not_a_signed_transaction) {
  CHECK(!verify({}));
  CHECK(!verify({1}));
  CHECK(!verify(Bytes(4096, 0x81)));
  Bytes longer = signed_transaction(TransactionVersion::legacy, 1, 1);
  longer.push_back(0);
  CHECK(!verify(longer));
  TestTransaction parts;
  parts.signatures = parts.required_signatures = 0;
  CHECK(!verify(write_transaction(parts).bytes));  // no signature, so nothing is valid
  parts.signatures = parts.required_signatures = 3;
  parts.keys = 2;
  CHECK(!verify(write_transaction(parts).bytes));  // no keys to check them with
  Bytes more = signed_transaction(TransactionVersion::legacy, 1, 1);
  more[65] = 2;  // the header requires one more signature
  CHECK(!verify(more));
}

// Keys for which a signature of any message can be crafted: the network refuses them.
TEST(verify_refuses_keys_of_small_order) {
  for (const Ed25519Library library : {Ed25519Library::libsodium, Ed25519Library::openssl}) {
    if (!ed25519_use(library)) continue;
    for (const uint8_t y : Bytes{0, 1}) {
      Bytes bytes = signed_transaction(TransactionVersion::legacy, 1, 3);
      Transaction t{};
      CHECK(parse_transaction(bytes.data(), bytes.size(), t) == ParseResult::complete);
      std::fill_n(bytes.begin() + t.keys_begin, 32, uint8_t{0});
      bytes[t.keys_begin] = y;
      std::fill_n(bytes.begin() + t.signatures_begin, 64, uint8_t{0});
      bytes[t.signatures_begin] = y;  // R = A, s = 0
      CHECK(!verify(bytes));
    }
  }
  CHECK(ed25519_use(Ed25519Library::libsodium) || ed25519_use(Ed25519Library::openssl));
}

// More signers than the cache of keys holds, each of them twice, with both libraries.
TEST(verify_cache_of_keys_replaces_entries) {
  for (const Ed25519Library library : {Ed25519Library::openssl, Ed25519Library::libsodium}) {
    if (!ed25519_use(library)) continue;
    VerifyingKeys keys;
    for (int round = 0; round < 2; round++) {
      for (int seed = 0; seed < 120; seed++) {
        const Bytes bytes =
            signed_transaction(TransactionVersion::v0, 3, static_cast<uint8_t>(2 * seed));
        CHECK(verify_signatures(bytes.data(), bytes.size(), keys));
      }
    }
  }
  CHECK(ed25519_use(Ed25519Library::libsodium) || ed25519_use(Ed25519Library::openssl));
}

// A signer is prepared after some valid signatures, and gives the same results afterwards.
TEST(verify_prepares_signers_that_recur) {
  VerifyingKeys keys(0x9e3779b97f4a7c15);
  const Bytes good = signed_transaction(TransactionVersion::legacy, 1, 5);
  Bytes bad = good;
  bad[20] ^= 1;
  Transaction layout;
  CHECK(parse_transaction(good.data(), good.size(), layout) == ParseResult::complete);
  PublicKey signer;
  std::memcpy(signer.data(), good.data() + layout.keys_begin, signer.size());
  for (uint32_t i = 0; i < 2 * VerifyingKeys::kValidToPrepare; i++) {
    CHECK_EQ(keys.is_prepared(signer), i >= VerifyingKeys::kValidToPrepare);
    CHECK(!verify_signatures(bad.data(), bad.size(), keys));
    CHECK(verify_signatures(good.data(), good.size(), keys));
  }
  // Others take its place while it is not used, and it gets it back.
  const auto use = [&](const Bytes& bytes) {
    for (uint32_t i = 0; i < VerifyingKeys::kValidToPrepare; i++)
      CHECK(verify_signatures(bytes.data(), bytes.size(), keys));
  };
  const auto use_others = [&] {
    for (int seed = 10; seed < 130; seed += 3)
      use(signed_transaction(TransactionVersion::legacy, 3, static_cast<uint8_t>(seed)));
  };
  int rounds = 0;
  for (; keys.is_prepared(signer) && rounds < 50; rounds++) use_others();
  CHECK(!keys.is_prepared(signer));
  for (rounds = 0; !keys.is_prepared(signer) && rounds < 50; rounds++) use(good);
  CHECK(keys.is_prepared(signer));
  CHECK(!verify_signatures(bad.data(), bad.size(), keys));
}

// ---- the threads ----------------------------------------------------------------------------

TEST(verify_answers_every_ticket_once) {
  const Bytes good = signed_transaction(TransactionVersion::legacy, 1, 5);
  Bytes bad = good;
  bad[1] ^= 1;
  for (const uint32_t threads : {1, 2, 8}) {
    ResultNotifier notifier;
    const auto verifier = open(threads, 16);
    verifier->set_notifier(&notifier);
    Outcomes outcomes;
    constexpr uint32_t kJobs = 600;
    for (uint32_t ticket = 0; ticket < kJobs; ticket++) {
      const Bytes& bytes = ticket % 3 == 0 ? bad : good;
      while (!verifier->submit(ticket, bytes.data(), bytes.size())) {
        notifier.wait();
        drain_all(*verifier, outcomes);
      }
      if (ticket % 100 == 99) {  // lets all threads fall asleep
        while (outcomes.size() <= ticket) {
          drain_all(*verifier, outcomes);
          if (outcomes.size() <= ticket) notifier.wait();
        }
      }
    }
    for (uint32_t ticket = 0; ticket < kJobs; ticket++)
      CHECK(outcomes[ticket] == (ticket % 3 == 0 ? VerifyOutcome::invalid : VerifyOutcome::valid));
    CHECK_EQ(outcomes.size(), size_t{kJobs});
    CHECK(notifier.rings() <= kJobs);
  }
}

TEST(verify_queue_is_full_until_results_are_drained) {
  ResultNotifier notifier;
  const auto verifier = open(2, 4);
  verifier->set_notifier(&notifier);
  const Bytes bytes = signed_transaction(TransactionVersion::v1, 1, 5);
  for (uint32_t ticket = 0; ticket < 4; ticket++)
    CHECK(verifier->submit(ticket, bytes.data(), bytes.size()));
  CHECK(!verifier->submit(4, bytes.data(), bytes.size()));
  VerifyResult result{};
  notifier.wait();
  CHECK(!verifier->submit(4, bytes.data(), bytes.size()));  // found, but not drained
  CHECK_EQ(verifier->drain(&result, 1), size_t{1});
  CHECK(result.outcome == VerifyOutcome::valid);
  CHECK(verifier->submit(4, bytes.data(), bytes.size()));
  CHECK(!verifier->submit(5, bytes.data(), bytes.size()));
  CHECK_EQ(verifier->drain(&result, 0), size_t{0});
}

// The threads finish one after the other while no result is drained: one notification.
TEST(verify_notifies_once_until_drained) {
  ResultNotifier notifier;
  const auto verifier = open(2, 64);
  const Bytes bytes = signed_transaction(TransactionVersion::legacy, 1, 5);
  for (uint32_t ticket = 0; ticket < 64; ticket++)
    CHECK(verifier->submit(ticket, bytes.data(), bytes.size()));
  verifier->set_notifier(&notifier);  // notifies now or with the first result
  notifier.wait();
  const auto refused = [&] { return !verifier->submit(64, bytes.data(), bytes.size()); };
  CHECK(refused());
  verifier->stop();
  CHECK_EQ(notifier.rings(), size_t{1});
  Outcomes outcomes;
  drain_all(*verifier, outcomes);
  CHECK_EQ(outcomes.size(), size_t{64});
}

TEST(verify_too_long_or_empty_is_invalid) {
  const auto verifier = open(1, 4);
  const Bytes bytes(5000, 0x81);
  CHECK(verifier->submit(1, bytes.data(), bytes.size()));
  CHECK(verifier->submit(2, bytes.data(), 0));
  CHECK(verifier->submit(3, nullptr, 0));
  Outcomes outcomes;
  ResultNotifier notifier;
  verifier->set_notifier(&notifier);
  while (outcomes.size() < 3) {
    drain_all(*verifier, outcomes);
    if (outcomes.size() < 3) notifier.wait();
  }
  for (const auto& [ticket, outcome] : outcomes) CHECK(outcome == VerifyOutcome::invalid);
  verifier->stop();
}

TEST(verify_stop_cancels_unfinished_jobs) {
  const Bytes bytes = signed_transaction(TransactionVersion::v1, 12, 5, 2000);
  size_t cancelled = 0;
  for (uint32_t threads = 1; threads <= 4; threads++) {
    ResultNotifier notifier;
    const auto verifier = open(threads, 256);
    verifier->set_notifier(&notifier);
    for (uint32_t ticket = 0; ticket < 256; ticket++)
      CHECK(verifier->submit(ticket, bytes.data(), bytes.size()));
    notifier.wait();
    verifier->stop();
    verifier->stop();
    CHECK(!verifier->submit(256, bytes.data(), bytes.size()));
    Outcomes outcomes;
    drain_all(*verifier, outcomes);
    CHECK_EQ(outcomes.size(), size_t{256});
    for (const auto& [ticket, outcome] : outcomes) {
      CHECK(outcome != VerifyOutcome::invalid);
      cancelled += outcome == VerifyOutcome::cancelled;
    }
    CHECK(!verifier->submit(256, bytes.data(), bytes.size()));
  }
  CHECK(cancelled > 0);
}

TEST(verify_ends_in_any_state) {
  const Bytes bytes = signed_transaction(TransactionVersion::legacy, 2, 5);
  for (uint32_t round = 0; round < 60; round++) {
    const auto verifier = open(1 + round % 5, 8);
    const uint32_t submitted = round % 10;
    for (uint32_t ticket = 0; ticket < submitted; ticket++)
      CHECK_EQ(verifier->submit(ticket, bytes.data(), bytes.size()), ticket < 8);
    size_t drained = 0;
    VerifyResult result;
    if (round % 3 == 0) drained = verifier->drain(&result, 1);
    CHECK(drained <= submitted);
    if (drained == 1) CHECK(result.outcome == VerifyOutcome::valid);
    // Half of the verifiers are destroyed without stop().
    if (round % 2 == 0) continue;
    verifier->stop();
    Outcomes outcomes;
    drain_all(*verifier, outcomes);
    CHECK_EQ(drained + outcomes.size(), size_t{std::min(submitted, 8u)});
    for (const auto& [ticket, outcome] : outcomes) CHECK(outcome != VerifyOutcome::invalid);
  }
}

TEST(verify_refuses_impossible_options) {
  std::string error;
  CHECK(!SignatureVerifier::open(0, 1, error));
  CHECK_EQ(error, "expected 1 to 64 threads and a queue of 1 to 65536 transactions");
  CHECK(!SignatureVerifier::open(65, 1, error));
  CHECK(!SignatureVerifier::open(1, 0, error));
  CHECK(!SignatureVerifier::open(1, 65'537, error));
}
