// Receiving by AF_XDP as a system resource: queues and workers, both directions at once,
// privileges, and complete removal.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "net/steering.h"
#include "system/privileges.h"
#include "xdp_receive_support.h"

namespace shredway::test {
namespace {

constexpr uint16_t kListenPort = 20'001;

// A cable whose ends have several queues. The other end sends by the queue that a sender selects.
void use_queues(const Lab& lab, const std::string& name, uint32_t count) {
  set_queues(name, count);
  lab.in_theirs([&] { set_queues(name, count); });
}

// Shreds of many FEC sets, each from several senders, so that the cable spreads them over queues.
TEST(xdp_receive_serves_every_queue_and_steers_each_fec_set_to_one_worker) {
  in_clone_lab([](Lab& lab) {
    constexpr uint32_t kWorkers = 3, kQueues = 2;
    const CloneCable cable(lab, "shxp0", 51);
    use_queues(lab, "shxp0", kQueues);
    const auto plane = open_receiving_plane({{"shxp0"}, {any_port(true, kListenPort)}, kWorkers});
    if (!plane) return;
    std::vector<Bytes> sent;
    for (uint64_t slot = 5000; slot < 5004; slot++)
      for (Bytes& packet : make_slot({.slot = slot, .fec_sets = 3}).packets)
        sent.push_back(std::move(packet));
    const Address to(ipv4(10, 51, 0, 1, kListenPort));
    CablePace pace("shxp0");
    lab.in_theirs([&] {
      for (int sender = 0; sender < 8; sender++) {
        const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        for (const Bytes& packet : sent) {
          CHECK_EQ(sendto(socket.fd(), packet.data(), packet.size(), 0, to.get(), to.bytes),
                   ssize_t(packet.size()));
          pace.sent();
        }
      }
    });
    std::set<size_t> used_queues;
    size_t total = 0;
    for (uint32_t worker = 0; worker < kWorkers; worker++) {
      std::vector<Bytes> expected, got;
      for (const Bytes& packet : sent) {
        Shred shred;
        CHECK(check_packet(packet.data(), packet.size(), shred) == Verdict::first);
        if (steered_worker(shred.slot, shred.fec_set_index, kWorkers) == worker)
          expected.insert(expected.end(), 8, packet);
      }
      const std::vector<XdpSocket*> sockets = plane->receivers(worker);
      CHECK_EQ(sockets.size(), kQueues);
      for (size_t queue = 0; queue < sockets.size(); queue++) {
        XdpReceiver receiver(std::span(&sockets[queue], 1));
        std::vector<XdpArrival> arrived;
        take_arrivals(receiver, arrived);
        if (!arrived.empty()) used_queues.insert(queue);
        for (XdpArrival& one : arrived) got.push_back(std::move(one.payload));
        CHECK_EQ(receiver.drops().datagrams, 0u);
      }
      total += got.size();
      CHECK(sorted(got) == sorted(expected));
    }
    CHECK_EQ(total, sent.size() * 8);
    CHECK_EQ(used_queues.size(), kQueues);
  });
}

// Workers of one queue return their frames at the same time, more often than there are frames.
TEST(xdp_receive_returns_every_frame_of_a_queue_that_workers_share) {
  in_clone_lab([](Lab& lab) {
    constexpr uint32_t kWorkers = 2, kRounds = 150;
    const CloneCable cable(lab, "shxq0", 52);
    FrameSender frames(lab, cable);
    const auto plane = open_receiving_plane({{"shxq0"}, {any_port(true, kListenPort)}, kWorkers});
    if (!plane) return;
    std::vector<Bytes> to_send;
    for (uint64_t slot = 5000; slot < 5002; slot++)
      for (const Bytes& packet : make_slot({.slot = slot, .fec_sets = 2}).packets)
        to_send.push_back(udp_frame(frames.request(true, kListenPort, packet)));
    std::array<std::atomic<uint64_t>, kWorkers> counts{};
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (uint32_t worker = 0; worker < kWorkers; worker++)
      threads.emplace_back([&, worker] {
        XdpReceiver receiver(plane->receivers(worker));
        while (!done) counts[worker] += receiver.receive().size();
      });
    uint64_t sent = 0;
    const auto all_arrived = [&] { return counts[0] + counts[1] == sent; };
    bool complete = true;
    for (uint32_t round = 0; round < kRounds && complete; round++) {
      for (const Bytes& frame : to_send) frames.send(frame);
      sent += to_send.size();
      for (int tries = 0; tries < 5000 && !all_arrived(); tries++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      complete = all_arrived();
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(complete);
    CHECK(sent > 2 * kXdpReceiveFrames);
    CHECK(counts[0] > 0 && counts[1] > 0);
    for (uint32_t worker = 0; worker < kWorkers; worker++)
      CHECK_EQ(XdpReceiver(plane->receivers(worker)).drops().datagrams, 0u);
  });
}

TEST(xdp_receive_and_send_share_a_queue) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxr0", 53);
    FrameSender frames(lab, cable);
    CloneReceiver destination(lab, true);
    const auto plane = open_receiving_plane({{"shxr0"}, {any_port(true, kListenPort)}, 1, true});
    if (!plane) return;
    CHECK_EQ(plane->description(), std::string("shxr0 (copies)"));
    const std::vector<CloneTarget> list = cable.targets(true, 4, destination.port());
    const CloneLists lists({&list, 1}, xdp_test_header(), {true, true});
    CloneCounts counts;
    XdpBatch batch(plane->senders(0), counts);
    batch.use_lists(lists);
    XdpReceiver receiver(plane->receivers(0));
    Random random{81};
    // More frames in both directions than either has.
    constexpr int kRounds = 200;
    for (int round = 0; round < kRounds; round++) {
      std::vector<Bytes> sent;
      for (int i = 0; i < 48; i++) {
        sent.push_back(shred_like(random, 1228));
        frames.send(udp_frame(frames.request(true, kListenPort, sent.back())));
      }
      std::vector<Bytes> received;
      while (received.size() < sent.size()) {
        const auto packets = receiver.receive();
        if (packets.empty()) break;
        std::vector<iovec> parts;  // sent from the frames in which they arrived
        for (const ReceivedPacket& packet : packets) {
          received.emplace_back(packet.bytes, packet.bytes + packet.length);
          parts.push_back({packet.bytes, packet.length});
        }
        batch.add(0, {parts.data(), uint32_t(parts.size()), 1228}, 0, false);
        batch.flush();
        receiver.release();
      }
      CHECK(received == sent);
      std::map<std::string, std::vector<Bytes>> by_destination;
      for (CloneArrival& arrival : destination.read(sent.size() * list.size()))
        by_destination[to_string(arrival.to)].push_back(std::move(arrival.bytes));
      CHECK_EQ(by_destination.size(), list.size());
      for (const auto& [name, bytes] : by_destination) CHECK(bytes == sent);
    }
    CHECK_EQ(counts.sent[3], uint64_t{kRounds} * 48);
    CHECK_EQ(receiver.drops().datagrams, 0u);
    const Bytes frame = udp_frame(frames.request(true, kListenPort, shred_like(random, 1228)));
    for (int sent = 0; sent < 20'000 && receiver.drops().datagrams == 0; sent++) frames.send(frame);
    CHECK(receiver.drops().datagrams > 0 && receiver.drops().fill_ring_empty > 0);
  });
}

TEST(xdp_receive_names_what_is_missing) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxs0", 54);
    const XdpPlaneOptions options = {
        .interfaces = {"shxs0"}, .sends = false, .listen = {any_port(true, kListenPort)}};
    std::thread([&] {
      drop_privileges_of_this_thread();
      CHECK(contains(refused_plane(options), "grant CAP_NET_ADMIN and CAP_BPF"));
      CHECK(contains(XdpReceiveProgram::try_out(), "grant CAP_NET_ADMIN and CAP_BPF"));
    }).join();
    CHECK_EQ(XdpReceiveProgram::try_out(), std::string());
    XdpPlaneOptions unreachable = options;
    unreachable.listen = {ipv4(127, 0, 0, 1, kListenPort)};
    CHECK(contains(refused_plane(unreachable),
                   "interface shxs0: no address of relay.listen can be reached through it"));
    lab.ip("link add shbr0 type bridge\nlink set shbr0 up\n");
    XdpPlaneOptions without_driver = options;
    without_driver.interfaces = {"shbr0"};
    CHECK(contains(refused_plane(without_driver), "runs no XDP programs"));
    without_driver.interfaces = {"lo"};
    CHECK(contains(refused_plane(without_driver), "expected an Ethernet interface"));
    std::string error;
    const UdpSocket program = attach_pass_program(cable.interface, error);
    CHECK(contains(refused_plane(options), "has another XDP program"));
  });
}

// A queue that another program holds is an error, and the kernel has nothing of this plane then.
TEST(xdp_receive_needs_all_queues) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxt0", 55);
    use_queues(lab, "shxt0", 2);
    std::string error;
    const auto other = XdpSocket::open({.interface = cable.interface, .queue = 1}, error);
    CHECK(other != nullptr);
    const XdpPlaneOptions options = {
        .interfaces = {"shxt0"}, .sends = false, .listen = {any_port(true, kListenPort)}};
    CHECK(contains(refused_plane(options), "expected all 2 receive queues to be free"));
    CHECK(attach_pass_program(cable.interface, error).valid());
  });
}

TEST(xdp_receive_leaves_nothing_behind_when_killed) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxu0", 56);
    FrameSender frames(lab, cable);
    const SocketResult listener = open_receive_socket({any_port(true, kListenPort), 1u << 20});
    const XdpPlaneOptions options = {.interfaces = {"shxu0"},
                                     .listen = {any_port(true, kListenPort)}};
    std::array<int, 2> pipe;
    CHECK_EQ(::pipe(pipe.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
      std::string error;
      const auto plane = XdpPlane::open(options, error);
      const char opened = plane ? 'y' : 'n';
      if (write(pipe[1], &opened, 1) < 0) _exit(1);
      for (;;) pause();
    }
    char opened = 0;
    CHECK_EQ(read(pipe[0], &opened, 1), 1);
    CHECK_EQ(opened, 'y');
    Random random{82};
    const FrameRequest request = frames.request(true, kListenPort, shred_like(random, 1203));
    frames.send(udp_frame(request));
    CHECK(arrivals(listener.socket.fd(), 0).empty());  // the child has it
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, nullptr, 0), child);
    const auto plane = open_receiving_plane({{"shxu0"}, options.listen});  // waits for the queue
    if (plane) {
      XdpReceiver receiver(plane->receivers(0));
      frames.send(udp_frame(request));
      CHECK_EQ(receive_by_xdp(receiver, 1).size(), 1u);
    }
    close(pipe[0]);
    close(pipe[1]);
  });
}

}  // namespace
}  // namespace shredway::test
