// A flood of QUIC packets from forged addresses, for tests of the QUIC ingress.
//
// Built and run by test/support/quic/initial-flood.ts; only for tests. Every packet leaves from
// another address of 127.0.0.0/8, which needs no privilege, so no packet leaves the machine.
//
// Usage: initial-flood PORT COUNT RATE
// Reads the packets in hexadecimal, one for each line, and repeats them in turn. Each repetition
// gets a random destination id (with a short header: 8 bytes), because a known id belongs to an
// address already. Sends to
// 127.0.0.1. RATE is in packets a second; 0: without a pause. Prints one line at the end: "sent N
// bytes N answers N bytes N".

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr uint8_t kLongHeaderBit = 0x80;
constexpr int kBufferBytes = 4 << 20;
constexpr uint32_t kFirstSource = 0x7f010001;  // 127.1.0.1
constexpr uint32_t kSources = 0x7e0000;        // up to 127.127.0.0

using Packet = std::vector<uint8_t>;

// Where the destination id is.
struct IdPlace {
  size_t at;
  size_t length;
};

IdPlace IdOf(const Packet& packet) {
  if ((packet[0] & kLongHeaderBit) == 0) return {1, 8};
  return {6, packet[5]};
}

struct Totals {
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

[[noreturn]] void Fail(const char* what) {
  perror(what);
  exit(1);
}

uint64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::vector<Packet> ReadPackets() {
  std::vector<Packet> packets;
  for (std::string hex; std::getline(std::cin, hex);) {
    Packet packet;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      packet.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    }
    if (packet.size() < 6) continue;
    const IdPlace id = IdOf(packet);
    if (packet.size() > id.at + id.length) packets.push_back(packet);
  }
  if (packets.empty()) Fail("expected packets on the standard input");
  return packets;
}

int OpenSocket() {
  const int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) Fail("bind");
  return descriptor;
}

void SendFrom(int descriptor, uint32_t source, uint16_t port, Packet& packet) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(port);
  iovec data = {packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))] = {};
  msghdr message = {};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_IP;
  header->cmsg_type = IP_PKTINFO;
  header->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info = {};
  info.ipi_spec_dst.s_addr = htonl(source);
  memcpy(CMSG_DATA(header), &info, sizeof info);
  if (sendmsg(descriptor, &message, 0) < 0) Fail("sendmsg");
}

void ReadAnswers(int descriptor, Totals& answers) {
  uint8_t bytes[2048];
  for (;;) {
    const ssize_t length = recv(descriptor, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length < 0) return;
    answers.packets++;
    answers.bytes += static_cast<uint64_t>(length);
  }
}

void WaitUntil(uint64_t due_ns) {
  const uint64_t now_ns = NowNs();
  if (now_ns >= due_ns) return;
  timespec pause = {};
  pause.tv_nsec = static_cast<long>(std::min<uint64_t>(due_ns - now_ns, 999'999'999));
  nanosleep(&pause, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) Fail("expected PORT COUNT RATE");
  const auto port = static_cast<uint16_t>(atoi(arguments[1]));
  const uint64_t total = strtoull(arguments[2], nullptr, 10);
  const double rate = strtod(arguments[3], nullptr);
  std::vector<Packet> packets = ReadPackets();
  const int descriptor = OpenSocket();
  std::mt19937 random(1);
  Totals sent;
  Totals answers;
  const uint64_t begin_ns = NowNs();
  for (uint64_t i = 0; i < total; i++) {
    Packet& packet = packets[i % packets.size()];
    if (i >= packets.size()) {
      const IdPlace id = IdOf(packet);
      for (size_t k = 0; k < id.length; k++) packet[id.at + k] = static_cast<uint8_t>(random());
    }
    SendFrom(descriptor, kFirstSource + static_cast<uint32_t>(i % kSources), port, packet);
    sent.packets++;
    sent.bytes += packet.size();
    if (rate > 0) {
      WaitUntil(begin_ns + static_cast<uint64_t>(static_cast<double>(i + 1) * 1e9 / rate));
    }
    ReadAnswers(descriptor, answers);
  }
  constexpr uint64_t kLastAnswersNs = 500'000'000;
  for (const uint64_t end_ns = NowNs() + kLastAnswersNs; NowNs() < end_ns;) {
    WaitUntil(NowNs() + 10'000'000);
    ReadAnswers(descriptor, answers);
  }
  printf("sent %llu bytes %llu answers %llu bytes %llu\n",
         static_cast<unsigned long long>(sent.packets), static_cast<unsigned long long>(sent.bytes),
         static_cast<unsigned long long>(answers.packets),
         static_cast<unsigned long long>(answers.bytes));
  return 0;
}
