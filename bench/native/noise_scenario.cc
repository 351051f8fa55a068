// Noise: the current stability of the machine.
//
// Repeats the same work: hashing (the processor alone) and small system calls. Varying processor
// time indicates shared caches and clocks; wall time above it indicates that other programs had the
// CPU.
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "clocks.h"
#include "crypto/sha256.h"
#include "options.h"
#include "report_line.h"

namespace shredway::bench {
namespace {

constexpr size_t kWorkBytes = 16384;

uint64_t work(const std::vector<uint8_t>& bytes) {
  Sha256Digest digest;
  uint64_t mixed = 0;
  for (int i = 0; i < 8; i++) {
    sha256(nullptr, 0, bytes.data(), bytes.size(), digest);
    mixed += digest[0];
  }
  for (int i = 0; i < 500; i++) mixed += static_cast<uint64_t>(syscall(SYS_getppid));
  return mixed;
}

}  // namespace

void run_noise(const Bench& bench) {
  pin(0, bench.tested_cpu);
  const std::vector<uint8_t> bytes(kWorkBytes, 0x5a);
  const uint32_t slots = bench.options.small ? 30 : 100;
  uint64_t mixed = work(bytes);
  for (uint32_t slot = 1; slot <= slots; slot++) {
    const uint64_t cpu_before = own_cpu_ns(), wall_before = monotonic_ns();
    for (int i = 0; i < 40; i++) mixed += work(bytes);
    const uint64_t cpu_ns = own_cpu_ns() - cpu_before;
    const uint64_t wall_ns = monotonic_ns() - wall_before;
    ReportLine("noise")
        .count("round", slot)
        .count("cpu_ns", cpu_ns)
        .count("wall_ns", wall_ns)
        .print();
  }
  if (mixed == 0) ReportLine("noise_checksum").print();  // keeps the work from being optimised away
}

}  // namespace shredway::bench
