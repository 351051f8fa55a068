// Relay handle: the relay as a JavaScript class.
//
// open(options) creates it; JavaScript publishes whole tables and reads snapshots and events;
// close() or the end of the environment ends the threads. Every call is made on the environment's
// own thread.
#pragma once

#include <napi.h>

#include <memory>
#include <vector>

#include "addon/notifier.h"
#include "relay/relay.h"

namespace shredway::addon {

class RelayHandle : public Napi::ObjectWrap<RelayHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // The class of relays in a simulation: their network and clock are the caller's, and step() runs
  // them (relay_handle_simulated.cc).
  static Napi::Function define_simulated(Napi::Env env);
  explicit RelayHandle(const Napi::CallbackInfo& info);
  ~RelayHandle() override;

 private:
  Napi::Value publish_sources(const Napi::CallbackInfo& info);
  Napi::Value publish_fanout(const Napi::CallbackInfo& info);
  Napi::Value publish_leaders(const Napi::CallbackInfo& info);
  Napi::Value change_group(const Napi::CallbackInfo& info, bool join);
  Napi::Value join_group(const Napi::CallbackInfo& info);
  Napi::Value leave_group(const Napi::CallbackInfo& info);
  Napi::Value snapshot_words(const Napi::CallbackInfo& info);
  Napi::Value read_counters(const Napi::CallbackInfo& info);
  Napi::Value drain_events(const Napi::CallbackInfo& info);
  Napi::Value drain_traces(const Napi::CallbackInfo& info);
  Napi::Value set_slot_bounds(const Napi::CallbackInfo& info);
  Napi::Value set_slot_floor(const Napi::CallbackInfo& info);
  Napi::Value watch_signatures(const Napi::CallbackInfo& info);
  Napi::Value unwatch_signatures(const Napi::CallbackInfo& info);
  Napi::Value drain_landings(const Napi::CallbackInfo& info);
  Napi::Value on_landings(const Napi::CallbackInfo& info);
  Napi::Value publish_stream_filters(const Napi::CallbackInfo& info);
  Napi::Value drain_streams(const Napi::CallbackInfo& info);
  Napi::Value streams_lost(const Napi::CallbackInfo& info);
  Napi::Value read_stream_losses(const Napi::CallbackInfo& info);
  Napi::Value on_streams(const Napi::CallbackInfo& info);
  Napi::Value set_stream_history(const Napi::CallbackInfo& info);
  Napi::Value read_stream_history(const Napi::CallbackInfo& info);
  Napi::Value grant_replay(const Napi::CallbackInfo& info);
  Napi::Value change_lookup_tables(const Napi::CallbackInfo& info);
  Napi::Value drain_lookup_reports(const Napi::CallbackInfo& info);
  Napi::Value lookup_table_counts(const Napi::CallbackInfo& info);
  Napi::Value drain_arrivals(const Napi::CallbackInfo& info);
  Napi::Value drain_packets(const Napi::CallbackInfo& info);
  Napi::Value measuring_losses(const Napi::CallbackInfo& info);
  Napi::Value receive_drops(const Napi::CallbackInfo& info);
  Napi::Value addresses(const Napi::CallbackInfo& info);
  Napi::Value granted_receive_buffer(const Napi::CallbackInfo& info);
  Napi::Value transmit(const Napi::CallbackInfo& info);
  Napi::Value receive_interfaces(const Napi::CallbackInfo& info);
  Napi::Value update_receiving(const Napi::CallbackInfo& info);
  Napi::Value sender_threads(const Napi::CallbackInfo& info);
  Napi::Value priority_refusal(const Napi::CallbackInfo& info);
  Napi::Value memory_lock(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);
  Napi::Value step(const Napi::CallbackInfo& info);
  Napi::Value take_sent(const Napi::CallbackInfo& info);
  void fail_sends(const Napi::CallbackInfo& info);
  void refuse(const Napi::CallbackInfo& info);
  void report_unreachable(const Napi::CallbackInfo& info);

  static std::vector<Napi::ClassPropertyDescriptor<RelayHandle>> methods();
  bool deliver(Napi::Env env, const uint8_t* bytes, size_t length);
  using Publish = std::string (Relay::*)(const uint8_t*, size_t);
  Napi::Value publish(const Napi::CallbackInfo& info, Publish part);
  bool is_open(Napi::Env env) const;
  DeshredThread* deshred(Napi::Env env) const;
  ArrivalRings* arrivals(Napi::Env env) const;
  std::unique_ptr<NotifierHandle> make_notifier(const Napi::CallbackInfo& info, const char* call,
                                                const NotifierHandle* present);
  void end();
  static void end_with_environment(void* handle);
  bool read_layout(const Napi::CallbackInfo& info, size_t first, SnapshotLayout& layout) const;

  std::unique_ptr<MemoryNetwork> network_;  // of a simulation; outlives its relay
  std::unique_ptr<Relay> relay_;
  // The relay's thread calls them, so they are destroyed after that thread has ended.
  std::unique_ptr<NotifierHandle> notifier_;
  std::unique_ptr<NotifierHandle> stream_notifier_;
  napi_env env_;
};

}  // namespace shredway::addon
