#include "deshred/deshredder.h"

#include <algorithm>
#include <cstdlib>

namespace shredway {
namespace {

constexpr uint64_t kLookForOldEvery_ns = 1'000'000'000;

uint8_t flags_of(const uint8_t* data_shred) { return data_shred[offset::kFlags]; }

// Only data shreds name the parent.
uint64_t parent_of(const uint8_t* packet, const Shred& shred) {
  if (shred.type != ShredType::data) return 0;
  const uint16_t offset = load_u16(packet + offset::kParentOffset);
  return offset <= shred.slot ? shred.slot - offset : 0;
}

}  // namespace

struct Deshredder::Slot {
  uint64_t number = 0;
  uint64_t last_shred_ns = 0;
  bool used = false;
  uint16_t collecting = 0;    // sets in progress
  uint16_t open_batches = 0;  // batches that wait for more
  uint16_t sets_read = 0;     // sets that were read to their end
  uint16_t last_set = kNone;  // the slot's last set, once it was read
  // Not touched before the slot's first shred.
  std::array<SetState, kFecSetsPerSlotMax> sets;
};

Deshredder::Deshredder(const DeshredOptions& options, DeshredSink& sink)
    : options_(options),
      sink_(sink),
      sets_(options.sets_max),
      batches_(new Batch[options.reads_batches ? options.open_batches_max : 0]),
      slots_(new Slot[kSlots]) {
  if (!sets_.data()) std::abort();  // as `new` does
  // The most recently released set is reused first, so that resident memory stays small.
  for (size_t i = options.sets_max; i-- > 0;) free_sets_.push_back(static_cast<uint16_t>(i));
  for (size_t i = options.reads_batches ? options.open_batches_max : 0; i-- > 0;)
    free_batches_.push_back(static_cast<uint16_t>(i));
}

Deshredder::~Deshredder() = default;

void Deshredder::add(const uint8_t* packet, const Shred& shred, uint64_t received_ns) {
  drop_old_slots(received_ns);
  Slot* slot = slot_of(packet, shred, received_ns);
  FecSet* set = slot ? collect(*slot, packet, shred) : nullptr;
  if (!set) return;
  place_.slot = shred.slot;
  place_.arrival_ns = received_ns;
  const uint32_t set_number = fec_set_number(shred.fec_set_index);
  bool end_is_new = shred.leaf == kFecSetShreds - 1;
  bool data_is_new = shred.type == ShredType::data;
  if (set->recoverable()) {
    const uint64_t missing = set->recover(reed_solomon_);
    if (missing == 0) {
      counts_.sets_refused++;
      return forget(*slot, set_number);
    }
    counts_.sets_recovered++;
    counts_.shreds_recovered += static_cast<uint64_t>(std::popcount(missing));
    sink_.on_recovered(*set, missing);
    end_is_new |= (missing >> (kFecSetShreds - 1) & 1) != 0;
    data_is_new = true;
  } else if (data_is_new && set->data_complete()) {
    counts_.sets_whole++;
  }
  if (!data_is_new) return;
  if (!options_.reads_batches) {
    if (set->data_complete()) release_set(*slot, slot->sets[set_number], SetStatus::done);
    return;
  }
  const bool next_begins = end_is_new &&
                           is_data_complete(flags_of(set->packet(kFecSetShreds - 1))) &&
                           set_number + 1 < kFecSetsPerSlotMax;
  if (next_begins) slot->sets[set_number + 1].begins_batch = true;
  read_on(*slot, set_number);
  if (next_begins) read_on(*slot, set_number + 1);
}

// ---- sets -----------------------------------------------------------------------------------

Deshredder::Slot* Deshredder::slot_of(const uint8_t* packet, const Shred& shred,
                                      uint64_t received_ns) {
  Slot& slot = slots_[shred.slot % kSlots];
  if (!slot.used || slot.number != shred.slot) {
    // A higher slot keeps its entry while it is alive. Afterwards a lower slot may be the current
    // one: a cluster restarted, or a leader sent shreds of a slot far ahead.
    if (slot.used && slot.number > shred.slot && !is_silent(slot, received_ns)) {
      counts_.shreds_late++;
      return nullptr;
    }
    close(slot);
    slot.used = true;
    slot.number = shred.slot;
    slot.sets_read = 0;
    slot.last_set = kNone;
    slot.sets.fill(kUnseenSet);
    slot.sets[0].begins_batch = true;
    sink_.on_slot_begin({shred.slot, parent_of(packet, shred), received_ns});
  }
  slot.last_shred_ns = received_ns;
  return &slot;
}

// Returns the set with the shred added; nullptr if the shred is not needed.
FecSet* Deshredder::collect(Slot& slot, const uint8_t* packet, const Shred& shred) {
  SetState& state = slot.sets[fec_set_number(shred.fec_set_index)];
  switch (state.status) {
    case SetStatus::done:
    case SetStatus::lost:
      counts_.shreds_late++;
      return nullptr;
    case SetStatus::unseen:
      state.fec_set = take_set();
      state.status = SetStatus::collecting;
      slot.collecting++;
      sets_[state.fec_set].begin(packet, shred);
      break;
    case SetStatus::collecting: {
      FecSet& set = sets_[state.fec_set];
      if (!set.belongs(packet, shred)) {
        counts_.shreds_conflicting++;
        return nullptr;
      }
      if (set.has(shred.leaf)) {
        counts_.shreds_late++;
        return nullptr;
      }
      set.add(packet, shred);
      break;
    }
  }
  counts_.shreds++;
  return &sets_[state.fec_set];
}

// Evicts from the slot with the most sets, so that a leader who sends one shred of each set can
// fill the memory only with its own slot.
uint16_t Deshredder::take_set() {
  if (free_sets_.empty()) {
    Slot& fullest =
        *std::max_element(slots_.get(), slots_.get() + kSlots,
                          [](const Slot& a, const Slot& b) { return a.collecting < b.collecting; });
    uint32_t oldest = 0;
    while (fullest.sets[oldest].status != SetStatus::collecting) oldest++;
    give_up(fullest, oldest);
  }
  const uint16_t set = free_sets_.back();
  free_sets_.pop_back();
  return set;
}

void Deshredder::release_set(Slot& slot, SetState& state, SetStatus status) {
  if (state.status == SetStatus::collecting) {
    free_sets_.push_back(state.fec_set);
    slot.collecting--;
  }
  state.fec_set = kNone;
  state.status = status;
}

// Gives up a set whose memory is needed or whose time has expired.
void Deshredder::give_up(Slot& slot, uint32_t set_number) {
  const SetState& state = slot.sets[set_number];
  if (state.status == SetStatus::collecting && !sets_[state.fec_set].data_complete())
    counts_.sets_given_up++;
  forget(slot, set_number);
}

// Discards a set for good, and the batch that would have continued in it.
void Deshredder::forget(Slot& slot, uint32_t set_number) {
  SetState& state = slot.sets[set_number];
  release_set(slot, state, SetStatus::lost);
  if (state.batch == kNone) return;
  counts_.batches_given_up++;
  release_batch(slot, state);
}

void Deshredder::close(Slot& slot) {
  for (uint32_t i = 0; slot.collecting + slot.open_batches > 0; i++)
    if (slot.sets[i].status == SetStatus::collecting || slot.sets[i].batch != kNone)
      give_up(slot, i);
}

// True if no shred came for longer than a slot's lifetime, or if the clock was set back by more.
bool Deshredder::is_silent(const Slot& slot, uint64_t now_ns) const {
  const auto silent_ns = static_cast<int64_t>(now_ns - slot.last_shred_ns);
  const auto lifetime_ns = static_cast<int64_t>(options_.slot_lifetime_ns);
  return silent_ns > lifetime_ns || silent_ns < -lifetime_ns;
}

void Deshredder::drop_old_slots(uint64_t now_ns) {
  // Signed differences, because clocks are also set back.
  const auto since_ns = static_cast<int64_t>(now_ns - last_expiry_check_ns_);
  if (since_ns >= 0 && since_ns < static_cast<int64_t>(kLookForOldEvery_ns)) return;
  last_expiry_check_ns_ = now_ns;
  for (size_t i = 0; i < kSlots; i++) {
    Slot& slot = slots_[i];
    if (slot.collecting + slot.open_batches == 0) continue;
    if (is_silent(slot, now_ns)) close(slot);
    else if (static_cast<int64_t>(now_ns - slot.last_shred_ns) < 0) slot.last_shred_ns = now_ns;
  }
}

// ---- batches --------------------------------------------------------------------------------

// Reads the consecutive data shreds from the batch's position in this set on, and continues into
// later sets as far as they are complete.
void Deshredder::read_on(Slot& slot, uint32_t set_number) {
  for (; set_number < kFecSetsPerSlotMax; set_number++) {
    SetState& state = slot.sets[set_number];
    if (state.status != SetStatus::collecting) return;
    const FecSet& set = sets_[state.fec_set];
    if (state.batch == kNone) {
      if (!state.begins_batch || !set.has(0)) return;
      open_batch(slot, set_number);
    }
    if (!read_set(set, state.batch)) return;
    const uint8_t last_flags = flags_of(set.packet(kFecSetShreds - 1));
    release_set(slot, state, SetStatus::done);
    if (is_data_complete(last_flags)) end_batch(slot, state);
    else if (!move_batch(slot, set_number)) return;
    finish_set(slot, set_number, last_flags);
  }
}

void Deshredder::finish_set(Slot& slot, uint32_t set_number, uint8_t last_flags) {
  slot.sets_read++;
  if (is_last_in_slot(last_flags) && slot.last_set == kNone)
    slot.last_set = static_cast<uint16_t>(set_number);
  if (slot.last_set != kNone && slot.sets_read == slot.last_set + 1) sink_.on_slot_complete(place_);
}

// Returns true if the set was read to its end.
bool Deshredder::read_set(const FecSet& set, uint16_t batch_number) {
  Batch& batch = batches_[batch_number];
  place_.batch_index = batch.first_index;
  do {
    const auto leaf = static_cast<uint8_t>(position_in_fec_set(batch.next_index));
    if (!set.has(leaf)) return false;
    const uint8_t* packet = set.packet(leaf);
    const uint16_t size = load_u16(packet + offset::kSize);
    place_.shred_index = batch.next_index++;
    keep_piece(batch_number, packet + kDataHeaderBytes, size - kDataHeaderBytes);
    batch.stream.feed(packet + kDataHeaderBytes, size - kDataHeaderBytes, *this);
  } while (position_in_fec_set(batch.next_index) != 0);
  return true;
}

void Deshredder::open_batch(Slot& slot, uint32_t set_number) {
  if (free_batches_.empty()) {
    Slot& fullest = *std::max_element(
        slots_.get(), slots_.get() + kSlots,
        [](const Slot& a, const Slot& b) { return a.open_batches < b.open_batches; });
    uint32_t oldest = 0;
    while (fullest.sets[oldest].batch == kNone) oldest++;
    give_up(fullest, oldest);
  }
  SetState& state = slot.sets[set_number];
  state.batch = free_batches_.back();
  free_batches_.pop_back();
  slot.open_batches++;
  Batch& batch = batches_[state.batch];
  batch.first_index = batch.next_index = set_number * kFecSetShreds;
  batch.stream.reset();
  if (keeps_batch_bytes_ && batch_bytes_.empty()) batch_bytes_.resize(options_.open_batches_max);
  if (!batch_bytes_.empty()) batch_bytes_[state.batch].kept = keeps_batch_bytes_;
}

void Deshredder::keep_piece(uint16_t batch, const uint8_t* bytes, size_t length) {
  if (batch_bytes_.empty() || !batch_bytes_[batch].kept) return;
  std::vector<uint8_t>& kept = batch_bytes_[batch].bytes;
  if (kept.size() + length > kBatchBytesMax || batch_bytes_total_ + length > kAllBatchesBytesMax) {
    counts_.batches_too_long++;
    return drop_bytes(batch);
  }
  kept.insert(kept.end(), bytes, bytes + length);
  batch_bytes_total_ += length;
}

void Deshredder::drop_bytes(uint16_t batch) {
  if (batch_bytes_.empty()) return;
  batch_bytes_total_ -= batch_bytes_[batch].bytes.size();
  batch_bytes_[batch] = {};
}

void Deshredder::end_batch(Slot& slot, SetState& state) {
  counts_.batches++;
  if (!batches_[state.batch].stream.end(*this)) counts_.batches_malformed++;
  else if (!batch_bytes_.empty() && batch_bytes_[state.batch].kept)
    sink_.on_batch(place_, batch_bytes_[state.batch].bytes);
  release_batch(slot, state);
}

void Deshredder::release_batch(Slot& slot, SetState& state) {
  drop_bytes(state.batch);
  free_batches_.push_back(state.batch);
  state.batch = kNone;
  slot.open_batches--;
}

// Continues the batch in the next set. Returns false if that is impossible.
bool Deshredder::move_batch(Slot& slot, uint32_t set_number) {
  SetState& state = slot.sets[set_number];
  const bool can_go_on =
      set_number + 1 < kFecSetsPerSlotMax && slot.sets[set_number + 1].status != SetStatus::lost;
  if (!can_go_on) {
    counts_.batches_given_up++;
    release_batch(slot, state);
    return false;
  }
  slot.sets[set_number + 1].batch = state.batch;
  state.batch = kNone;
  return true;
}

void Deshredder::on_entry(const Entry& entry) {
  counts_.entries++;
  sink_.on_entry(place_, entry);
}

void Deshredder::on_transaction(const EntryTransaction& transaction) {
  counts_.transactions++;
  sink_.on_transaction(place_, transaction);
}

void Deshredder::on_marker(const BlockMarker& marker) {
  counts_.markers++;
  sink_.on_marker(place_, marker);
}

}  // namespace shredway
