// XDP plane as a system resource: privileges, queues, names, and complete removal.
#include "xdp/xdp_plane.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "system/privileges.h"
#include "xdp/xdp_program.h"
#include "xdp_support.h"

namespace shredway::test {
namespace {

// The error of a plane that must not open.
std::string refused_plane(const XdpPlaneOptions& options) {
  std::string error;
  CHECK(XdpPlane::open(options, error) == nullptr);
  return error;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void set_queues(const std::string& name, uint32_t count) {
  const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_SCHANNELS;
  channels.rx_count = channels.tx_count = count;
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  CHECK_EQ(ioctl(socket.fd(), SIOCETHTOOL, &request), 0);
}

TEST(xdp_plane_names_what_is_missing) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxh0", 31);
    CHECK(contains(refused_plane({}), "at least one interface"));
    CHECK(contains(refused_plane({.interfaces = std::vector<std::string>(9, "shxh0")}),
                   "at most 8 interfaces"));
    CHECK(contains(refused_plane({.interfaces = {"shxh0", "nothing0"}}),
                   "interface nothing0: if_nametoindex: No such device"));
    CHECK(contains(
        refused_plane({.interfaces = {"shxh0"}, .workers = 2}),
        "a free transmit queue for each of 2 workers, got 1 queues (other programs use 0)"));
    const auto plane = open_xdp_plane({"shxh0"});
    CHECK_EQ(plane->description(), std::string("shxh0 (copies)"));
    CHECK(
        contains(refused_plane({.interfaces = {"shxh0"}}), "got 1 queues (other programs use 1)"));
  });
}

TEST(xdp_plane_reports_the_missing_privilege) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxi0", 32);
    std::thread([] {
      drop_privileges_of_this_thread();
      CHECK(contains(refused_plane({.interfaces = {"shxi0"}}), "grant CAP_NET_RAW"));
      CHECK(contains(XdpSocket::try_out(), "grant CAP_NET_RAW"));
    }).join();
    CHECK_EQ(XdpSocket::try_out(), std::string());
  });
}

TEST(xdp_plane_gives_every_worker_a_queue_and_needs_no_privilege_once_open) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxj0", 33);
    set_queues("shxj0", 2);
    const auto plane = open_xdp_plane({"shxj0"}, 2);
    if (!plane) return;
    CloneReceiver receiver(lab, true);
    std::thread([&] {
      drop_privileges_of_this_thread();
      Random random{51};
      for (const uint32_t worker : {0u, 1u}) {
        const std::vector<CloneTarget> list = cable.targets(true, 5, receiver.port());
        const CloneLists lists({&list, 1}, xdp_test_header(), {true, true});
        CloneCounts counts;
        XdpBatch batch(plane->senders(worker), counts);
        batch.use_lists(lists);
        Burst burst(random, 3, 1203);
        batch.add(0, burst.group(), 0, false);
        batch.flush();
        CHECK_EQ(receiver.read(15).size(), 15u);
        CHECK_EQ(counts.sent[4], 3u);
      }
    }).join();
  });
}

// A veth of this kernel does not send without copies, so the program is tried alone.
TEST(xdp_plane_leaves_nothing_behind_when_killed) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxk0", 34);
    std::array<int, 2> pipe;
    CHECK_EQ(::pipe(pipe.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
      std::string error;
      const auto plane = XdpPlane::open({.interfaces = {"shxk0"}}, error);
      const UdpSocket program = attach_pass_program(if_nametoindex("shxk0"), error);
      const char opened = plane && program.valid() ? 'y' : 'n';
      if (write(pipe[1], &opened, 1) < 0) _exit(1);
      for (;;) pause();
    }
    char opened = 0;
    CHECK_EQ(read(pipe[0], &opened, 1), 1);
    CHECK_EQ(opened, 'y');
    std::string error;
    CHECK(!attach_pass_program(cable.interface, error).valid());  // there is one
    CHECK(contains(error, "bpf(BPF_LINK_CREATE)"));
    CHECK(contains(refused_plane({.interfaces = {"shxk0"}}), "other programs use 1"));
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, nullptr, 0), child);
    error.clear();
    UdpSocket program;
    std::unique_ptr<XdpPlane> plane;
    for (int tries = 0; tries < 500 && !(plane && program.valid()); tries++) {
      if (!program.valid()) program = attach_pass_program(cable.interface, error);
      if (!plane) plane = XdpPlane::open({.interfaces = {"shxk0"}}, error);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(plane != nullptr);
    CHECK(program.valid());
    close(pipe[0]);
    close(pipe[1]);
  });
}

// The program passes every packet, and traffic continues while it comes and goes.
TEST(xdp_plane_program_lets_everything_pass) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxl0", 35);
    UdpSocket receiver;
    SocketResult opened = open_receive_socket({ipv4(10, 35, 0, 1), 1u << 20, false, 0});
    receiver = std::move(opened.socket);
    const Address to(local_endpoint(receiver.fd()));
    std::string error;
    UdpSocket program = attach_pass_program(cable.interface, error);
    CHECK_EQ(error, std::string());
    for (int i = 0; i < 2; i++) {
      lab.in_theirs([&] {
        const UdpSocket sender(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        CHECK_EQ(sendto(sender.fd(), "ab", 2, 0, to.get(), to.bytes), 2);
      });
      pollfd entry = {receiver.fd(), POLLIN, 0};
      CHECK_EQ(poll(&entry, 1, 3000), 1);
      char bytes[8];
      CHECK_EQ(recv(receiver.fd(), bytes, sizeof bytes, MSG_DONTWAIT), 2);
      program = UdpSocket();
    }
  });
}

TEST(xdp_plane_reads_what_a_driver_supports) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxm0", 36);
    CHECK(device_xdp_support(cable.interface) != XdpSupport::zero_copy);
    const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    CHECK_EQ(device_queues(socket.fd(), "shxm0").transmit, 1u);
    CHECK_EQ(device_queues(socket.fd(), "lo").receive, 1u);
  });
}

}  // namespace
}  // namespace shredway::test
