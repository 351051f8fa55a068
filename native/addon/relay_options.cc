#include "addon/relay_options.h"

#include <string>
#include <vector>

#include "addon/arguments.h"

namespace shredway::addon {
namespace {

bool read_endpoints(const Napi::Object& object, const char* name, std::vector<Endpoint>& out) {
  Napi::Value value;
  if (!read_property(object, name, value)) return false;
  if (value.IsUndefined()) return true;
  if (!value.IsArray())
    return fail(object.Env(),
                std::string(name) + ": expected an array of addresses" + received(value));
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); i++) {
    Endpoint endpoint;
    Napi::Value element;
    if (!read_element(array, i, element) || !read_endpoint(element, name, endpoint)) return false;
    out.push_back(endpoint);
  }
  return true;
}

bool read_optional_cpus(const Napi::Object& object, std::vector<int>& out) {
  Napi::Value value;
  if (!read_property(object, "cpus", value)) return false;
  return value.IsUndefined() || read_cpus(value, out);
}

bool read_interfaces(const Napi::Object& object, std::vector<std::string>& out) {
  Napi::Value value;
  if (!read_property(object, "xdpInterfaces", value)) return false;
  return value.IsUndefined() || read_strings(value, "xdpInterfaces", out);
}

}  // namespace

bool read_relay_options(const Napi::Object& object, RelayOptions& options) {
  uint32_t shred_version = 0;
  uint32_t ttl = options.worker.ttl;
  uint32_t dscp = 0;
  Napi::Value send_from;
  const bool read =
      read_endpoints(object, "listen", options.listen) &&
      read_endpoints(object, "multicast", options.multicast) &&
      read_optional_cpus(object, options.cpus) &&
      read_optional_u32(object, "senderThreads", kSenderThreadsMax,
                        options.worker.sender_threads) &&
      read_optional_u32(object, "workers", kWorkersMax, options.workers) &&
      read_optional_bool(object, "authenticate", options.worker.authenticate) &&
      read_optional_u32(object, "shredVersion", 65535, shred_version) &&
      read_optional_u32(object, "tierCount", kTiersMax, options.worker.tier_count) &&
      read_optional_enum<wait_mode_name, kWaitModeCount>(object, "wait", options.worker.wait) &&
      read_optional_u32(object, "spinMicroseconds", 1'000'000, options.worker.spin_us) &&
      read_optional_u32(object, "failedChecksPerSecond", ~0u,
                        options.worker.failed_checks_per_second) &&
      read_optional_bool(object, "gso", options.worker.gso) &&
      read_optional_enum<transmit_mode_name, kTransmitModeCount>(object, "transmit",
                                                                 options.transmit) &&
      read_optional_enum<receive_mode_name, kReceiveModeCount>(object, "receive",
                                                               options.receive) &&
      read_interfaces(object, options.xdp_interfaces) &&
      read_optional_u32(object, "ttl", 255, ttl) && read_optional_u32(object, "dscp", 63, dscp) &&
      read_optional_bool(object, "deshred", options.deshred) &&
      read_optional_bool(object, "arrivals", options.arrivals) &&
      read_optional_bool(object, "keepPackets", options.capture_packets) &&
      read_optional_bool(object, "receiveFilter", options.receive_filter) &&
      read_optional_bool(object, "keepRetransmitterSignatures",
                         options.worker.keep_retransmitter_signatures) &&
      read_optional_bool(object, "prefault", options.worker.prefault) &&
      read_optional_bool(object, "lockMemory", options.lock_memory) &&
      read_optional_bool(object, "answerChallenges", options.worker.answer_challenges) &&
      read_optional_u32(object, "receiveBufferBytes", 1u << 30, options.receive_buffer_bytes) &&
      read_optional_u32(object, "sendBufferBytes", 1u << 30, options.send_buffer_bytes) &&
      read_optional_u32(object, "busyPollMicroseconds", 1'000'000, options.busy_poll_us) &&
      read_property(object, "sendFrom", send_from) &&
      (send_from.IsUndefined() || read_endpoint(send_from, "sendFrom", options.send_from));
  options.worker.shred_version = static_cast<uint16_t>(shred_version);
  options.worker.ttl = static_cast<uint8_t>(ttl);
  options.worker.dscp = static_cast<uint8_t>(dscp);
  return read;
}

}  // namespace shredway::addon
