// Relay handle in a simulation: datagrams come from JavaScript and return to it, and each step has
// the time that JavaScript gives. Only tests open such relays. A relay of the kernel's network has
// no such methods.
//
// Datagrams in buffers follow each other. Each has a header of 46 bytes, little-endian:
//   [0, 8) time, CLOCK_REALTIME in ns   [8, 26) sender (sent: zeros)   [26, 44) receiver
//   [44, 46) length of the datagram, whose bytes follow
#include <cstring>

#include "addon/arguments.h"
#include "addon/relay_handle.h"

namespace shredway::addon {
namespace {

constexpr size_t kFromAt = 8;
constexpr size_t kToAt = kFromAt + kEndpointBytes;
constexpr size_t kLengthAt = kToAt + kEndpointBytes;
constexpr size_t kHeaderBytes = kLengthAt + 2;

void write_datagram(const MemoryNetwork::Datagram& datagram, uint8_t* out) {
  const auto length = static_cast<uint16_t>(datagram.bytes.size());
  std::memset(out, 0, kHeaderBytes);
  std::memcpy(out, &datagram.time_ns, sizeof datagram.time_ns);
  std::memcpy(out + kToAt, datagram.peer.address.data(), datagram.peer.address.size());
  std::memcpy(out + kToAt + datagram.peer.address.size(), &datagram.peer.port, 2);
  std::memcpy(out + kLengthAt, &length, sizeof length);
  std::memcpy(out + kHeaderBytes, datagram.bytes.data(), datagram.bytes.size());
}

}  // namespace

Napi::Function RelayHandle::define_simulated(Napi::Env env) {
  static char simulated;  // the constructor compares its address to know its class
  auto all = methods();
  all.push_back(InstanceMethod<&RelayHandle::step>("step"));
  all.push_back(InstanceMethod<&RelayHandle::take_sent>("takeSent"));
  all.push_back(InstanceMethod<&RelayHandle::fail_sends>("failSends"));
  all.push_back(InstanceMethod<&RelayHandle::refuse>("refuse"));
  all.push_back(InstanceMethod<&RelayHandle::report_unreachable>("reportUnreachable"));
  return DefineClass(env, "NativeSimulatedRelay", all, &simulated);
}

// Queues all datagrams of the buffer; throws and returns false at the first that cannot be.
bool RelayHandle::deliver(Napi::Env env, const uint8_t* bytes, size_t length) {
  for (size_t at = 0; at < length;) {
    uint16_t datagram_bytes = 0;
    if (length - at >= kHeaderBytes)
      std::memcpy(&datagram_bytes, bytes + at + kLengthAt, sizeof datagram_bytes);
    if (length - at < kHeaderBytes + datagram_bytes)
      return fail(env, "step: expected whole datagrams, got " + std::to_string(length - at) +
                           " bytes at the end");
    MemoryNetwork::Datagram datagram;
    const uint8_t* begin = bytes + at + kHeaderBytes;
    std::memcpy(&datagram.time_ns, bytes + at, sizeof datagram.time_ns);
    datagram.peer = endpoint_from_bytes(bytes + at + kFromAt);
    datagram.bytes.assign(begin, begin + datagram_bytes);
    const Endpoint to = endpoint_from_bytes(bytes + at + kToAt);
    if (!network_->deliver(to, std::move(datagram)))
      return fail(env, "step: no socket takes a datagram to " + to_string(to));
    at += kHeaderBytes + datagram_bytes;
  }
  return true;
}

// (bigint, Uint8Array): the time and the datagrams that have arrived.
Napi::Value RelayHandle::step(const Napi::CallbackInfo& info) {
  uint64_t now_ns = 0;
  Bytes datagrams{};
  if (!is_open(info.Env()) || !read_u64(info[0], "nowNs", now_ns) ||
      !read_bytes(info[1], "datagrams", datagrams) ||
      !deliver(info.Env(), datagrams.data, datagrams.length))
    return info.Env().Undefined();
  network_->set_time(now_ns);
  relay_->step();
  return info.Env().Undefined();
}

// (Uint8Array) -> bytes of the oldest sent datagrams that fit, which are removed.
Napi::Value RelayHandle::take_sent(const Napi::CallbackInfo& info) {
  Bytes into{};
  if (!is_open(info.Env()) || !read_bytes(info[0], "takeSent", into)) return info.Env().Undefined();
  size_t at = 0;
  auto& sent = network_->sent();
  while (!sent.empty() && kHeaderBytes + sent.front().bytes.size() <= into.length - at) {
    write_datagram(sent.front(), const_cast<uint8_t*>(into.data) + at);
    at += kHeaderBytes + sent.front().bytes.size();
    sent.pop_front();
  }
  return Napi::Number::New(info.Env(), static_cast<double>(at));
}

// (destination, errno): datagrams to it fail with this errno from now on; 0: no longer.
void RelayHandle::fail_sends(const Napi::CallbackInfo& info) {
  Endpoint to;
  uint32_t error_number = 0;
  if (is_open(info.Env()) && read_endpoint(info[0], "destination", to) &&
      read_u32(info[1], "errno", 4095, error_number))
    network_->fail(to, static_cast<int>(error_number));
}

// (destination, refuses): whether ICMP errors answer datagrams to it from now on.
void RelayHandle::refuse(const Napi::CallbackInfo& info) {
  Endpoint to;
  if (is_open(info.Env()) && read_endpoint(info[0], "destination", to))
    network_->refuse(to, info[1].ToBoolean());
}

// (destination): an ICMP error about a datagram to it arrives.
void RelayHandle::report_unreachable(const Napi::CallbackInfo& info) {
  Endpoint to;
  if (is_open(info.Env()) && read_endpoint(info[0], "destination", to))
    network_->report_unreachable(to);
}

}  // namespace shredway::addon
