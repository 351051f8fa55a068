// Checks: the cost of inspecting a transaction, and the number of signatures that the verifier's
// threads verify.
//
// One operation at a time on the CPU under test: the inspector on several kinds of transactions,
// base58, and the signatures of one transaction with each library. Then whole queues: the verifier,
// fed by one thread that waits for its notifier, against a bare loop of the same checks on as many
// threads. Times of the queues are wall time, because several threads work; they may use all CPUs.
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "options.h"
#include "report_line.h"
#include "system/base58.h"
#include "timing.h"
#include "transaction/inspector.h"
#include "verify/signature_verifier.h"

namespace shredway::bench {
namespace {

using Bytes = std::vector<uint8_t>;

// ---- transactions ----

constexpr uint8_t kTipByte = 0xa4;

PublicKey key_of(uint8_t byte) {
  PublicKey key;
  key.fill(byte);
  return key;
}

void append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
void append_key(Bytes& bytes, const PublicKey& key) {
  bytes.insert(bytes.end(), key.begin(), key.end());
}

// A legacy transaction of one signer: limit, price, a tip, and `calls` of a program with ten
// accounts each, of `keys` additional keys.
Bytes make_transaction(uint8_t seed, uint8_t keys, uint8_t calls) {
  std::array<uint8_t, 32> key_seed{};
  key_seed[0] = seed;
  const SigningKey signer(key_seed);
  const auto key_count = static_cast<uint8_t>(keys + 5);
  const auto system = static_cast<uint8_t>(keys + 2);
  const auto budget = static_cast<uint8_t>(keys + 3);
  const auto program = static_cast<uint8_t>(keys + 4);
  Bytes message;
  message.reserve(kTransactionBytesMax);
  append(message, {1, 0, 3, key_count});
  append_key(message, signer.public_key());
  append_key(message, key_of(kTipByte));
  for (uint8_t i = 0; i < keys; i++) append_key(message, key_of(static_cast<uint8_t>(i + 10)));
  append_key(message, PublicKey{});
  append_key(message, {0x03, 0x06, 0x46, 0x6f, 0xe5, 0x21, 0x17, 0x32, 0xff, 0xec, 0xad,
                       0xba, 0x72, 0xc3, 0x9b, 0xe7, 0xbc, 0x8c, 0xe5, 0xbb, 0xc5, 0xf7,
                       0x12, 0x6b, 0x2c, 0x43, 0x9b, 0x3a, 0x40, 0x00, 0x00, 0x00});
  append_key(message, key_of(0xee));
  append_key(message, key_of(seed));  // the lifetime
  message.push_back(static_cast<uint8_t>(calls + 3));
  append(message, {budget, 0, 5, 2, 0x40, 0x0d, 0x03, 0x00});
  append(message, {budget, 0, 9, 3, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0});
  append(message, {system, 2, 0, 1, 12, 2, 0, 0, 0, 0x10, 0x27, 0, 0, 0, 0, 0, 0});
  for (uint8_t call = 0; call < calls; call++) {
    append(message, {program, 10});
    for (uint8_t i = 0; i < 10; i++)
      message.push_back(static_cast<uint8_t>((call + i) % (keys + 1)));
    message.push_back(16);
    append(message, Bytes(16, call));
  }
  Signature signature;
  (void)signer.sign(message.data(), message.size(), signature);
  message.insert(message.begin(), signature.begin(), signature.end());
  message.insert(message.begin(), 1);  // how many signatures
  return message;
}

// ---- one operation at a time ----

void report_operation(const char* what, const char* library, uint32_t round, double ns) {
  if (round == 0) return;
  ReportLine line("check");
  line.text("case", what).text("library", library).count("round", round);
  line.number("ns", ns).print();
}

void run_inspect(uint32_t round, size_t operations) {
  const std::array<PublicKey, 2> tips{key_of(kTipByte), key_of(0xa5)};
  const std::array<KeyRange, 1> ranges{{{key_of(0x80), key_of(0x81)}}};
  const TransactionInspector inspector(tips, ranges);
  const std::pair<const char*, Bytes> cases[] = {
      {"inspect a tip alone", make_transaction(1, 0, 0)},
      {"inspect 16 keys, 5 instructions", make_transaction(1, 11, 2)},
      {"inspect 29 keys, 8 instructions", make_transaction(1, 24, 5)},
  };
  for (const auto& [name, wire] : cases) {
    size_t accepted = 0;
    const double ns = per_operation_ns(operations, [&](size_t) {
      Transaction transaction;
      TransactionFacts facts;
      TransactionFault fault;
      accepted += inspector.inspect(wire.data(), wire.size(), transaction, facts, fault);
      keep(facts);
    });
    // A refusal ends early, so its time would be meaningless.
    if (accepted == operations) report_operation(name, "", round, ns);
  }
}

void run_base58(uint32_t round, size_t operations) {
  std::array<char, kBase58TextMax> text;
  std::array<uint8_t, kBase58TextMax> decoded;
  const std::pair<const char*, size_t> cases[] = {
      {"signature", 64}, {"key", 32}, {"1232 bytes", 1232}, {"4096 bytes", 4096}};
  for (const auto& [name, length] : cases) {
    Bytes bytes(length, 0xc7);
    const size_t times = length > 64 ? operations / 100 : operations;
    size_t text_length = 0;
    const double encode_ns = per_operation_ns(times, [&](size_t i) {
      bytes.back() = static_cast<uint8_t>(i);
      text_length = base58_encode(bytes.data(), bytes.size(), text.data());
      keep(text);
    });
    report_operation((std::string("base58, encode ") + name).c_str(), "", round, encode_ns);
    const double decode_ns = per_operation_ns(times, [&](size_t) {
      size_t count = 0;
      keep(base58_decode(text.data(), text_length, decoded.data(), count));
      keep(decoded);
    });
    report_operation((std::string("base58, decode ") + name).c_str(), "", round, decode_ns);
  }
}

void run_verify(uint32_t round, size_t operations) {
  const Ed25519Library usual = ed25519_library();
  for (const Ed25519Library library : {Ed25519Library::libsodium, Ed25519Library::openssl}) {
    if (!ed25519_use(library)) continue;
    const Bytes wire = make_transaction(1, 11, 2);
    Transaction transaction;
    (void)parse_transaction(wire.data(), wire.size(), transaction);
    VerifyingKeys keys;
    PublicKey signer;
    std::memcpy(signer.data(), wire.data() + transaction.keys_begin, signer.size());
    const VerifyingKey imported(signer);
    const double first_ns = per_operation_ns(operations, [&](size_t) {
      keep(imported.verify(wire.data() + transaction.signatures_begin,
                           wire.data() + transaction.message_begin,
                           transaction.message_end - transaction.message_begin));
    });
    const double recurring_ns = per_operation_ns(
        operations, [&](size_t) { keep(verify_signatures(wire.data(), wire.size(), keys)); });
    const double import_ns = per_operation_ns(operations, [&](size_t) {
      const VerifyingKey key(signer);
      keep(key);
    });
    report_operation("verify one signature", ed25519_library_name(), round, first_ns);
    report_operation("verify one signature of a recurring signer", ed25519_library_name(), round,
                     recurring_ns);
    report_operation("import a key", ed25519_library_name(), round, import_ns);
  }
  (void)ed25519_use(usual);
}

// ---- queues ----

class ResultNotifier final : public VerifierNotifier {
 public:
  void notify() override {
    const std::lock_guard lock(mutex_);
    is_notified_ = true;
    condition_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [&] { return is_notified_; });
    is_notified_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool is_notified_ = false;
};

struct QueueTimes {
  uint64_t wall_ns;
  uint64_t feeder_cpu_ns;  // processor time of the thread that submits and drains
  size_t valid;
};

QueueTimes run_bare(const std::vector<Bytes>& wires, size_t jobs, uint32_t threads) {
  std::atomic<size_t> valid{0};
  const uint64_t begin_ns = monotonic_ns();
  std::vector<std::thread> loops;
  for (uint32_t number = 0; number < threads; number++) {
    loops.emplace_back([&, number] {
      VerifyingKeys keys;
      size_t found = 0;
      for (size_t job = number; job < jobs; job += threads) {
        const Bytes& wire = wires[job % wires.size()];
        found += verify_signatures(wire.data(), wire.size(), keys);
      }
      valid += found;
    });
  }
  for (std::thread& loop : loops) loop.join();
  return {monotonic_ns() - begin_ns, 0, valid};
}

QueueTimes run_queue(const std::vector<Bytes>& wires, size_t jobs, uint32_t threads) {
  std::string error;
  ResultNotifier notifier;
  const auto verifier = SignatureVerifier::open(threads, 1024, error);
  if (!verifier) return {};
  verifier->set_notifier(&notifier);
  sleep_ns(5'000'000);  // lets the threads fall asleep
  QueueTimes times{0, 0, 0};
  std::array<VerifyResult, 256> results;
  const uint64_t begin_ns = monotonic_ns();
  const uint64_t begin_cpu_ns = own_cpu_ns();
  size_t submitted = 0;
  for (size_t done = 0; done < jobs;) {
    while (submitted < jobs) {
      const Bytes& wire = wires[submitted % wires.size()];
      if (!verifier->submit(static_cast<uint32_t>(submitted), wire.data(), wire.size())) break;
      submitted++;
    }
    notifier.wait();
    for (size_t count = results.size(); count == results.size(); done += count) {
      count = verifier->drain(results.data(), results.size());
      for (size_t i = 0; i < count; i++) times.valid += results[i].outcome == VerifyOutcome::valid;
    }
  }
  times.wall_ns = monotonic_ns() - begin_ns;
  times.feeder_cpu_ns = own_cpu_ns() - begin_cpu_ns;
  verifier->stop();
  return times;
}

// The event loop's cost of submitting a transaction: if all threads sleep, so that one must be
// woken, and if they are busy.
void run_submit(uint32_t round, size_t operations) {
  constexpr size_t kBurst = 500;
  std::string error;
  ResultNotifier notifier;
  const auto verifier = SignatureVerifier::open(1, kBurst, error);
  if (!verifier) return;
  verifier->set_notifier(&notifier);
  const Bytes wire = make_transaction(1, 11, 2);
  const auto submit_ns = [&](size_t count) {
    const uint64_t begin_ns = own_cpu_ns();
    for (size_t i = 0; i < count; i++)
      (void)verifier->submit(static_cast<uint32_t>(i), wire.data(), wire.size());
    const uint64_t spent_ns = own_cpu_ns() - begin_ns;
    std::array<VerifyResult, kBurst> results;
    for (size_t done = 0; done < count; done += verifier->drain(results.data(), kBurst))
      notifier.wait();
    return spent_ns;
  };
  uint64_t alone_ns = 0;
  uint64_t burst_ns = 0;
  for (size_t i = 0; i < operations; i++) {
    sleep_ns(300'000);
    alone_ns += submit_ns(1);
  }
  const size_t bursts = std::max<size_t>(operations / kBurst, 1);
  for (size_t i = 0; i < bursts; i++) burst_ns += submit_ns(kBurst);
  const auto mean = [](uint64_t sum_ns, size_t count) {
    return static_cast<double>(sum_ns) / static_cast<double>(count);
  };
  report_operation("submit, all threads asleep", "", round, mean(alone_ns, operations));
  report_operation("submit, in bursts of 500", "", round, mean(burst_ns, bursts * kBurst));
}

void run_queues(uint32_t round, size_t jobs) {
  std::vector<Bytes> wires;
  for (uint8_t seed = 0; seed < 100; seed++) wires.push_back(make_transaction(seed, 11, 2));
  for (const uint32_t threads : {1u, 2u}) {
    for (const bool is_bare : {true, false}) {
      const QueueTimes times =
          is_bare ? run_bare(wires, jobs, threads) : run_queue(wires, jobs, threads);
      if (round == 0) continue;
      ReportLine line("checks");
      line.text("driver", is_bare ? "bare loop" : "verifier").count("threads", threads);
      line.count("round", round).count("jobs", jobs).count("valid", times.valid);
      line.count("wall_ns", times.wall_ns).count("feeder_cpu_ns", times.feeder_cpu_ns);
      line.text("library", ed25519_library_name()).print();
    }
  }
}

}  // namespace

void run_checks(const Bench& bench) {
  const bool small = bench.options.small;
  for (uint32_t round = 0; round <= bench.options.rounds; round++) {
    pin(0, bench.tested_cpu);
    run_inspect(round, small ? 2'000 : 200'000);
    run_base58(round, small ? 2'000 : 100'000);
    run_verify(round, small ? 50 : 2'000);
    let_run_on(0, bench.cpus);
    run_submit(round, small ? 50 : 1'000);
    run_queues(round, small ? 200 : 10'000);
  }
}

}  // namespace shredway::bench
