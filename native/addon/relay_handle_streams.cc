// Relay handle: the calls that serve decoded streams.
#include "addon/arguments.h"
#include "addon/relay_handle.h"

namespace shredway::addon {

// (Uint8Array in the layout of stream/filter_index.h, generation)
Napi::Value RelayHandle::publish_stream_filters(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  Bytes bytes{};
  uint32_t generation = 0;
  if (!thread || !read_bytes(info[0], "table", bytes) ||
      !read_u32(info[1], "generation", UINT32_MAX, generation))
    return info.Env().Undefined();
  // A private copy: shared memory could change between check and use.
  const std::vector<uint8_t> table(bytes.data, bytes.data + bytes.length);
  const std::string error = thread->streams().publish(table.data(), table.size(), generation);
  if (!error.empty()) Napi::Error::New(info.Env(), error).ThrowAsJavaScriptException();
  return info.Env().Undefined();
}

// (Uint8Array, enough) -> number of bytes written to it: whole messages, each with a
// StreamMessageHead. Stops after the message that reaches `enough` bytes.
Napi::Value RelayHandle::drain_streams(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  Bytes into{};
  uint32_t enough = 0;
  if (!thread || !read_bytes(info[0], "drainStreams", into) ||
      !read_u32(info[1], "enough", UINT32_MAX, enough))
    return info.Env().Undefined();
  const size_t bytes = thread->drain_streams(const_cast<uint8_t*>(into.data), into.length, enough);
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

// -> number of messages that found the ring full, since the start.
Napi::Value RelayHandle::streams_lost(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  if (!thread) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), static_cast<double>(thread->streams().lost()));
}

// (BigUint64Array of kStreamLossWords elements): fills it in the layout of struct StreamLosses.
Napi::Value RelayHandle::read_stream_losses(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  if (!thread) return info.Env().Undefined();
  uint64_t* words = nullptr;
  if (!read_words(info[0], "readStreamLosses", kStreamLossWords, words))
    return info.Env().Undefined();
  StreamLosses losses;
  thread->streams().read_losses(losses);
  std::memcpy(words, &losses, sizeof losses);
  return info.Env().Undefined();
}

// (function): called when messages wait or were lost; can be set once per relay.
Napi::Value RelayHandle::on_streams(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  if (!thread) return info.Env().Undefined();
  auto made = make_notifier(info, "onStreams", stream_notifier_.get());
  if (!made) return info.Env().Undefined();
  stream_notifier_ = std::move(made);
  thread->set_stream_notifier(stream_notifier_.get());
  return info.Env().Undefined();
}

// (bytes): memory of the history of streams, from the next filters on; 0: none.
Napi::Value RelayHandle::set_stream_history(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  uint32_t bytes = 0;
  if (!thread || !read_u32(info[0], "bytes", UINT32_MAX, bytes)) return info.Env().Undefined();
  thread->streams().set_history_bytes(bytes);
  return info.Env().Undefined();
}

// (BigUint64Array of kStreamHistoryWords elements): fills it in the layout of StreamHistoryCounts.
Napi::Value RelayHandle::read_stream_history(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  if (!thread) return info.Env().Undefined();
  uint64_t* words = nullptr;
  if (!read_words(info[0], "readStreamHistory", kStreamHistoryWords, words))
    return info.Env().Undefined();
  StreamHistoryCounts counts;
  thread->streams().read_history(counts);
  std::memcpy(words, &counts, sizeof counts);
  return info.Env().Undefined();
}

// (id of a replay, bytes that it may send since its beginning)
Napi::Value RelayHandle::grant_replay(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  uint32_t id = 0;
  uint64_t bytes = 0;
  if (!thread || !read_u32(info[0], "id", UINT16_MAX, id) || !read_u64(info[1], "bytes", bytes))
    return info.Env().Undefined();
  thread->streams().grant_replay(static_cast<uint16_t>(id), bytes);
  return info.Env().Undefined();
}

// (Uint8Array in the layout of stream/lookup_tables.h)
Napi::Value RelayHandle::change_lookup_tables(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  Bytes bytes{};
  if (!thread || !read_bytes(info[0], "changes", bytes)) return info.Env().Undefined();
  // A private copy: shared memory could change between check and use.
  const std::vector<uint8_t> changes(bytes.data, bytes.data + bytes.length);
  const std::string error = thread->streams().lookups().change(changes.data(), changes.size());
  if (!error.empty()) Napi::Error::New(info.Env(), error).ThrowAsJavaScriptException();
  return info.Env().Undefined();
}

// (Uint8Array) -> number of LookupReports that were written to it, oldest first.
Napi::Value RelayHandle::drain_lookup_reports(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  Bytes into{};
  if (!thread || !read_bytes(info[0], "drainLookupReports", into)) return info.Env().Undefined();
  auto* out = const_cast<uint8_t*>(into.data);
  size_t count = 0;
  LookupReport report;
  for (; (count + 1) * sizeof report <= into.length; count++) {
    if (!thread->streams().lookups().next_report(report)) break;
    std::memcpy(out + count * sizeof report, &report, sizeof report);
  }
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

// -> {tables, addresses, evicted}
Napi::Value RelayHandle::lookup_table_counts(const Napi::CallbackInfo& info) {
  DeshredThread* thread = deshred(info.Env());
  if (!thread) return info.Env().Undefined();
  const LookupTableCounts counts = thread->streams().lookups().counts();
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("tables", static_cast<double>(counts.tables));
  out.Set("addresses", static_cast<double>(counts.addresses));
  out.Set("evicted", static_cast<double>(counts.evicted));
  return out;
}

}  // namespace shredway::addon
