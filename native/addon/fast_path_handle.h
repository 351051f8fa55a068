// Fast path handle: the fast path (submission/fast_path.h) as a JavaScript class.
//
// Every call is made on the environment's own thread; none takes longer than a write to a socket.
// After close(), sockets may still end: every call then does nothing and returns undefined.
#pragma once

#include <napi.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "addon/arguments.h"
#include "submission/fast_path.h"
#include "submission/memory_streams.h"

namespace shredway::addon {

// Result of claim() and send_now(), in the layout that src/gateway/fast-path/taken-record.ts reads.
// Bytes behind the signature, the sends and the transaction have no meaning.
struct TakenRecord {
  uint64_t taken_ns;          // 0
  uint32_t signature_length;  // 8
  uint32_t send_count;        // 12
  char signature[88];         // 16  base58
  // Each: route at 0, loan at 4, id at 8, wire_bytes at 12, sent_ns at 16.
  FastSend sends[kFastPathRoutesMax];    // 104
  uint64_t wire_length;                  // 488
  uint8_t wire[kTransactionV1BytesMax];  // 496
};
static_assert(kFastPathRoutesMax == 16);
static_assert(sizeof(FastSend) == 24 && offsetof(FastSend, sent_ns) == 16);
static_assert(sizeof(TakenRecord) == 496 + kTransactionV1BytesMax);

// In the QUIC process: (descriptor, sequence, connection, bytes) -> false: the channel is full or
// closed.
Napi::Value write_offer_of(const Napi::CallbackInfo& info);

class FastPathHandle : public Napi::ObjectWrap<FastPathHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // The class of fast paths in a simulation: connections and clock are the caller's, and look() and
  // conclude() run them. Only tests open one.
  static Napi::Function define_simulated(Napi::Env env);
  explicit FastPathHandle(const Napi::CallbackInfo& info);
  ~FastPathHandle() override;

 private:
  // (tip addresses: 32 bytes each, don't-front ranges: 64 bytes each, minimum tip)
  void set_rules(const Napi::CallbackInfo& info);
  void pause(const Napi::CallbackInfo& info);
  void allow(const Napi::CallbackInfo& info);  // (key, calls)
  void note(const Napi::CallbackInfo& info);   // (signature in base58)
  // (transaction, into: a TakenRecord) -> number of sends
  Napi::Value send_now(const Napi::CallbackInfo& info);
  // (descriptor) -> number of the connection, -1: not possible
  Napi::Value watch(const Napi::CallbackInfo& info);
  // (connection, head, body, whether base58, key, until) -> false: it has another form
  Napi::Value learn(const Napi::CallbackInfo& info);
  void forget(const Napi::CallbackInfo& info);  // (connection)
  void forget_all(const Napi::CallbackInfo& info);
  void arm(const Napi::CallbackInfo& info);  // (connection, received bytes modulo 2^32)
  // (connection, begin of the request modulo 2^32, into: a TakenRecord) -> number of sends; 0:
  // nothing was taken, -1: and the request has another form, -2: another request was taken
  Napi::Value claim(const Napi::CallbackInfo& info);
  Napi::Value is_taken(const Napi::CallbackInfo& info);  // (connection, begin of the request)
  void unwatch(const Napi::CallbackInfo& info);          // (connection)
  // () -> the descriptor of the QUIC process, which the caller closes; -1: not possible
  Napi::Value open_offers(const Napi::CallbackInfo& info);
  void watch_offers(const Napi::CallbackInfo& info);   // (connection, key, until)
  void forget_offers(const Napi::CallbackInfo& info);  // (connection)
  // (sequence, transaction, into: a TakenRecord) -> number of sends; 0: nothing was taken, -1:
  // another transaction was sent under this number
  Napi::Value claim_offer(const Napi::CallbackInfo& info);
  Napi::Value is_offer_taken(const Napi::CallbackInfo& info);  // (sequence)
  // (into: a TakenRecord) -> number of sends of an offer that was not claimed; 0: none is left
  Napi::Value end_offers(const Napi::CallbackInfo& info);
  // (route, [head, before the id, before the text, after it], minimum tip, bytesMax)
  void set_route(const Napi::CallbackInfo& info);
  // (route, descriptor, until) -> number of the loan, -1: not possible
  Napi::Value lend(const Napi::CallbackInfo& info);
  void lend_again(const Napi::CallbackInfo& info);      // (loan, until)
  Napi::Value reclaim(const Napi::CallbackInfo& info);  // (loan) -> false: it was used
  void release(const Napi::CallbackInfo& info);         // (loan)
  Napi::Value counts(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);

  // ---- in a simulation ----
  void arrive(const Napi::CallbackInfo& info);       // (descriptor, bytes)
  void mark_read(const Napi::CallbackInfo& info);    // (descriptor, number of bytes)
  void end_stream(const Napi::CallbackInfo& info);   // (descriptor)
  void set_time(const Napi::CallbackInfo& info);     // (now), before sendNow()
  Napi::Value look(const Napi::CallbackInfo& info);  // (now) -> whether to conclude
  void conclude(const Napi::CallbackInfo& info);     // (now)
  // () -> [descriptor, bytes] of the oldest write, which is removed; undefined: none is left
  Napi::Value take_written(const Napi::CallbackInfo& info);
  static std::vector<Napi::ClassPropertyDescriptor<FastPathHandle>> methods();
  // Memory for a TakenRecord.
  static bool read_record(const Napi::Value& value, Bytes& into);
  // Returns the number of sends.
  static Napi::Value write_record(Napi::Env env, const std::optional<TakenRequest>& taken,
                                  const Bytes& into);

  void end();
  static void end_with_environment(void* handle);

  std::unique_ptr<MemoryStreams> streams_;  // in a simulation
  std::unique_ptr<FastPath> path_;
  napi_env env_;
};

}  // namespace shredway::addon
