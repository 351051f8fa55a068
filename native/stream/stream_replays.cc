#include "stream/stream_replays.h"

namespace shredway {

void StreamReplays::use(const FilterIndex& index) {
  std::bitset<kStreamReplaysMax> wanted;
  for (const ReplayRequest& request : index.replays()) {
    Replay& replay = replays_[request.id % kStreamReplaysMax];
    wanted.set(request.id % kStreamReplaysMax);
    if (replay.id != request.id) {
      replay = {};
      replay.id = request.id;
      replay.tier = request.tier;
      replay.from_slot = request.from_slot;
    }
    replay.filters.reset();
    for (const uint16_t id : request.filters) replay.filters.set(id);
  }
  for (size_t i = 0; i < kStreamReplaysMax; i++)
    if (!wanted[i]) replays_[i] = {};
  recount();
}

StreamReplays::Replay* StreamReplays::next() {
  for (size_t i = 0; i < kStreamReplaysMax; i++) {
    Replay& replay = replays_[turn_ = (turn_ + 1) % kStreamReplaysMax];
    if (replay.id != 0 && !replay.is_done) return &replay;
  }
  return nullptr;
}

void StreamReplays::finish(Replay& replay) {
  replay.is_done = true;
  recount();
}

void StreamReplays::recount() {
  owned_.reset();
  active_ = 0;
  for (const Replay& replay : replays_) {
    if (replay.id == 0 || replay.is_done) continue;
    owned_ |= replay.filters;
    active_++;
  }
}

}  // namespace shredway
