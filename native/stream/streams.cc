#include "stream/streams.h"

#include <vector>

#include "system/counter.h"

namespace shredway {
namespace {

// Bytes of the history that a replay reads before the thread returns to the shreds.
constexpr uint64_t kReplayTurnBytes = 64 * 1024;
// A subscriber may know a later slot than this relay.
constexpr uint64_t kSlotsAhead = 64;

}  // namespace

std::string Streams::publish(const uint8_t* table, size_t length, uint32_t generation) {
  std::string error;
  std::unique_ptr<FilterIndex> index = FilterIndex::parse(table, length, error);
  if (!index) return error;
  wanted_tiers_.store(index->tiers(), std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  published_ = std::move(index);
  published_generation_ = generation;
  is_published_.store(true, std::memory_order_release);
  return "";
}

void Streams::read_losses(StreamLosses& out) const {
  const auto copy = [](const auto& from, auto& to) {
    for (size_t i = 0; i < to.size(); i++) to[i] = from[i].load(std::memory_order_relaxed);
  };
  copy(lost_by_filter_, out.by_filter);
  copy(lost_entries_, out.entries);
  copy(lost_events_, out.events);
}

void Streams::update() {
  lookups_.update();
  if (applied_waits_) report_applied();
  if (!is_published_.load(std::memory_order_acquire)) return;
  std::unique_ptr<FilterIndex> former = std::move(index_);  // freed after the tiers have left it
  {
    const std::lock_guard lock(mutex_);
    index_ = std::move(published_);
    generation_ = published_generation_;
    is_published_.store(false, std::memory_order_relaxed);
  }
  active_tiers_ = index_->tiers();
  for (uint8_t tier = 0; tier < kStreamTiersMax; tier++) {
    std::unique_ptr<TierStream>& stream = tiers_[tier];
    if (!(active_tiers_ >> tier & 1)) {
      stream.reset();
      continue;
    }
    if (!stream) stream.reset(new TierStream(tier, *this, lookups_));
    stream->use(*index_);
  }
  is_live_ = (index_->transaction_tiers() | index_->entry_tiers()) != 0;
  use_history();
  replays_.use(*index_);
  report_applied();
}

// The ring has everything that the former filters matched. If it is full, the next turn tries
// again.
void Streams::report_applied() {
  StreamMessageHead head{};
  head.kind = StreamMessageKind::filters_applied;
  head.generation = generation_;
  applied_waits_ = !ring_.push(head, {}, {});
  written_ = true;
}

// A tier whose recording begins has lost a part of the slots that have begun already.
void Streams::use_history() {
  const size_t bytes = history_bytes_.load(std::memory_order_relaxed);
  uint8_t wanted = bytes < StreamHistory::kBytesMin ? 0 : index_->history_tiers();
  if (wanted == 0) history_.reset();
  else if (!history_) history_ = StreamHistory::create(bytes);
  if (!history_) wanted = 0;  // replays are refused
  for (uint8_t tier = 0; tier < kStreamTiersMax; tier++) {
    const bool is_new = (wanted & ~history_tiers_) >> tier & 1;
    if (is_new) history_->begin_tier(tier, newest_slot_ == 0 ? 0 : newest_slot_ + 1);
    const uint64_t oldest = wanted >> tier & 1 ? history_->oldest(tier) : 0;
    oldest_[tier].store(oldest, std::memory_order_relaxed);
  }
  if (wanted == 0) history_used_.store(0, std::memory_order_relaxed);
  history_tiers_ = wanted;
}

void Streams::read_history(StreamHistoryCounts& out) const {
  out.bytes = history_used_.load(std::memory_order_relaxed);
  out.replayed = replayed_.load(std::memory_order_relaxed);
  for (size_t tier = 0; tier < kStreamTiersMax; tier++)
    out.oldest[tier] = oldest_[tier].load(std::memory_order_relaxed);
}

void Streams::on_record(const StreamMessageHead& head, std::span<const uint8_t> content) {
  if (!history_) return;
  history_->append(head, content);
  history_used_.store(history_->bytes(), std::memory_order_relaxed);
  oldest_[head.tier].store(history_->oldest(head.tier), std::memory_order_relaxed);
}

bool Streams::replay_some() {
  if (!replays_.is_active()) return false;
  StreamReplays::Replay* next = replays_.next();
  return next && replay(*next);
}

// A part of the history, so that the thread returns to the shreds soon. The first filter table
// without a history ends the replays.
bool Streams::replay(StreamReplays::Replay& replay) {
  if (!history_ || !tiers_[replay.tier]) {
    return finish(replay, StreamMessageKind::replay_refused, 0, newest_slot_);
  }
  const uint64_t oldest = history_->oldest(replay.tier);
  if (!replay.is_started) {
    if (oldest == 0 || replay.from_slot < oldest || replay.from_slot > newest_slot_ + kSlotsAhead) {
      return finish(replay, StreamMessageKind::replay_refused, oldest, newest_slot_);
    }
    replay.position = history_->begin();
    replay.is_started = true;
  }
  if (replay.position < history_->begin()) {
    if (oldest > replay.from_slot) {
      return finish(replay, StreamMessageKind::replay_overtaken, oldest, newest_slot_);
    }
    replay.position = history_->begin();
  }
  const uint64_t begin = replay.position;
  while (replay.position != history_->end() && replay.position - begin < kReplayTurnBytes) {
    if (replay.sent_bytes >= replays_.credit_of(replay)) return replay.position != begin;
    uint64_t position = replay.position;
    if (!replay_record(replay, history_->read(position))) return false;
    replay.position = position;
  }
  if (replay.position != history_->end()) return true;
  const uint64_t lost = lost_events_[replay.tier].load(std::memory_order_relaxed);
  return finish(replay, StreamMessageKind::replay_end, replay.from_slot, lost);
}

// Returns false if the ring is full.
bool Streams::replay_record(StreamReplays::Replay& replay, const StreamHistory::Record& record) {
  const StreamMessageHead& head = record.head;
  if (head.tier != replay.tier || head.slot < replay.from_slot) return true;
  if (head.kind != StreamMessageKind::transaction)
    return push_replayed(replay, head, {}, record.content);
  TierStream::Replayed replayed;
  if (!tiers_[replay.tier]->match_record(record, replay.filters, replayed)) return true;
  return push_replayed(replay, replayed.head, replayed.filters, record.content, replayed.loaded);
}

bool Streams::push_replayed(StreamReplays::Replay& replay, StreamMessageHead head,
                            std::span<const uint16_t> filters, std::span<const uint8_t> content,
                            std::span<const uint8_t> loaded) {
  head.generation = generation_;
  head.replay = replay.id;
  if (!ring_.push(head, filters, content, loaded)) return false;
  written_ = true;
  replay.sent_bytes += sizeof head + content.size();
  add_one(replayed_);
  return true;
}

// Returns false if the ring is full; the next turn tries again.
bool Streams::finish(StreamReplays::Replay& replay, StreamMessageKind kind, uint64_t slot,
                     uint64_t parent) {
  StreamMessageHead head{};
  head.kind = kind;
  head.tier = replay.tier;
  head.slot = slot;
  head.parent = parent;
  if (!push_replayed(replay, head)) return false;
  replays_.finish(replay);
  return true;
}

void Streams::add(const uint8_t* packet, const Shred& shred, uint8_t tiers, uint64_t received_ns) {
  for (size_t tier = 0; tier < kStreamTiersMax; tier++) {
    if (!(tiers & active_tiers_ & 1u << tier)) continue;
    const uint64_t repeated = tiers_[tier]->repeated();
    tiers_[tier]->add(packet, shred, received_ns);
    repeated_.store(repeated_.load(std::memory_order_relaxed) + tiers_[tier]->repeated() - repeated,
                    std::memory_order_relaxed);
  }
}

bool Streams::take_written() {
  const bool written = written_;
  written_ = false;
  return written;
}

void Streams::on_message(const StreamMessageHead& head, std::span<const uint16_t> filters,
                         std::span<const uint8_t> content, std::span<const uint8_t> loaded) {
  StreamMessageHead stamped = head;
  stamped.generation = generation_;
  if (replays_.is_active() && head.kind == StreamMessageKind::transaction) {
    live_.assign(filters.begin(), filters.end());
    std::erase_if(live_, [this](uint16_t id) { return replays_.owns(id); });
    if (live_.empty()) return;
    filters = live_;
  }
  written_ = true;
  if (!ring_.push(stamped, filters, content, loaded)) return count_loss(head, filters);
  add_one(messages_);
}

// The total is written last, so that a reader who sees it also sees whose messages were lost.
void Streams::count_loss(const StreamMessageHead& head, std::span<const uint16_t> filters) {
  for (const uint16_t id : filters) add_one(lost_by_filter_[id]);
  if (head.kind == StreamMessageKind::entries) add_one(lost_entries_[head.tier]);
  else if (head.kind != StreamMessageKind::transaction) add_one(lost_events_[head.tier]);
  lost_total_.store(lost_total_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace shredway
