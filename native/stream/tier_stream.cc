#include "stream/tier_stream.h"

#include "shred/wire.h"
#include "transaction/vote.h"

namespace shredway {
namespace {

// Payload of an update-parent marker: u8 version, u64 parent slot, parent block id.
constexpr size_t kParentSlotBegin = 1, kParentIdBegin = 9;

}  // namespace

bool SentSignatures::record(const uint8_t* signature, const BatchPlace& place, uint32_t begin,
                            bool may_restart) {
  const uint64_t hash = sip_hash(signature, kTransactionSignatureBytes, key_);
  Sent& sent = sent_[hash % kPlaces];
  const bool is_repeated =
      sent.hash == hash && sent.slot == place.slot && sent.batch_index >= begin;
  if (is_repeated && !(may_restart && place.batch_index > sent.batch_index)) return false;
  sent = {hash, place.slot, place.batch_index};
  return true;
}

TierStream::TierStream(uint8_t tier, StreamSink& sink, LookupResolver& lookups)
    : tier_(tier),
      sink_(sink),
      lookups_(lookups),
      sent_(random_hash_key()),
      deshredder_({}, *this) {}

void TierStream::use(FilterIndex& index) {
  index_ = &index;
  deshredder_.keep_batch_bytes((index.entry_tiers() >> tier_ & 1) != 0);
}

StreamMessageHead TierStream::head_of(StreamMessageKind kind, const BatchPlace& place) const {
  StreamMessageHead head{};
  head.kind = kind;
  head.tier = tier_;
  head.slot = place.slot;
  head.arrival_ns = place.arrival_ns;
  head.batch_index = place.batch_index;
  head.shred_index = place.shred_index;
  return head;
}

void TierStream::on_transaction(const BatchPlace& place, const EntryTransaction& entry) {
  const uint32_t begin = restarts_.begin_of(place.slot);
  if (place.batch_index < begin) return;
  if (index_->ids_of(tier_).empty()) return;
  const LoadedAddresses loaded = lookups_.resolve(entry.bytes, entry.transaction, place.slot);
  lookups_.report_changes(entry.bytes, entry.transaction, loaded, place.slot);
  index_->match(entry.bytes, entry.transaction, {tier_, loaded.bytes}, matched_);
  if (matched_.empty()) return;
  const uint8_t* signature = entry.bytes + entry.transaction.signatures_begin;
  const bool may_restart = has_markers_ || !has_plain_blocks_;
  if (!sent_.record(signature, place, begin, may_restart)) {
    repeated_++;
    return;
  }
  StreamMessageHead head = head_of(StreamMessageKind::transaction, place);
  head.ordinal = entry.ordinal;
  head.is_vote = is_simple_vote(entry.bytes, entry.transaction);
  head.lookups = loaded.state;
  const bool is_resolved = loaded.state == LookupState::resolved;
  if (is_resolved) head.loaded_writable = loaded.writable;
  if (is_resolved) head.loaded_readonly = loaded.readonly;
  sink_.on_message(head, matched_, {entry.bytes, entry.transaction.bytes},
                   is_resolved ? loaded.bytes : std::span<const uint8_t>{});
}

void TierStream::on_marker(const BatchPlace& place, const BlockMarker& marker) {
  has_markers_ = true;
  if (!is_update_parent(marker) || place.batch_index <= restarts_.begin_of(place.slot)) return;
  restarts_.add(place.slot, place.batch_index, place.arrival_ns);
  StreamMessageHead head = head_of(StreamMessageKind::restart, place);
  head.parent = load_u64(marker.payload + kParentSlotBegin);
  sink_.on_message(head, {}, {marker.payload + kParentIdBegin, kHashBytes}, {});
}

void TierStream::on_batch(const BatchPlace& place, std::span<const uint8_t> bytes) {
  if (!(index_->entry_tiers() >> tier_ & 1)) return;
  sink_.on_message(head_of(StreamMessageKind::entries, place), {}, bytes, {});
}

// A slot that was silent for long may begin again in the deshredder.
void TierStream::on_slot_begin(const SlotBegin& begin) {
  uint64_t& begun = begun_[begin.slot % begun_.size()];
  if (begun == begin.slot) return;
  begun = begin.slot;
  StreamMessageHead head{};
  head.kind = StreamMessageKind::slot_begin;
  head.tier = tier_;
  head.slot = begin.slot;
  head.parent = begin.parent;
  head.arrival_ns = begin.arrival_ns;
  sink_.on_message(head, {}, {}, {});
}

void TierStream::on_slot_complete(const BatchPlace& place) {
  sink_.on_message(head_of(StreamMessageKind::slot_complete, place), {}, {}, {});
}

}  // namespace shredway
