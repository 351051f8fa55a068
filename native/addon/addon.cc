// Addon: the boundary between the control plane (JavaScript) and the data plane (native).
//
// The only folder that uses Node-API. describe() returns the names of all counters and refusals;
// the classes open relays, senders and verifiers. Whole tables and transactions go in; snapshots
// and facts come out. Nothing crosses per packet, and no native thread runs JavaScript (some call a
// notifier: notifier.h).
#include <fcntl.h>
#include <napi.h>
#include <net/if.h>

#include <algorithm>
#include <climits>

#include "addon/arguments.h"
#include "addon/connection_socket_handle.h"
#include "addon/fast_path_handle.h"
#include "addon/first_packet_handle.h"
#include "addon/probe_handle.h"
#include "addon/relay_handle.h"
#include "addon/traffic_handles.h"
#include "addon/transaction_handles.h"
#include "crypto/ed25519.h"
#include "crypto/sha256.h"
#include "net/interface_view.h"
#include "net/port_split.h"
#include "net/udp_socket.h"
#include "system/confinement.h"
#include "system/kernel_clock.h"
#include "system/privileges.h"
#include "system/service_notify.h"
#include "system/thread_cpus.h"
#include "xdp/xdp.h"

namespace shredway::addon {
namespace {

template <typename Name>
Napi::Array names(Napi::Env env, size_t count, Name name) {
  const auto array = Napi::Array::New(env, count);
  for (uint32_t i = 0; i < count; i++) array.Set(i, Napi::String::New(env, name(i)));
  return array;
}

Napi::Object limits(Napi::Env env) {
  const auto object = Napi::Object::New(env);
  const auto set = [&](const char* name, size_t value) {
    object.Set(name, Napi::Number::New(env, static_cast<double>(value)));
  };
  set("sources", kSourcesMax);
  set("sourceEntries", kSourceEntriesMax);
  set("destinations", kDestinationsMax);
  set("tiers", kTiersMax);
  set("workers", kWorkersMax);
  set("leaderKeys", kLeaderKeysMax);
  set("leaderSlots", kLeaderSlotsMax);
  set("histogramBuckets", kHistogramBuckets);
  set("histogramPrecisionBits", kHistogramPrecisionBits);
  set("slotRows", kSlotRows);
  set("slotRowFields", kSlotRowFields);
  set("watchedSignatures", WatchList::kSignaturesMax);
  set("streamFilters", kStreamFiltersMax);
  set("streamFilterIds", kStreamFilterIds);
  set("streamAccounts", kStreamAccountsMax);
  set("tipAddresses", AddressSet::kAddressesMax);
  set("verifierThreads", kVerifierThreadsMax);
  set("verifierQueue", kVerifierQueueMax);
  return object;
}

// Names in the order of their counters, limits, and the implementations in use.
Napi::Value describe(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto object = Napi::Object::New(env);
  object.Set("verdicts", names(env, kVerdictCount,
                               [](size_t i) { return verdict_name(static_cast<Verdict>(i)); }));
  object.Set("verdictMeanings", names(env, kVerdictCount, [](size_t i) {
               return verdict_meaning(static_cast<Verdict>(i));
             }));
  object.Set("sendFailures", names(env, kSendFailureCount, [](size_t i) {
               return send_failure_name(static_cast<SendFailure>(i));
             }));
  object.Set("nextHopStates", names(env, kNextHopStateCount, [](size_t i) {
               return next_hop_state_name(static_cast<NextHopState>(i));
             }));
  object.Set("workerCounters", names(env, kWorkerCounterCount, [](size_t i) {
               return worker_counter_name(static_cast<WorkerCounter>(i));
             }));
  object.Set("deshredCounters", names(env, kDeshredCounterCount, [](size_t i) {
               return deshred_counter_name(static_cast<DeshredCounter>(i));
             }));
  object.Set("events", names(env, kEventKindCount,
                             [](size_t i) { return event_name(static_cast<EventKind>(i)); }));
  object.Set("streamMessages", names(env, kStreamMessageKindCount, [](size_t i) {
               return stream_message_name(static_cast<StreamMessageKind>(i));
             }));
  const auto refusals = [&](const char* (*text)(TransactionRefusal)) {
    return names(env, kTransactionRefusalCount,
                 [&](size_t i) { return text(static_cast<TransactionRefusal>(i)); });
  };
  object.Set("transactionRefusals", refusals(transaction_refusal_name));
  object.Set("transactionExpected", refusals(transaction_refusal_expected));
  object.Set("transactionGot", refusals(transaction_refusal_got));
  const auto co_signing = [&](const char* (*text)(CoSigningRefusal)) {
    return names(env, kCoSigningRefusalCount,
                 [&](size_t i) { return text(static_cast<CoSigningRefusal>(i)); });
  };
  object.Set("coSigningRefusals", co_signing(co_signing_refusal_name));
  object.Set("coSigningExpected", co_signing(co_signing_refusal_expected));
  object.Set("coSigningGot", co_signing(co_signing_refusal_got));
  object.Set("limits", limits(env));
  object.Set("ed25519", Napi::String::New(env, ed25519_library_name()));
  object.Set("sha256Accelerated", Napi::Boolean::New(env, sha256_is_accelerated()));
  return object;
}

// -> number of threads that kept a privilege.
Napi::Value give_up_network_privileges(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(),
                           static_cast<double>(drop_network_privileges_of_all_threads()));
}

// (parent's process id, bytes) -> the steps that the system refused; empty: none.
Napi::Value confine(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t parent = 0;
  uint32_t memory_bytes = 0;
  if (!read_u32(info[0], "parent", INT_MAX, parent)) return env.Undefined();
  if (!read_u32(info[1], "memoryBytes", UINT32_MAX, memory_bytes)) return env.Undefined();
  return Napi::String::New(env, confine_process(static_cast<pid_t>(parent), memory_bytes));
}

// (number of descriptors) -> why it could not; empty: nothing to do.
Napi::Value restart_ringless(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t descriptors = 0;
  if (!read_u32(info[0], "descriptors", INT_MAX, descriptors)) return env.Undefined();
  return Napi::String::New(env, restart_without_rings(static_cast<int>(descriptors)));
}

// (CPU numbers) -> error text, empty on success.
Napi::Value keep_threads_on_cpus(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  std::vector<int> cpus;
  if (!read_cpus(info[0], cpus)) return env.Undefined();
  return Napi::String::New(env, keep_threads_on(cpus));
}

// (address, text) -> error text, empty on success.
Napi::Value notify(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsString() || !info[1].IsString()) {
    fail(env, "notifyServiceManager: expected two strings");
    return env.Undefined();
  }
  const std::string address = info[0].As<Napi::String>();
  const std::string text = info[1].As<Napi::String>();
  return Napi::String::New(env, notify_service_manager(address, text.data(), text.size()));
}

// { descriptor }, owned by the caller, or { errorNumber, error }.
Napi::Object opened(Napi::Env env, SocketResult result) {
  const auto object = Napi::Object::New(env);
  if (const int descriptor = result.socket.release(); descriptor >= 0) {
    object.Set("descriptor", descriptor);
  } else {
    object.Set("errorNumber", result.error_number);
    object.Set("error", result.error);
  }
  return object;
}

// (endpoint, whether it receives) -> the bound socket.
Napi::Value open_bound_socket_of(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Endpoint address;
  if (!read_endpoint(info[0], "address", address)) return env.Undefined();
  return opened(env, open_bound_socket(address, info[1].ToBoolean().Value()));
}

// (descriptor) -> the second socket at its port.
Napi::Value split_port_of(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t fd = 0;
  if (!read_u32(info[0], "descriptor", INT_MAX, fd)) return env.Undefined();
  return opened(env, split_port(static_cast<int>(fd)));
}

// (descriptor) -> true if no other socket may bind its port.
Napi::Value refuse_port_sharing_of(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t fd = 0;
  if (!read_u32(info[0], "descriptor", INT_MAX, fd)) return env.Undefined();
  return Napi::Boolean::New(env, refuse_port_sharing(static_cast<int>(fd)));
}

// (descriptor) -> another one of the same socket, owned by the caller; -1: the system refused.
Napi::Value duplicate_descriptor(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t fd = 0;
  if (!read_u32(info[0], "descriptor", INT_MAX, fd)) return env.Undefined();
  return Napi::Number::New(env, fcntl(static_cast<int>(fd), F_DUPFD_CLOEXEC, 0));
}

// (name) -> { index, isUp, mtu, addresses, groups } of a network interface, index 0 if it does not
// exist, or { error }. Addresses are concatenated, 16 bytes each.
Napi::Value interface_of(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsString()) {
    fail(env, "readInterface: expected a string" + received(info[0]));
    return env.Undefined();
  }
  std::string error;
  const InterfaceView view = read_interface(info[0].As<Napi::String>().Utf8Value(), error);
  const auto object = Napi::Object::New(env);
  if (!error.empty()) {
    object.Set("error", error);
    return object;
  }
  const auto joined = [&](const std::vector<AddressBytes>& addresses) {
    auto array = Napi::Uint8Array::New(env, addresses.size() * 16);
    for (size_t i = 0; i < addresses.size(); i++)
      std::copy(addresses[i].begin(), addresses[i].end(), array.Data() + i * 16);
    return array;
  };
  object.Set("index", Napi::Number::New(env, view.index));
  object.Set("isUp", Napi::Boolean::New(env, view.up));
  object.Set("addresses", joined(view.addresses));
  object.Set("groups", joined(view.groups));
  return object;
}

// Returns null if the kernel does not report its clock.
Napi::Value kernel_clock(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const KernelClock clock = read_kernel_clock();
  if (!clock.known) return env.Null();
  const auto object = Napi::Object::New(env);
  const auto set = [&](const char* name, double value) {
    object.Set(name, Napi::Number::New(env, value));
  };
  object.Set("synchronised", Napi::Boolean::New(env, clock.synchronised));
  set("offsetNs", static_cast<double>(clock.offset_ns));
  set("estimatedErrorUs", static_cast<double>(clock.estimated_error_us));
  set("maximumErrorUs", static_cast<double>(clock.maximum_error_us));
  return object;
}

// (interfaces) -> { refusal, receiveRefusal, support, receiveQueues }: why this process cannot open
// AF_XDP sockets, and load the program that receives (empty: it can); for each interface
// "zero_copy", "copy", "unknown" (an old kernel) or "absent", and its number of queues.
Napi::Value xdp_support(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  std::vector<std::string> interfaces;
  if (!read_strings(info[0], "interfaces", interfaces)) return env.Undefined();
  const auto object = Napi::Object::New(env);
  object.Set("refusal", XdpSocket::try_out());
  object.Set("receiveRefusal", XdpReceiveProgram::try_out());
  const auto queues = Napi::Array::New(env, interfaces.size());
  for (uint32_t i = 0; i < interfaces.size(); i++)
    queues.Set(i, Napi::Number::New(env, xdp_receive_queues(interfaces[i])));
  object.Set("receiveQueues", queues);
  object.Set("support", names(env, interfaces.size(), [&](uint32_t i) {
               const uint32_t index = if_nametoindex(interfaces[i].c_str());
               return index ? xdp_support_name(device_xdp_support(index)) : "absent";
             }));
  return object;
}

}  // namespace

Napi::Object register_addon(Napi::Env env, Napi::Object exports) {
  exports.Set("describe", Napi::Function::New<describe>(env));
  exports.Set("giveUpNetworkPrivileges", Napi::Function::New<give_up_network_privileges>(env));
  exports.Set("confineProcess", Napi::Function::New<confine>(env));
  exports.Set("restartWithoutRings", Napi::Function::New<restart_ringless>(env));
  exports.Set("keepThreadsOn", Napi::Function::New<keep_threads_on_cpus>(env));
  exports.Set("notifyServiceManager", Napi::Function::New<notify>(env));
  exports.Set("openBoundSocket", Napi::Function::New<open_bound_socket_of>(env));
  exports.Set("splitPort", Napi::Function::New<split_port_of>(env));
  exports.Set("refusePortSharing", Napi::Function::New<refuse_port_sharing_of>(env));
  exports.Set("duplicateDescriptor", Napi::Function::New<duplicate_descriptor>(env));
  exports.Set("readInterface", Napi::Function::New<interface_of>(env));
  exports.Set("readXdpSupport", Napi::Function::New<xdp_support>(env));
  exports.Set("kernelClock", Napi::Function::New<kernel_clock>(env));
  exports.Set("Relay", RelayHandle::define(env));
  exports.Set("SimulatedRelay", RelayHandle::define_simulated(env));
  exports.Set("PacedSender", PacedSenderHandle::define(env));
  exports.Set("ReachabilityProbe", ReachabilityProbeHandle::define(env));
  exports.Set("Shredder", ShredderHandle::define(env));
  exports.Set("TransactionInspector", TransactionInspectorHandle::define(env));
  exports.Set("SignatureVerifier", SignatureVerifierHandle::define(env));
  exports.Set("FirstPackets", FirstPacketHandle::define(env));
  exports.Set("ConnectionSocket", ConnectionSocketHandle::define(env));
  exports.Set("FastPath", FastPathHandle::define(env));
  exports.Set("SimulatedFastPath", FastPathHandle::define_simulated(env));
  exports.Set("writeOffer", Napi::Function::New<write_offer_of>(env));
  exports.Set("findCoSigningPlace", Napi::Function::New<find_co_signing_place>(env));
  exports.Set("encodeBase58", Napi::Function::New<encode_base58>(env));
  exports.Set("decodeBase58", Napi::Function::New<decode_base58>(env));
  return exports;
}

}  // namespace shredway::addon

using shredway::addon::register_addon;
NODE_API_MODULE(shredway, register_addon)
