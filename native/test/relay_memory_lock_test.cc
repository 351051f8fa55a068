// The memory of the relay's workers that is locked in RAM.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "check.h"
#include "relay/relay.h"
#include "support.h"
#include "system/privileges.h"

using namespace shredway;
using namespace shredway::test;

namespace {

// Locked memory of this process, in kB.
uint64_t locked_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmLck:")) return std::stoull(line.substr(sizeof "VmLck:"));
  return 0;
}

std::unique_ptr<Relay> relay_with_lock(bool lock_memory) {
  RelayOptions options;
  options.listen = {ipv4_endpoint("127.0.0.1", 0)};
  options.worker.authenticate = false;
  options.worker.prefault = false;
  options.lock_memory = lock_memory;
  std::string error;
  auto relay = Relay::open(options, error);
  CHECK_EQ(error, "");
  return relay;
}

}  // namespace

TEST(memory_lock_of_a_relay_covers_the_recent_shreds_and_ends_with_it) {
  const uint64_t before = locked_kilobytes();
  auto relay = relay_with_lock(true);
  if (!relay->memory_lock_refusal().empty()) SKIP("the limit of locked memory is too low here");
  constexpr uint64_t kRecentShredsKilobytes = 300 * 1024;
  CHECK(relay->locked_bytes() / 1024 > kRecentShredsKilobytes);
  CHECK(locked_kilobytes() > before + kRecentShredsKilobytes);
  relay.reset();
  CHECK_EQ(locked_kilobytes(), before);
}

TEST(memory_lock_is_off_unless_it_was_requested) {
  const uint64_t before = locked_kilobytes();
  const auto relay = relay_with_lock(false);
  CHECK_EQ(relay->locked_bytes(), size_t{0});
  CHECK_EQ(relay->memory_lock_refusal(), "");
  CHECK_EQ(locked_kilobytes(), before);
}

TEST(memory_lock_that_the_limit_refuses_leaves_nothing_locked_and_the_relay_says_why) {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const rlimit low = {65'536, limit.rlim_max};
  if (limit.rlim_max < low.rlim_cur) SKIP("the limit of locked memory is too low here");
  CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &low), 0);
  std::thread([] {
    drop_privileges_of_this_thread();  // CAP_IPC_LOCK
    const uint64_t before = locked_kilobytes();
    const auto relay = relay_with_lock(true);
    const std::string& refusal = relay->memory_lock_refusal();
    CHECK(refusal.find("expected a limit of locked memory of at least ") != std::string::npos);
    CHECK(refusal.find(", got 65536 bytes") != std::string::npos);
    CHECK_EQ(relay->locked_bytes(), size_t{0});
    CHECK_EQ(locked_kilobytes(), before);
  }).join();
  setrlimit(RLIMIT_MEMLOCK, &limit);
}

TEST(memory_lock_touches_the_pages_of_a_range_only_on_request) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = 8 * page;
  void* memory =
      mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, 2 * bytes, MADV_NOHUGEPAGE);
  const auto in_memory = [&](size_t from) {
    unsigned char pages[8] = {};
    mincore(static_cast<uint8_t*>(memory) + from, bytes, pages);
    size_t count = 0;
    for (const unsigned char one : pages) count += one & 1;
    return count;
  };
  {
    MemoryLock lock;
    lock.add(memory, bytes);
    lock.add_on_touch(static_cast<uint8_t*>(memory) + bytes, bytes);
    CHECK_EQ(in_memory(0), size_t{0});
    if (!lock.lock().empty()) SKIP("the limit of locked memory is too low here");
    CHECK_EQ(lock.locked_bytes(), 2 * bytes);
    CHECK_EQ(in_memory(0), size_t{8});
    CHECK_EQ(in_memory(bytes), size_t{0});
  }
  munmap(memory, 2 * bytes);
}

TEST(memory_lock_names_the_sum_of_all_ranges_if_the_system_refuses_one) {
  const uint64_t before = locked_kilobytes();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MemoryLock lock;
  lock.add(memory, page);
  lock.add_on_touch(nullptr, 2 * page);  // not mapped
  const std::string refusal = lock.lock();
  CHECK(refusal.find("at least " + std::to_string(3 * page) + " bytes, got ") != std::string::npos);
  CHECK_EQ(lock.locked_bytes(), size_t{0});
  CHECK_EQ(locked_kilobytes(), before);
  munmap(memory, page);
}
