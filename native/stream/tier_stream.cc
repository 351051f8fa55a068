#include "stream/tier_stream.h"

#include "shred/wire.h"
#include "transaction/vote.h"

namespace shredway {
namespace {

// Payload of an update-parent marker: u8 version, u64 parent slot, parent block id.
constexpr size_t kParentSlotBegin = 1, kParentIdBegin = 9;

// Returns the addresses that belong to the message.
std::span<const uint8_t> set_loaded(StreamMessageHead& head, const LoadedAddresses& loaded) {
  head.lookups = loaded.state;
  if (loaded.state != LookupState::resolved) return {};
  head.loaded_writable = loaded.writable;
  head.loaded_readonly = loaded.readonly;
  return loaded.bytes;
}

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
  const std::span<const uint8_t> content{entry.bytes, entry.transaction.bytes};
  const uint8_t* signature = entry.bytes + entry.transaction.signatures_begin;
  const bool may_restart = has_markers_ || !has_plain_blocks_;
  StreamMessageHead head = head_of(StreamMessageKind::transaction, place);
  head.ordinal = entry.ordinal;
  const bool records = is_recorded() && entry.transaction.signature_count > 0;
  if (records) {
    if (!sent_.record(signature, place, begin, may_restart)) {
      repeated_++;
      return;
    }
    head.is_vote = is_simple_vote(entry.bytes, entry.transaction);
    sink_.on_record(head, content);
  }
  if (index_->ids_of(tier_).empty()) return;
  const LoadedAddresses loaded = lookups_.resolve(entry.bytes, entry.transaction, place.slot);
  lookups_.report_changes(entry.bytes, entry.transaction, loaded, place.slot);
  index_->match(entry.bytes, entry.transaction, {tier_, loaded.bytes}, matched_);
  if (matched_.empty()) return;
  if (!records && !sent_.record(signature, place, begin, may_restart)) {
    repeated_++;
    return;
  }
  head.is_vote = is_simple_vote(entry.bytes, entry.transaction);
  sink_.on_message(head, matched_, content, set_loaded(head, loaded));
}

// The tables are those of now: an address that was unknown then may be known.
bool TierStream::match_record(const StreamHistory::Record& record,
                              const std::bitset<kStreamFilterIds>& wanted, Replayed& out) {
  const StreamMessageHead& head = record.head;
  if (head.batch_index < restarts_.begin_of(head.slot)) return false;
  Transaction transaction;
  const uint8_t* bytes = record.content.data();
  if (parse_transaction(bytes, record.content.size(), transaction) != ParseResult::complete)
    return false;
  const LoadedAddresses loaded = lookups_.resolve(bytes, transaction, head.slot);
  index_->match(bytes, transaction, {tier_, loaded.bytes}, matched_);
  std::erase_if(matched_, [&](uint16_t id) { return !wanted[id]; });
  if (matched_.empty()) return false;
  out.head = head;
  out.loaded = set_loaded(out.head, loaded);
  out.filters = matched_;
  return true;
}

void TierStream::on_marker(const BatchPlace& place, const BlockMarker& marker) {
  has_markers_ = true;
  if (!is_update_parent(marker) || place.batch_index <= restarts_.begin_of(place.slot)) return;
  restarts_.add(place.slot, place.batch_index, place.arrival_ns);
  StreamMessageHead head = head_of(StreamMessageKind::restart, place);
  head.parent = load_u64(marker.payload + kParentSlotBegin);
  send_event(head, {marker.payload + kParentIdBegin, kHashBytes});
}

void TierStream::send_event(const StreamMessageHead& head, std::span<const uint8_t> content) {
  if (is_recorded()) sink_.on_record(head, content);
  sink_.on_message(head, {}, content, {});
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
  send_event(head);
}

void TierStream::on_slot_complete(const BatchPlace& place) {
  send_event(head_of(StreamMessageKind::slot_complete, place));
}

}  // namespace shredway
