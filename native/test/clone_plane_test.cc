// Clone plane as a system resource: the privileges that it needs, the sockets that can run it, the
// loss of its parts, and complete removal.
#include "clone/clone_plane.h"

#include <linux/bpf.h>
#include <linux/capability.h>
#include <net/if.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "clone_support.h"
#include "system/privileges.h"

namespace shredway::test {
namespace {

// A lab's cable, a receiver for the first address of both families, and a batch for 3 targets.
struct CloneFixture {
  CloneFixture(const Lab& lab, const std::string& name, int number)
      : cable(lab, name, number), receiver(lab, true), plane(open_plane()) {}
  std::unique_ptr<CloneBatch> batch(CloneCounts& tally) const {
    auto out = std::make_unique<CloneBatch>(plane->region(0), CloneHeader{}, true, tally);
    const std::vector<CloneTarget> list = cable.targets(true, 3, receiver.port());
    CHECK_EQ(out->set_lists({&list, 1}), 3u);
    return out;
  }
  CloneCable cable;
  CloneReceiver receiver;
  std::unique_ptr<ClonePlane> plane;
};

void send_one(CloneBatch& batch, Random& random) {
  Burst burst(random, 2, 1203);
  batch.add(0, burst.group(), 1, false);
  batch.flush();
}

void check_not_cloned(const CloneCounts& tally, std::initializer_list<int> errors) {
  CHECK_EQ(tally.not_executed.size(), 1u);
  for (const CloneCounts::NotCloned& reported : tally.not_executed) {
    CHECK_EQ(reported.count, 3u);
    CHECK_EQ(reported.from, 1u);
    CHECK_EQ(reported.datagrams, 2u);
    CHECK(std::find(errors.begin(), errors.end(), reported.error_number) != errors.end());
  }
}

// Runs the body on a thread with these capabilities only, in this thread's namespace.
void with_capabilities(std::initializer_list<unsigned> capabilities,
                       const std::function<void()>& body) {
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    for (const unsigned capability : capabilities) {
      sets[capability / 32].effective |= 1u << capability % 32;
      sets[capability / 32].permitted |= 1u << capability % 32;
    }
    CHECK_EQ(syscall(SYS_capset, &header, sets.data()), 0);
    body();
  }).join();
}

TEST(clone_plane_triggers_ignore_icmp_about_the_path_mtu) {
  in_clone_lab([](Lab&) {
    const auto plane = open_plane(2);
    if (!plane) return;
    for (const uint32_t worker : {0u, 1u}) {
      const CloneRegion region = plane->region(worker);
      check_path_mtu_is_ignored(region.trigger_ipv4, true);
      check_path_mtu_is_ignored(region.trigger_ipv6, false);
    }
  });
}

TEST(clone_plane_reports_the_missing_privilege) {
  in_clone_lab([](Lab&) {
    constexpr unsigned kPerfmon = 38, kBpf = 39;  // CAP_PERFMON, CAP_BPF
    for (const auto& capabilities : {std::initializer_list<unsigned>{},
                                     {CAP_NET_ADMIN},
                                     {kBpf, kPerfmon},
                                     {CAP_NET_ADMIN, kPerfmon}})
      with_capabilities(capabilities, [] {
        std::string error;
        CHECK(ClonePlane::open({.workers = 1, .interface = "shwtest%d"}, error) == nullptr);
        CHECK(error.find("grant") != std::string::npos);
        CHECK(error.find("CAP_NET_ADMIN") != std::string::npos);
        CHECK(error.find("CAP_BPF and CAP_PERFMON") != std::string::npos);
        CHECK_EQ(if_nametoindex("shwtest0"), 0u);
      });
    with_capabilities({CAP_NET_ADMIN, kBpf, kPerfmon}, [] { CHECK(open_plane() != nullptr); });
  });
}

TEST(clone_plane_refuses_invalid_names_and_worker_counts) {
  std::string error;
  CHECK(ClonePlane::open({.workers = 0, .interface = "shwtest%d"}, error) == nullptr);
  CHECK(error.find("workers, got 0") != std::string::npos);
  CHECK(ClonePlane::open({.workers = 1000, .interface = "shwtest%d"}, error) == nullptr);
  CHECK(error.find("workers, got 1000") != std::string::npos);
  in_clone_lab([](Lab&) {
    for (const char* name : {"", "a-name-longer-than-fifteen-bytes"}) {
      std::string refused;
      CHECK(ClonePlane::open({.workers = 1, .interface = name}, refused) == nullptr);
      CHECK(refused.find("expected an interface name") != std::string::npos);
    }
    std::string refused;
    CHECK(ClonePlane::open({.workers = 1, .interface = "lo"}, refused) == nullptr);
    CHECK(refused.find("TUNSETIFF for lo") != std::string::npos);
  });
}

TEST(clone_plane_needs_no_capability_once_it_is_open) {
  in_clone_lab([](Lab& lab) {
    CloneFixture fixture(lab, "shwf0", 11);
    if (!fixture.plane) return;
    const std::string name = fixture.plane->interface();
    CHECK(if_nametoindex(name.c_str()) != 0);
    with_capabilities({}, [&] {
      CHECK(!thread_has_privileges());
      Random random{31};
      CloneCounts tally;
      auto batch = fixture.batch(tally);
      send_one(*batch, random);
      batch->settle();
      CHECK(tally.not_executed.empty());
      CHECK_EQ(tally.sent[0], 2u);
      CHECK_EQ(fixture.receiver.read(6).size(), 6u);
      batch.reset();
      fixture.plane.reset();
      CHECK_EQ(if_nametoindex(name.c_str()), 0u);
    });
  });
}

TEST(clone_plane_executes_only_triggers_of_its_own_sockets) {
  in_clone_lab([](Lab& lab) {
    CloneFixture fixture(lab, "shwg0", 12);
    if (!fixture.plane) return;
    Random random{32};
    CloneCounts tally;
    auto batch = fixture.batch(tally);
    send_one(*batch, random);
    CHECK_EQ(fixture.receiver.read(6).size(), 6u);
    const CloneRegion region = fixture.plane->region(0);
    CloneJobRow& job = region.jobs[0];
    const uint64_t runs = job.runs;
    uint64_t cookie = 0;
    socklen_t bytes = sizeof cookie;
    CHECK_EQ(getsockopt(region.trigger_ipv4, SOL_SOCKET, SO_COOKIE, &cookie, &bytes), 0);
    const UdpSocket stranger(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const std::string& name = fixture.plane->interface();
    CHECK_EQ(
        setsockopt(stranger.fd(), SOL_SOCKET, SO_BINDTODEVICE, name.data(), socklen_t(name.size())),
        0);
    const auto trigger = [&](int fd, uint32_t port) {
      const Address to(ipv4(192, 0, 0, 8, uint16_t(port)));
      const Bytes payload = random_bytes(random, 1203);
      (void)sendto(fd, payload.data(), payload.size(), MSG_DONTWAIT, to.get(), to.bytes);
    };
    // A job in force: triggers from other sockets for it, and triggers for numbers without a job.
    job.socket_cookie = cookie;
    for (const uint32_t port : {0u, 1u, 2u, 64u, 65u, 65535u}) trigger(stranger.fd(), port);
    CHECK_EQ(job.runs, runs);
    for (const uint32_t port : {2u, 64u, 65u, 65535u}) trigger(region.trigger_ipv4, port);
    CHECK_EQ(job.runs, runs);
    // Without a job, the own socket's trigger has no effect either: a late trigger.
    job.socket_cookie = 0;
    trigger(region.trigger_ipv4, 1);
    CHECK_EQ(job.runs, runs);
    CHECK_EQ(fixture.receiver.read(0).size(), 0u);
    // Shows that the test's own triggers are valid.
    job.socket_cookie = cookie;
    trigger(region.trigger_ipv4, 1);
    CHECK_EQ(job.runs, runs + 1);
    CHECK_EQ(fixture.receiver.read(3).size(), 3u);
    // The program does not trust values in a worker's memory beyond their bounds.
    job.first = ~0u - 1;
    trigger(region.trigger_ipv4, 1);
    job.first = 0;
    job.count = job.targets = ~0u;
    trigger(region.trigger_ipv4, 1);
    job.socket_cookie = 0;
  });
}

// Packets sent and dropped by an interface of this thread's namespace: fields 10 to 13 of its line.
uint64_t packets_out(const std::string& interface) {
  std::ifstream file("/proc/thread-self/net/dev");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    if (name != interface + ":") continue;
    std::array<uint64_t, 12> counts{};
    for (uint64_t& count : counts) fields >> count;
    return counts[9] + counts[10] + counts[11];
  }
  return ~uint64_t{0};
}

TEST(clone_plane_sends_nothing_by_its_own_interface) {
  in_clone_lab([](Lab& lab) {
    CloneFixture fixture(lab, "shwm0", 21);
    if (!fixture.plane) return;
    Random random{37};
    CloneCounts tally;
    auto batch = fixture.batch(tally);
    for (int i = 0; i < 5; i++) send_one(*batch, random);
    CHECK_EQ(fixture.receiver.read(30).size(), 30u);
    CHECK_EQ(packets_out(fixture.plane->interface()), 0u);
  });
}

TEST(clone_plane_reports_a_missing_hook) {
  in_clone_lab([](Lab& lab) {
    CloneFixture fixture(lab, "shwh0", 13);
    if (!fixture.plane) return;
    Random random{33};
    CloneCounts tally;
    auto batch = fixture.batch(tally);
    send_one(*batch, random);
    CHECK(tally.not_executed.empty());
    CHECK_EQ(std::system(("tc filter del dev " + fixture.plane->interface() + " egress").c_str()),
             0);
    send_one(*batch, random);
    batch->settle();
    check_not_cloned(tally, {ENOLINK});
    CHECK_EQ(tally.sent[0], 2u);
    CHECK_EQ(fixture.receiver.read(6).size(), 6u);
  });
}

TEST(clone_plane_reports_a_missing_interface) {
  in_clone_lab([](Lab& lab) {
    for (const bool del : {false, true}) {
      CloneFixture fixture(lab, del ? "shwi0" : "shwi1", del ? 14 : 15);
      if (!fixture.plane) return;
      Random random{34};
      CloneCounts tally;
      auto batch = fixture.batch(tally);
      send_one(*batch, random);
      CHECK(tally.not_executed.empty());
      const std::string& name = fixture.plane->interface();
      lab.ip(del ? "link del " + name + "\n" : "link set " + name + " down\n");
      send_one(*batch, random);
      batch->settle();
      check_not_cloned(tally, {ENODEV, ENETUNREACH, ENETDOWN, ENXIO});
      CHECK_EQ(tally.sent[0], 2u);
      CHECK_EQ(fixture.receiver.read(6).size(), 6u);
    }
  });
}

TEST(clone_plane_counts_refusals_of_a_target_interface) {
  in_clone_lab([](Lab& lab) {
    CloneFixture fixture(lab, "shwj0", 16);
    const CloneCable other(lab, "shwj1", 17), vanishing(lab, "shwj2", 18);
    if (!fixture.plane) return;
    Random random{35};
    CloneCounts tally;
    CloneBatch batch(fixture.plane->region(0), CloneHeader{}, true, tally);
    const uint16_t port = fixture.receiver.port();
    const std::vector<CloneTarget> list = {fixture.cable.target(0, behind_cable(true, 0, port)),
                                           other.target(1, behind_cable(true, 1, port)),
                                           vanishing.target(2, behind_cable(true, 2, port))};
    batch.set_lists({&list, 1});
    lab.ip("link set shwj1 down\nlink del shwj2\n");
    send_one(batch, random);
    batch.settle();
    CHECK(tally.not_executed.empty());
    CHECK_EQ(tally.sent[0], 2u);
    CHECK_EQ(tally.sent[1] + tally.sent[2], 0u);
    CHECK_EQ(tally.refused[1].size(), 1u);
    CHECK_EQ(
        tally.refused[1][SendFailure::buffer_full] + tally.refused[1][SendFailure::unreachable],
        2u);
    CHECK_EQ(tally.refused[2][SendFailure::unreachable], 2u);
    CHECK_EQ(fixture.receiver.read(2).size(), 2u);
    // Served again after the interface is up.
    lab.ip("link set shwj1 up\n");
    send_one(batch, random);
    batch.settle();
    CHECK_EQ(tally.sent[1], 2u);
    CHECK_EQ(fixture.receiver.read(4).size(), 4u);
  });
}

TEST(clone_plane_supports_two_planes_and_several_workers) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shwk0", 19);
    const auto first = open_plane(2), second = open_plane(1);
    if (!first || !second) return;
    CHECK(first->interface() != second->interface());
    const std::array<CloneRegion, 3> regions = {first->region(0), first->region(1),
                                                second->region(0)};
    constexpr uint32_t kRounds = 200, kTargets = 20;
    std::array<std::unique_ptr<CloneReceiver>, 3> receivers;
    for (auto& receiver : receivers) receiver = std::make_unique<CloneReceiver>(lab, true);
    std::array<CloneCounts, 3> tallies;
    std::vector<std::thread> workers;
    for (size_t i = 0; i < regions.size(); i++)
      workers.emplace_back([&, i] {
        const std::vector<CloneTarget> list = cable.targets(true, kTargets, receivers[i]->port());
        CloneBatch batch(regions[i], CloneHeader{}, true, tallies[i]);
        batch.set_lists({&list, 1});
        Bytes payload(1203, uint8_t(i));
        iovec part = {payload.data(), payload.size()};
        for (uint32_t round = 0; round < kRounds; round++) {
          batch.add(0, {&part, 1, 1203}, round, false);
          batch.flush();
        }
        batch.set_lists({});
      });
    for (std::thread& worker : workers) worker.join();
    for (size_t i = 0; i < regions.size(); i++) {
      CHECK(tallies[i].not_executed.empty());
      CHECK(tallies[i].refused.empty());
      for (uint32_t tag = 0; tag < kTargets; tag++) CHECK_EQ(tallies[i].sent[tag], kRounds);
      const auto got = receivers[i]->read(kRounds * kTargets);
      CHECK_EQ(got.size(), kRounds * kTargets);
      for (const CloneArrival& arrival : got) CHECK(arrival.bytes == Bytes(1203, uint8_t(i)));
    }
  });
}

// ---- complete removal -----------------------------------------------------------------------

int bpf(bpf_cmd command, bpf_attr& attributes) {
  return int(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

bpf_attr no_attributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

// Ids of the maps of the program at the interface's hook.
std::vector<uint32_t> map_ids_of(const std::string& interface) {
  FILE* pipe = popen(("tc filter show dev " + interface + " egress").c_str(), "r");
  if (!pipe) return {};
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  pclose(pipe);
  const size_t at = text.find(" id ");
  CHECK(at != std::string::npos);
  if (at == std::string::npos) return {};
  bpf_attr by_id = no_attributes();
  by_id.prog_id = uint32_t(std::atoi(text.c_str() + at + 4));
  const UdpSocket program(bpf(BPF_PROG_GET_FD_BY_ID, by_id));
  std::vector<uint32_t> ids(8);
  bpf_prog_info info{};
  info.nr_map_ids = uint32_t(ids.size());
  info.map_ids = reinterpret_cast<uintptr_t>(ids.data());
  bpf_attr question = no_attributes();
  question.info.bpf_fd = uint32_t(program.fd());
  question.info.info_len = sizeof info;
  question.info.info = reinterpret_cast<uintptr_t>(&info);
  CHECK_EQ(bpf(BPF_OBJ_GET_INFO_BY_FD, question), 0);
  ids.resize(std::min<size_t>(info.nr_map_ids, ids.size()));
  return ids;
}

bool map_is_there(uint32_t id) {
  bpf_attr by_id = no_attributes();
  by_id.map_id = id;
  return UdpSocket(bpf(BPF_MAP_GET_FD_BY_ID, by_id)).valid();
}

// The kernel removes maps shortly after their last user. Bounded: 5 s.
void check_removed(const std::string& interface, const std::vector<uint32_t>& maps) {
  CHECK_EQ(if_nametoindex(interface.c_str()), 0u);
  CHECK_EQ(maps.size(), 2u);
  for (const uint32_t id : maps) {
    for (int i = 0; i < 500 && map_is_there(id); i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(!map_is_there(id));
  }
}

TEST(clone_plane_leaves_nothing_behind) {
  in_clone_lab([](Lab& lab) {
    CloneFixture fixture(lab, "shwl0", 20);
    if (!fixture.plane) return;
    Random random{36};
    CloneCounts tally;
    send_one(*fixture.batch(tally), random);
    const std::string name = fixture.plane->interface();
    const std::vector<uint32_t> maps = map_ids_of(name);
    for (const uint32_t id : maps) CHECK(map_is_there(id));
    fixture.plane.reset();
    check_removed(name, maps);
  });
}

TEST(clone_plane_leaves_nothing_behind_when_killed) {
  in_clone_lab([](Lab&) {
    std::array<int, 2> pipe;
    CHECK_EQ(::pipe(pipe.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
      std::string error;
      const auto plane = ClonePlane::open({.workers = 2, .interface = "shwkill%d"}, error);
      const std::string reported = plane ? plane->interface() : "!" + error;
      if (write(pipe[1], reported.data(), reported.size()) < 0) _exit(1);
      for (;;) pause();
    }
    std::array<char, 256> text{};
    const ssize_t length = read(pipe[0], text.data(), text.size() - 1);
    const std::string name(text.data(), size_t(std::max<ssize_t>(length, 0)));
    CHECK_EQ(name, std::string("shwkill0"));
    const std::vector<uint32_t> maps = map_ids_of(name);
    for (const uint32_t id : maps) CHECK(map_is_there(id));
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, nullptr, 0), child);
    check_removed(name, maps);
    close(pipe[0]);
    close(pipe[1]);
  });
}

}  // namespace
}  // namespace shredway::test
