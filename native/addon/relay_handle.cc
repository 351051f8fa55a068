#include "addon/relay_handle.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "addon/arguments.h"
#include "addon/relay_options.h"

namespace shredway::addon {
namespace {

// Copies signatures of 64 bytes each; throws and returns false for other lengths.
bool read_signatures(const Napi::Value& value, std::vector<TransactionSignature>& out) {
  Bytes bytes{};
  if (!read_bytes(value, "signatures", bytes)) return false;
  if (bytes.length % kTransactionSignatureBytes != 0)
    return fail(value.Env(), "signatures: expected a multiple of 64 bytes, got " +
                                 std::to_string(bytes.length) + " bytes in all");
  out.resize(bytes.length / kTransactionSignatureBytes);
  if (!out.empty()) std::memcpy(out.data(), bytes.data, bytes.length);
  return true;
}

}  // namespace

std::vector<Napi::ClassPropertyDescriptor<RelayHandle>> RelayHandle::methods() {
  return {InstanceMethod<&RelayHandle::publish_sources>("publishSources"),
          InstanceMethod<&RelayHandle::publish_fanout>("publishFanout"),
          InstanceMethod<&RelayHandle::publish_leaders>("publishLeaders"),
          InstanceMethod<&RelayHandle::join_group>("joinGroup"),
          InstanceMethod<&RelayHandle::leave_group>("leaveGroup"),
          InstanceMethod<&RelayHandle::snapshot_words>("snapshotWords"),
          InstanceMethod<&RelayHandle::read_counters>("readCounters"),
          InstanceMethod<&RelayHandle::drain_events>("drainEvents"),
          InstanceMethod<&RelayHandle::drain_traces>("drainTraces"),
          InstanceMethod<&RelayHandle::set_slot_bounds>("setSlotBounds"),
          InstanceMethod<&RelayHandle::set_slot_floor>("setSlotFloor"),
          InstanceMethod<&RelayHandle::watch_signatures>("watchSignatures"),
          InstanceMethod<&RelayHandle::unwatch_signatures>("unwatchSignatures"),
          InstanceMethod<&RelayHandle::drain_landings>("drainLandings"),
          InstanceMethod<&RelayHandle::on_landings>("onLandings"),
          InstanceMethod<&RelayHandle::publish_stream_filters>("publishStreamFilters"),
          InstanceMethod<&RelayHandle::drain_streams>("drainStreams"),
          InstanceMethod<&RelayHandle::streams_lost>("streamsLost"),
          InstanceMethod<&RelayHandle::read_stream_losses>("readStreamLosses"),
          InstanceMethod<&RelayHandle::on_streams>("onStreams"),
          InstanceMethod<&RelayHandle::set_stream_history>("setStreamHistory"),
          InstanceMethod<&RelayHandle::read_stream_history>("readStreamHistory"),
          InstanceMethod<&RelayHandle::grant_replay>("grantReplay"),
          InstanceMethod<&RelayHandle::change_lookup_tables>("changeLookupTables"),
          InstanceMethod<&RelayHandle::drain_lookup_reports>("drainLookupReports"),
          InstanceMethod<&RelayHandle::lookup_table_counts>("lookupTableCounts"),
          InstanceMethod<&RelayHandle::drain_arrivals>("drainArrivals"),
          InstanceMethod<&RelayHandle::drain_packets>("drainPackets"),
          InstanceMethod<&RelayHandle::measuring_losses>("measuringLosses"),
          InstanceMethod<&RelayHandle::receive_drops>("receiveDrops"),
          InstanceMethod<&RelayHandle::addresses>("addresses"),
          InstanceMethod<&RelayHandle::granted_receive_buffer>("grantedReceiveBuffer"),
          InstanceMethod<&RelayHandle::transmit>("transmit"),
          InstanceMethod<&RelayHandle::receive_interfaces>("receiveInterfaces"),
          InstanceMethod<&RelayHandle::update_receiving>("updateReceiving"),
          InstanceMethod<&RelayHandle::sender_threads>("senderThreads"),
          InstanceMethod<&RelayHandle::priority_refusal>("priorityRefusal"),
          InstanceMethod<&RelayHandle::memory_lock>("memoryLock"),
          InstanceMethod<&RelayHandle::close>("close")};
}

Napi::Function RelayHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeRelay", methods());
}

RelayHandle::RelayHandle(const Napi::CallbackInfo& info) : ObjectWrap(info), env_(info.Env()) {
  if (!info[0].IsObject()) {
    fail(info.Env(), "open: expected an options object" + received(info[0]));
    return;
  }
  RelayOptions options;
  if (!read_relay_options(info[0].As<Napi::Object>(), options)) return;
  if (info.Data()) network_ = std::make_unique<MemoryNetwork>();
  options.network = network_.get();
  std::string error;
  relay_ = Relay::open(options, error);
  if (!relay_) Napi::Error::New(info.Env(), error).ThrowAsJavaScriptException();
}

RelayHandle::~RelayHandle() { end(); }

// Ends the threads first, then the notifiers that they call.
void RelayHandle::end() {
  relay_.reset();
  if (!notifier_ && !stream_notifier_) return;
  napi_remove_env_cleanup_hook(env_, end_with_environment, this);
  notifier_.reset();
  stream_notifier_.reset();
}

void RelayHandle::end_with_environment(void* handle) { static_cast<RelayHandle*>(handle)->end(); }

bool RelayHandle::is_open(Napi::Env env) const {
  if (!relay_)
    Napi::Error::New(env, "the relay is closed: open a new one").ThrowAsJavaScriptException();
  return relay_ != nullptr;
}

Napi::Value RelayHandle::publish(const Napi::CallbackInfo& info, Publish part) {
  Bytes bytes{};
  if (!is_open(info.Env()) || !read_bytes(info[0], "table", bytes)) return info.Env().Undefined();
  // A private copy: shared memory could change between check and use.
  const std::vector<uint8_t> table(bytes.data, bytes.data + bytes.length);
  const std::string error = (relay_.get()->*part)(table.data(), table.size());
  if (!error.empty()) Napi::Error::New(info.Env(), error).ThrowAsJavaScriptException();
  return info.Env().Undefined();
}

Napi::Value RelayHandle::publish_sources(const Napi::CallbackInfo& info) {
  return publish(info, &Relay::publish_sources);
}
Napi::Value RelayHandle::publish_fanout(const Napi::CallbackInfo& info) {
  return publish(info, &Relay::publish_fanout);
}
Napi::Value RelayHandle::publish_leaders(const Napi::CallbackInfo& info) {
  return publish(info, &Relay::publish_leaders);
}

// (group and port, interface index, interface address) -> error text, empty on success.
Napi::Value RelayHandle::change_group(const Napi::CallbackInfo& info, bool join) {
  const Napi::Env env = info.Env();
  Endpoint group;
  Endpoint interface_address;
  GroupMembership membership{};
  if (!is_open(env) || !read_endpoint(info[0], "group", group) ||
      !read_u32(info[1], "interface", INT32_MAX, membership.interface) ||
      !read_endpoint(info[2], "interfaceAddress", interface_address))
    return env.Undefined();
  membership.group = group.address;
  membership.interface_address = interface_address.address;
  const std::string error =
      join ? relay_->join(group.port, membership) : relay_->leave(group.port, membership);
  return Napi::String::New(env, error);
}

Napi::Value RelayHandle::join_group(const Napi::CallbackInfo& info) {
  return change_group(info, true);
}
Napi::Value RelayHandle::leave_group(const Napi::CallbackInfo& info) {
  return change_group(info, false);
}

// Reads the numbers of sources and destinations from two arguments.
bool RelayHandle::read_layout(const Napi::CallbackInfo& info, size_t first,
                              SnapshotLayout& layout) const {
  uint32_t sources = 0;
  uint32_t destinations = 0;
  if (!is_open(info.Env()) || !read_u32(info[first], "sources", kSourcesMax, sources) ||
      !read_u32(info[first + 1], "destinations", kDestinationsMax, destinations))
    return false;
  layout = relay_->layout(sources, destinations);
  return true;
}

// (sources, destinations) -> number of u64 that readCounters will write.
Napi::Value RelayHandle::snapshot_words(const Napi::CallbackInfo& info) {
  SnapshotLayout layout(0, 0, 0);
  if (!read_layout(info, 0, layout)) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), static_cast<double>(layout.words));
}

// (BigUint64Array, sources, destinations): fills the array.
Napi::Value RelayHandle::read_counters(const Napi::CallbackInfo& info) {
  SnapshotLayout layout(0, 0, 0);
  if (!read_layout(info, 1, layout)) return info.Env().Undefined();
  if (!info[0].IsTypedArray() ||
      info[0].As<Napi::TypedArray>().TypedArrayType() != napi_biguint64_array ||
      info[0].As<Napi::TypedArray>().ElementLength() < layout.words) {
    fail(info.Env(), "readCounters: expected a BigUint64Array of at least " +
                         std::to_string(layout.words) + " elements");
    return info.Env().Undefined();
  }
  relay_->snapshot(layout, info[0].As<Napi::BigUint64Array>().Data());
  return info.Env().Undefined();
}

// (Uint8Array) -> number of events of 32 bytes written to it, in the layout of struct Event.
Napi::Value RelayHandle::drain_events(const Napi::CallbackInfo& info) {
  Bytes into{};
  if (!is_open(info.Env()) || !read_bytes(info[0], "drainEvents", into))
    return info.Env().Undefined();
  std::array<Event, 256> events;
  const size_t max = std::min(events.size(), into.length / sizeof(Event));
  const size_t count = relay_->drain_events(events.data(), max);
  std::memcpy(const_cast<uint8_t*>(into.data), events.data(), count * sizeof(Event));
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

Napi::Value RelayHandle::drain_traces(const Napi::CallbackInfo& info) {
  Bytes into{};
  if (!is_open(info.Env()) || !read_bytes(info[0], "drainTraces", into))
    return info.Env().Undefined();
  std::array<Trace, 64> traces;
  const size_t max = std::min(traces.size(), into.length / sizeof(Trace));
  const size_t count = relay_->drain_traces(traces.data(), max);
  std::memcpy(const_cast<uint8_t*>(into.data), traces.data(), count * sizeof(Trace));
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

Napi::Value RelayHandle::addresses(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  const auto array = Napi::Array::New(info.Env());
  for (uint32_t i = 0; i < relay_->addresses().size(); i++)
    array.Set(i, endpoint_value(info.Env(), relay_->addresses()[i]));
  return array;
}

Napi::Value RelayHandle::granted_receive_buffer(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), relay_->granted_receive_buffer_bytes());
}

// -> { mode, interface, refusal }: the mode in use, the interfaces of clones or AF_XDP (empty:
// none), why the requested mode is not in use (empty: it is).
Napi::Value RelayHandle::transmit(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  const auto object = Napi::Object::New(info.Env());
  object.Set("mode", transmit_mode_name(relay_->transmit_in_use()));
  object.Set("interface", relay_->transmit_interface());
  object.Set("refusal", relay_->transmit_refusal());
  return object;
}

// -> the interfaces that receive by AF_XDP; empty: none.
Napi::Value RelayHandle::receive_interfaces(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  return Napi::String::New(info.Env(), relay_->receive_interfaces());
}

// -> the reasons why interfaces do not receive by AF_XDP at present.
Napi::Value RelayHandle::update_receiving(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  const std::vector<std::string> problems = relay_->update_receiving();
  const auto array = Napi::Array::New(info.Env(), problems.size());
  for (uint32_t i = 0; i < problems.size(); i++)
    array.Set(i, Napi::String::New(info.Env(), problems[i]));
  return array;
}

// -> sender threads of each worker that are in use.
Napi::Value RelayHandle::sender_threads(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), relay_->sender_threads());
}

// -> why the workers have no raised priority; empty: they have it.
Napi::Value RelayHandle::priority_refusal(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  return Napi::String::New(info.Env(), relay_->priority_refusal());
}

// -> { bytes, refusal }: the locked memory, and why it is not locked although that was requested
// (empty: it is, or was not requested).
Napi::Value RelayHandle::memory_lock(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  const auto object = Napi::Object::New(info.Env());
  object.Set("bytes", static_cast<double>(relay_->locked_bytes()));
  object.Set("refusal", relay_->memory_lock_refusal());
  return object;
}

// (bigint, bigint, boolean, bigint): lowest and highest slot that are possible now, whether they
// are confirmed, and the end of validity.
Napi::Value RelayHandle::set_slot_bounds(const Napi::CallbackInfo& info) {
  uint64_t lowest = 0;
  uint64_t highest = 0;
  uint64_t until_ns = 0;
  if (is_open(info.Env()) && read_u64(info[0], "lowest", lowest) &&
      read_u64(info[1], "highest", highest) && read_u64(info[3], "untilNs", until_ns))
    relay_->set_slot_bounds(lowest, highest, info[2].ToBoolean(), until_ns);
  return info.Env().Undefined();
}

// (bigint): slots before it are dropped.
Napi::Value RelayHandle::set_slot_floor(const Napi::CallbackInfo& info) {
  uint64_t floor = 0;
  if (is_open(info.Env()) && read_u64(info[0], "floor", floor)) relay_->set_slot_floor(floor);
  return info.Env().Undefined();
}

DeshredThread* RelayHandle::deshred(Napi::Env env) const {
  if (!is_open(env)) return nullptr;
  if (!relay_->deshred())
    Napi::Error::New(env, "deshredding is disabled: open the relay with deshred: true")
        .ThrowAsJavaScriptException();
  return relay_->deshred();
}

ArrivalRings* RelayHandle::arrivals(Napi::Env env) const {
  if (!is_open(env)) return nullptr;
  if (!relay_->arrivals())
    Napi::Error::New(env, "arrivals are disabled: open the relay with arrivals: true")
        .ThrowAsJavaScriptException();
  return relay_->arrivals();
}

// (Uint8Array) -> number of 32-byte arrivals written to it, in the layout of struct ArrivalRecord.
Napi::Value RelayHandle::drain_arrivals(const Napi::CallbackInfo& info) {
  Bytes into{};
  ArrivalRings* rings = arrivals(info.Env());
  if (!rings || !read_bytes(info[0], "drainArrivals", into)) return info.Env().Undefined();
  ArrivalRing& ring = rings->arrivals;
  const size_t count = std::min(ring.waiting(), into.length / sizeof(ArrivalRecord));
  auto* to = const_cast<uint8_t*>(into.data);
  for (size_t i = 0; i < count; i++)
    std::memcpy(to + i * sizeof(ArrivalRecord), &ring.front(i), sizeof(ArrivalRecord));
  ring.release(count);
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

// (Uint8Array) -> number of bytes written to it: consecutive packets, each as the 32-byte header of
// struct CapturedPacket and `length` bytes.
Napi::Value RelayHandle::drain_packets(const Napi::CallbackInfo& info) {
  Bytes into{};
  ArrivalRings* rings = arrivals(info.Env());
  if (!rings || !read_bytes(info[0], "drainPackets", into)) return info.Env().Undefined();
  size_t at = 0;
  if (rings->packets) {
    constexpr size_t kHeadBytes = offsetof(CapturedPacket, bytes);
    PacketRing& ring = *rings->packets;
    const size_t waiting = ring.waiting();
    size_t count = 0;
    for (; count < waiting; count++) {
      const CapturedPacket& packet = ring.front(count);
      const size_t bytes = kHeadBytes + packet.length;
      if (bytes > into.length - at) break;
      std::memcpy(const_cast<uint8_t*>(into.data) + at, &packet, bytes);
      at += bytes;
    }
    ring.release(count);
  }
  return Napi::Number::New(info.Env(), static_cast<double>(at));
}

// -> { arrivals, packets }: numbers of records that found their ring full.
Napi::Value RelayHandle::measuring_losses(const Napi::CallbackInfo& info) {
  ArrivalRings* rings = arrivals(info.Env());
  if (!rings) return info.Env().Undefined();
  const auto object = Napi::Object::New(info.Env());
  const auto set = [&](const char* name, const std::atomic<uint64_t>& lost) {
    object.Set(name, static_cast<double>(lost.load(std::memory_order_relaxed)));
  };
  set("arrivals", rings->arrivals_lost);
  set("packets", rings->packets_lost);
  return object;
}

// -> datagrams that the kernel dropped, by listening address.
Napi::Value RelayHandle::receive_drops(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  const std::vector<uint64_t> drops = relay_->receive_drops();
  const auto array = Napi::Array::New(info.Env());
  for (uint32_t i = 0; i < drops.size(); i++)
    array.Set(i, Napi::Number::New(info.Env(), static_cast<double>(drops[i])));
  return array;
}

// (Uint8Array of 64 bytes per signature)
Napi::Value RelayHandle::watch_signatures(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  std::vector<TransactionSignature> signatures;
  if (!thread || !read_signatures(info[0], signatures)) return info.Env().Undefined();
  const std::string error = thread->watch(signatures);
  if (!error.empty()) Napi::Error::New(info.Env(), error).ThrowAsJavaScriptException();
  return info.Env().Undefined();
}

Napi::Value RelayHandle::unwatch_signatures(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  std::vector<TransactionSignature> signatures;
  if (thread && read_signatures(info[0], signatures)) thread->unwatch(signatures);
  return info.Env().Undefined();
}

// (Uint8Array) -> number of landings of 96 bytes written to it, in the layout of struct Landing.
Napi::Value RelayHandle::drain_landings(const Napi::CallbackInfo& info) {
  Bytes into{};
  DeshredThread* thread = deshred(info.Env());
  if (!thread || !read_bytes(info[0], "drainLandings", into)) return info.Env().Undefined();
  std::array<Landing, 128> landings;
  const size_t max = std::min(landings.size(), into.length / sizeof(Landing));
  const size_t count = thread->drain(landings.data(), max);
  std::memcpy(const_cast<uint8_t*>(into.data), landings.data(), count * sizeof(Landing));
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

// A notifier for the listener, which can be set once; nullptr if the call threw.
std::unique_ptr<NotifierHandle> RelayHandle::make_notifier(const Napi::CallbackInfo& info,
                                                           const char* call,
                                                           const NotifierHandle* present) {
  const Napi::Env env = info.Env();
  if (!info[0].IsFunction() || present) {
    fail(env, std::string(call) + (present ? ": expected to be called once, got a second call"
                                           : ": expected a function"));
    return nullptr;
  }
  auto made = std::make_unique<NotifierHandle>(env, info[0].As<Napi::Function>(), call);
  if (!made->valid()) {
    Napi::Error::New(
        env, "cannot register the listener: the environment is out of memory or shutting down")
        .ThrowAsJavaScriptException();
    return nullptr;
  }
  // The environment frees the notifiers' functions when it ends. Cleanup hooks run in reverse
  // order, so this hook ends the thread that calls the notifiers before that.
  if (notifier_ || stream_notifier_) napi_remove_env_cleanup_hook(env_, end_with_environment, this);
  napi_add_env_cleanup_hook(env_, end_with_environment, this);
  return made;
}

// (function): called when landings wait; can be set once per relay.
Napi::Value RelayHandle::on_landings(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  if (!thread) return info.Env().Undefined();
  auto made = make_notifier(info, "onLandings", notifier_.get());
  if (!made) return info.Env().Undefined();
  notifier_ = std::move(made);
  thread->set_notifier(notifier_.get());
  return info.Env().Undefined();
}

void RelayHandle::close(const Napi::CallbackInfo&) { end(); }

}  // namespace shredway::addon
