#include "stream/streams.h"

namespace shredway {
namespace {

// One thread writes each counter.
void add_one(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

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
