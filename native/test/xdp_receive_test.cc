// Receiving by AF_XDP on a cable: what arrives in the rings, what goes on to the sockets, and what
// is refused, byte for byte.
#include "net/waiter.h"
#include "system/privileges.h"
#include "xdp/xdp_listeners.h"
#include "xdp_receive_support.h"

namespace shredway::test {
namespace {

constexpr uint16_t kPort = 20'000;
const std::vector<Endpoint> kAnyAddress = {any_port(true, kPort), any_port(false, kPort)};

// A cable, receive sockets for both families, and a plane that receives for them.
struct ReceiveLab {
  ReceiveLab(Lab& the_lab, const std::string& name, int number)
      : lab(the_lab), cable(the_lab, name, number), frames(the_lab, cable) {
    for (const bool is_ipv4 : {true, false}) {
      SocketResult result = open_receive_socket({any_port(is_ipv4, kPort), 64u << 20});
      CHECK_EQ(result.error, std::string());
      sockets.push_back(std::move(result.socket));
    }
    plane = open_receiving_plane({{name}, kAnyAddress});
    if (plane) receiver = std::make_unique<XdpReceiver>(plane->receivers(0));
  }
  // Payloads that a socket has now; the sender's work is done when its call returns.
  std::vector<Bytes> by_socket(bool is_ipv4, size_t expected) {
    std::vector<Bytes> out;
    for (ReceivedDatagram& one : arrivals(sockets[is_ipv4 ? 0 : 1].fd(), expected))
      out.push_back(std::move(one.bytes));
    return out;
  }
  void send(const FrameRequest& request) { frames.send(udp_frame(request)); }
  // Sends a shred of the request's kind and checks that it arrives by AF_XDP as the next one.
  void check_next_arrives(Random& random) {
    const FrameRequest request = frames.request(true, kPort, shred_like(random, 1203));
    send(request);
    const auto arrived = receive_by_xdp(*receiver, 1);
    CHECK_EQ(arrived.size(), 1u);
    if (!arrived.empty()) CHECK(arrived[0].payload == request.payload);
  }
  Lab& lab;
  CloneCable cable;
  FrameSender frames;
  std::vector<UdpSocket> sockets;
  std::unique_ptr<XdpPlane> plane;
  std::unique_ptr<XdpReceiver> receiver;
};

// From sockets, whose datagrams have no complete checksum on a veth.
TEST(xdp_receive_delivers_shreds_of_every_size_and_leaves_the_rest_to_sockets) {
  in_clone_lab([](Lab& lab) {
    ReceiveLab own(lab, "shxa0", 41);
    Random random{71};
    for (const bool is_ipv4 : {true, false}) {
      std::vector<Bytes> shreds, others;
      const Address to(own.frames.end(is_ipv4, 1, kPort));
      UdpSocket sender;
      CablePace pace("shxa0");
      lab.in_theirs(
          [&] { sender = UdpSocket(::socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0)); });
      const uint64_t before_ns = system_clock_ns(CLOCK_REALTIME);
      for (size_t bytes = 1; bytes <= 1260; bytes++) {
        Bytes payload = shred_like(random, bytes);
        CHECK_EQ(sendto(sender.fd(), payload.data(), bytes, 0, to.get(), to.bytes), ssize_t(bytes));
        pace.sent();
        (bytes >= 1203 && bytes <= 1232 ? shreds : others).push_back(std::move(payload));
      }
      const auto arrived = receive_by_xdp(*own.receiver, shreds.size());
      const uint64_t after_ns = system_clock_ns(CLOCK_REALTIME);
      CHECK_EQ(arrived.size(), shreds.size());
      uint64_t last_ns = before_ns;
      for (size_t i = 0; i < std::min(arrived.size(), shreds.size()); i++) {
        CHECK(arrived[i].payload == shreds[i]);
        CHECK_EQ(arrived[i].port, kPort);
        CHECK(arrived[i].from.address == own.frames.end(is_ipv4, 2, 0).address);
        CHECK_EQ(arrived[i].from.port, local_endpoint(sender.fd()).port);
        CHECK(arrived[i].received_ns > last_ns && arrived[i].received_ns <= after_ns);
        last_ns = arrived[i].received_ns;
      }
      CHECK(own.by_socket(is_ipv4, others.size()) == others);
    }
    CHECK_EQ(own.receiver->refused(), 0u);
    CHECK_EQ(own.receiver->drops().datagrams, 0u);
  });
}

TEST(xdp_receive_passes_on_what_is_not_a_plain_shred_for_a_listener) {
  in_clone_lab([](Lab& lab) {
    ReceiveLab own(lab, "shxb0", 42);
    Random random{72};
    const auto request = [&](bool is_ipv4) {
      return own.frames.request(is_ipv4, kPort, shred_like(random, 1203));
    };
    const UdpSocket other = open_receive_socket({any_port(true, kPort + 1), 1u << 20}).socket;
    std::vector<Bytes> expected;

    FrameRequest to_other = own.frames.request(true, kPort + 1, shred_like(random, 1203));
    own.send(to_other);
    const auto by_other = arrivals(other.fd(), 1);
    CHECK(by_other.size() == 1 && by_other[0].bytes == to_other.payload);

    for (const int variant : {0x00, 0x3f, 0xc0, 0xff}) {
      FrameRequest noise = request(true);
      noise.payload[64] = uint8_t(variant);
      own.send(noise);
      expected.push_back(noise.payload);
    }
    for (const int variant : {0x40, 0xbf}) {  // the ends of the range
      FrameRequest shred = request(true);
      shred.payload[64] = uint8_t(variant);
      own.send(shred);
    }
    CHECK_EQ(receive_by_xdp(*own.receiver, 2).size(), 2u);

    FrameRequest with_options = request(true);
    Bytes frame = udp_frame(with_options);
    frame.insert(frame.begin() + 34, {1, 1, 1, 0});
    frame[14] = 0x46;
    put_word(frame, 16, uint32_t(frame.size() - 14));
    sum_ipv4(frame, 24);
    own.frames.send(frame);
    expected.push_back(with_options.payload);

    FrameRequest whole = request(true);
    frame = udp_frame(whole);
    Bytes first(frame.begin(), frame.begin() + 34 + 1000),
        second(frame.begin(), frame.begin() + 34);
    second.insert(second.end(), frame.begin() + 34 + 1000, frame.end());
    put_word(first, 16, 20 + 1000);
    put_word(first, 20, 0x2000);
    put_word(second, 16, uint32_t(second.size() - 14));
    put_word(second, 20, 1000 / 8);
    for (Bytes* part : {&first, &second}) {
      sum_ipv4(*part);
      own.frames.send(*part);
    }
    expected.push_back(whole.payload);
    CHECK(own.by_socket(true, expected.size()) == expected);

    // Frames without a receiver: a VLAN, another MAC address, another machine's address, and
    // lengths above that of the frame.
    frame = udp_frame(request(true));
    frame.insert(frame.begin() + 12, {0x81, 0, 0, 5});
    own.frames.send(frame);
    FrameRequest elsewhere = request(true);
    elsewhere.to_mac[5] ^= 0x40;
    own.send(elsewhere);
    elsewhere = request(true);
    elsewhere.to = ipv4(10, 42, 0, 9, kPort);
    own.send(elsewhere);
    frame = udp_frame(request(true));
    frame.resize(frame.size() - 1);
    own.frames.send(frame);
    own.check_next_arrives(random);
    CHECK(own.by_socket(true, 0).empty());
    CHECK_EQ(own.receiver->refused(), 0u);
  });
}

TEST(xdp_receive_passes_on_a_shred_behind_an_extension_header) {
  in_clone_lab([](Lab& lab) {
    ReceiveLab own(lab, "shxv0", 57);
    Random random{77};
    FrameRequest extended = own.frames.request(
        false, kPort, shred_like(random, 1203));  // a destination option of padding
    Bytes frame = udp_frame(extended);
    frame.insert(frame.begin() + 54, {IPPROTO_UDP, 0, 1, 4, 0, 0, 0, 0});
    frame[20] = IPPROTO_DSTOPTS;
    put_word(frame, 18, uint32_t(frame.size() - 54));
    own.frames.send(frame);
    CHECK(own.by_socket(false, 1) == std::vector<Bytes>{extended.payload});
    own.check_next_arrives(random);
  });
}

TEST(xdp_receive_refuses_what_the_network_stack_would_drop) {
  in_clone_lab([](Lab& lab) {
    ReceiveLab own(lab, "shxc0", 43);
    Random random{73};
    std::vector<Bytes> expected;
    uint64_t refused = 0;
    for (const bool is_ipv4 : {true, false}) {
      for (const FrameSum sum :
           {FrameSum::wrong, FrameSum::none, FrameSum::partial, FrameSum::correct}) {
        FrameRequest request = own.frames.request(is_ipv4, kPort, shred_like(random, 1228));
        request.sum = sum;
        own.send(request);
        if (sum == FrameSum::wrong) refused++;
        else expected.push_back(request.payload);
      }
    }
    Bytes wrong_header = udp_frame(own.frames.request(true, kPort, shred_like(random, 1203)));
    wrong_header[25] ^= 1;
    own.frames.send(wrong_header);
    FrameRequest forged = own.frames.request(true, kPort, shred_like(random, 1203));
    forged.from = ipv4(127, 0, 0, 1, 7000);
    own.send(forged);
    forged = own.frames.request(false, kPort, shred_like(random, 1203));
    forged.from = ipv4(10, 43, 0, 2, 7000);
    own.send(forged);
    refused += 3;
    FrameRequest padded = own.frames.request(true, kPort, shred_like(random, 1203));
    Bytes frame = udp_frame(padded);
    frame.resize(frame.size() + 13, 0x77);
    own.frames.send(frame);
    expected.push_back(padded.payload);
    const auto arrived = receive_by_xdp(*own.receiver, expected.size());
    CHECK_EQ(arrived.size(), expected.size());
    for (size_t i = 0; i < std::min(arrived.size(), expected.size()); i++)
      CHECK(arrived[i].payload == expected[i]);
    CHECK_EQ(own.receiver->refused(), refused);
    CHECK(own.by_socket(true, 0).empty());
    CHECK(own.by_socket(false, 0).empty());
  });
}

// All frames of a queue are used, dropped datagrams are counted, and no frame gets lost.
TEST(xdp_receive_counts_what_found_no_free_frame) {
  in_clone_lab([](Lab& lab) {
    ReceiveLab own(lab, "shxd0", 44);
    Random random{74};
    const Bytes frame = udp_frame(own.frames.request(true, kPort, shred_like(random, 1203)));
    uint64_t dropped = 0;
    for (int round = 0; round < 3; round++) {
      for (int sent = 0; sent < 40'000 && own.receiver->drops().datagrams < dropped + 10; sent++)
        own.frames.send(frame);
      const XdpReceiveDrops drops = own.receiver->drops();
      CHECK(drops.datagrams >= dropped + 10);
      CHECK(drops.fill_ring_empty > 0);
      dropped = drops.datagrams;
      CHECK_EQ(receive_by_xdp(*own.receiver, kXdpReceiveFrames).size(), kXdpReceiveFrames);
    }
    own.check_next_arrives(random);
    CHECK_EQ(own.receiver->drops().datagrams, dropped);
  });
}

TEST(xdp_receive_goes_on_after_the_interface_was_down) {
  in_clone_lab([](Lab& lab) {
    ReceiveLab own(lab, "shxe0", 45);
    Random random{75};
    own.check_next_arrives(random);
    CHECK(own.plane->update_endpoints().empty());
    lab.ip("link set shxe0 down\n");
    const std::vector<std::string> down = {"shxe0: it is down; AF_XDP continues when it is up"};
    CHECK(own.plane->update_endpoints() == down);
    lab.ip("link set shxe0 up\naddr replace fd00:45::1/64 dev shxe0 nodad\n");
    CHECK(own.plane->update_endpoints().empty());
    // The other end sends again when it has noticed that ours is up.
    const FrameRequest first = own.frames.request(true, kPort, shred_like(random, 1203));
    std::vector<XdpArrival> arrived;
    for (int tries = 0; tries < 3000 && arrived.empty(); tries++) {
      own.send(first);
      take_arrivals(*own.receiver, arrived);
      if (arrived.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(!arrived.empty());
    own.check_next_arrives(random);
    lab.ip("link set shxe0 address 02:00:00:00:00:99\n");
    CHECK(own.plane->update_endpoints()[0].find("hardware address") != std::string::npos);
    FrameRequest request = own.frames.request(true, kPort, shred_like(random, 1203));
    request.to_mac[5] = 0x99;
    own.send(request);
    CHECK(own.by_socket(true, 1) == std::vector<Bytes>{request.payload});
  });
}

TEST(xdp_receive_survives_the_removal_of_its_interface) {
  in_clone_lab([](Lab& lab) {
    ReceiveLab own(lab, "shxf0", 46);
    std::string error;
    Waiter waiter({}, own.receiver->descriptors(), error);
    CHECK_EQ(error, std::string());
    lab.ip("link del shxf0\n");
    (void)waiter.wait(0);  // may report the removal once
    CHECK(!waiter.wait(1));
    CHECK(own.receiver->receive().empty());
    CHECK(own.plane->update_endpoints()[0].find("it was removed") != std::string::npos);
    CHECK_EQ(own.receiver->drops().datagrams, 0u);
  });
}

TEST(xdp_receive_follows_the_addresses_of_the_machine_without_privileges) {
  in_clone_lab([](Lab& lab) {
    ReceiveLab own(lab, "shxg0", 47);
    Random random{76};
    lab.ip("addr add 10.47.0.7/16 dev shxg0\n");
    FrameRequest request = own.frames.request(true, kPort, shred_like(random, 1203));
    request.to = ipv4(10, 47, 0, 7, kPort);
    own.send(request);
    CHECK_EQ(own.by_socket(true, 1).size(), 1u);
    const auto update = [&] {
      std::thread([&] {
        drop_privileges_of_this_thread();
        CHECK(own.plane->update_endpoints().empty());
      }).join();
    };
    update();
    own.send(request);
    CHECK_EQ(receive_by_xdp(*own.receiver, 1).size(), 1u);
    lab.ip("addr del 10.47.0.7/16 dev shxg0\n");
    update();
    own.send(request);  // the machine drops it
    own.check_next_arrives(random);
    CHECK(own.by_socket(true, 0).empty());
  });
}

TEST(xdp_receive_selects_the_addresses_of_an_interface) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxn0", 48), other(lab, "shxo0", 49);
    lab.ip("addr add fe80::48/64 dev shxn0 nodad\n");
    std::string error;
    const auto texts = [&](const std::vector<Endpoint>& listen) {
      std::vector<std::string> out;
      for (const Endpoint& endpoint : endpoints_behind("shxn0", listen, error))
        if (!to_string(endpoint).starts_with("[fe80::ff:")) out.push_back(to_string(endpoint));
      return out;
    };
    using Texts = std::vector<std::string>;
    CHECK(texts({any_port(true, 5)}) == (Texts{"10.48.0.1:5", "10.49.0.1:5"}));
    CHECK(texts({any_port(false, 5)}) ==
          (Texts{"[fd00:48::1]:5", "[fd00:49::1]:5", "[fe80::48]:5"}));
    CHECK(texts({ipv4(10, 48, 0, 1, 6), ipv4(127, 0, 0, 1, 6), ipv4(224, 0, 0, 1, 6)}) ==
          Texts{"10.48.0.1:6"});
    CHECK(texts({loopback(false, 7)}).empty());
    CHECK_EQ(error, std::string());
  });
}

}  // namespace
}  // namespace shredway::test
