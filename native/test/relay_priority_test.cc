// The relay's workers: their priority beside the process's other threads.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "check.h"
#include "net/thread.h"
#include "relay/relay.h"
#include "support.h"
#include "system/privileges.h"

using namespace shredway;
using namespace shredway::test;

namespace {

// Nice value of this process's thread of this name; nullopt: none.
std::optional<int> nice_of(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::getline(std::ifstream(task.path() / "comm"), found);
    if (found != name) continue;
    return getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoul(task.path().filename())));
  }
  return std::nullopt;
}

int own_nice() { return getpriority(PRIO_PROCESS, 0); }

std::unique_ptr<Relay> open_relay(uint32_t workers) {
  RelayOptions options;
  options.listen = {ipv4_endpoint("127.0.0.1", workers == 1 ? 0 : 21'997)};
  options.workers = workers;
  options.worker.authenticate = false;
  options.worker.prefault = false;
  options.deshred = false;
  std::string error;
  auto relay = Relay::open(options, error);
  CHECK_EQ(error, "");
  return relay;
}

}  // namespace

TEST(priority_of_workers_is_above_the_thread_that_opens_the_relay) {
  if (std::thread::hardware_concurrency() < 2) SKIP("this machine has one CPU");
  if (RaisedPriority().refusal() != "") SKIP("raising the priority needs CAP_SYS_NICE");
  const int before = own_nice();
  const auto relay = open_relay(1);
  CHECK_EQ(relay->priority_refusal(), "");
  CHECK_EQ(nice_of("shredway-0").value_or(0), RaisedPriority::kNice);
  CHECK_EQ(own_nice(), before);
}

TEST(priority_without_the_privilege_stays_and_the_relay_says_why) {
  std::thread([] {
    drop_privileges_of_this_thread();
    rlimit limit{};
    getrlimit(RLIMIT_NICE, &limit);
    if (limit.rlim_cur > 20) return;  // the limit alone permits it
    const auto relay = open_relay(1);
    if (std::thread::hardware_concurrency() > 1)
      CHECK_EQ(relay->priority_refusal(), "Permission denied");
    CHECK_EQ(nice_of("shredway-0").value_or(-20), own_nice());
  }).join();
}

TEST(priority_stays_if_the_workers_would_use_every_cpu) {
  const unsigned cpus = std::thread::hardware_concurrency();
  if (cpus > kWorkersMax) SKIP("this machine has more CPUs than a relay has workers");
  const auto relay = open_relay(cpus);
  CHECK(relay->priority_refusal().find("leave none for the other threads") != std::string::npos);
  CHECK_EQ(nice_of("shredway-0").value_or(-20), own_nice());
}
