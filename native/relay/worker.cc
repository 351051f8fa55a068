#include "relay/worker.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "relay/lead_times.h"
#include "system/privileges.h"

namespace shredway {
namespace {

constexpr int64_t kHouseKeepingEvery_ns = 50'000'000;
// Roots of one FEC set whose signatures are checked. An honest leader signs one; one who signs a
// root for every shred would otherwise cost 50 us for each.
constexpr uint32_t kSignedRootsMax = 4;
// The same for further signatures of one leader over one root, of which he can make any number.
constexpr uint8_t kOtherSignaturesMax = 3;

bool same_identity(const Shred& a, const Shred& b) {
  return a.slot == b.slot && a.fec_set_index == b.fec_set_index && a.leaf == b.leaf;
}

}  // namespace

// ---- the path of a packet -------------------------------------------------------------------

void Worker::handle_batch(const WorkerSockets::Receive& from) {
  take_tables();
  if (options_.arrivals) options_.arrivals->keep(received_, from.port);
  for (size_t i = 0; i < received_.size(); i++)
    if (!examine(received_.packet(i), from)) postponed_[postponed_count_++] = received_.packet(i);
  settle_candidates();
  for (size_t i = 0; i < postponed_count_; i++) {
    if (examine(postponed_[i], from)) continue;
    settle_candidates();
    examine(postponed_[i], from);
  }
  postponed_count_ = 0;
  settle_candidates();
  fan_out();
  feed_deshredder();
  (*counters_)[WorkerCounter::received].add(received_.size());
  (*counters_)[WorkerCounter::batches].add(1);
  const uint64_t now_ns = received_.packet(received_.size() - 1).received_ns;
  const auto since_ns = static_cast<int64_t>(now_ns - last_housekeeping_ns_);
  if (since_ns > kHouseKeepingEvery_ns || since_ns < -kHouseKeepingEvery_ns) housekeeping(now_ns);
}

// False, and nothing done, when the packet's identity is among the shreds that wait for their
// roots: what it is depends on them, and settling fewer than four at once costs twice as much for
// each.
bool Worker::examine(const ReceivedPacket& packet, const WorkerSockets::Receive& from) {
  const Source* source = tables_->sources->find(*packet.sender, from.port);
  if (!source) return count(kUnknownSourceRow, Verdict::unknown_source);

  Candidate candidate{packet.bytes, packet.received_ns, nullptr, *source, {}};
  Shred& shred = candidate.shred;
  const Verdict verdict = check_packet(packet.bytes, packet.length, shred);
  if (verdict != Verdict::first) return refuse(packet, from, source->id, verdict);
  if (options_.shred_version && shred.version != options_.shred_version)
    return count(source->id, Verdict::wrong_version);
  const SlotWindow::Place place = place_of(shred.slot, packet.received_ns);
  if (place == SlotWindow::Place::behind) return count(source->id, Verdict::slot_behind);
  if (place == SlotWindow::Place::ahead) return count(source->id, Verdict::slot_ahead);
  for (size_t i = 0; i < candidate_count_; i++)
    if (same_identity(candidates_[i].shred, shred)) return false;

  // The signature binds the root and the root binds the bytes, so a known signature for an identity
  // that was served already can bring nothing new: no hashing needed.
  // Who measures feeds wants to know what each one brought, so there every packet proves itself.
  const bool proves_itself = options_.arrivals && options_.authenticate;
  const FecSetRecord* record = proves_itself ? nullptr : recent_->find(shred, packet.bytes);
  if (record && (source->covers & ~record->shred_records[shred.leaf].tiers_served) == 0) {
    if (options_.arrivals) note_arrival(candidate);
    return note_duplicate(candidate);
  }

  if (options_.authenticate) {
    candidate.leader = tables_->leaders->leader_of(shred.slot);
    if (!candidate.leader) return count(source->id, Verdict::unknown_leader);
  }
  candidates_[candidate_count_++] = candidate;
  if (candidate_count_ == kMerkleLanes) settle_candidates();
  return true;
}

// No shred. A challenge ends here, too: it is shorter than the variant's place in a shred.
bool Worker::refuse(const ReceivedPacket& packet, const WorkerSockets::Receive& from,
                    uint16_t source, Verdict verdict) {
  static_assert(kChallengeBytesMax <= offset::kVariant);
  if (verdict == Verdict::too_short && options_.answer_challenges &&
      challenge_echo_.answer(from.socket.fd(), packet))
    return count(source, Verdict::challenge);
  return count(source, verdict);
}

SlotWindow::Place Worker::place_of(uint64_t slot, uint64_t now_ns) const {
  if (const SlotBounds* bounds = options_.slot_bounds; bounds && bounds->hold_at(now_ns)) {
    if (slot < bounds->lowest.load(std::memory_order_relaxed)) return SlotWindow::Place::behind;
    if (slot > bounds->highest.load(std::memory_order_relaxed)) return SlotWindow::Place::ahead;
  }
  return window_.place_of(slot, now_ns);
}

void Worker::settle_candidates() {
  if (candidate_count_ == 0) return;
  std::array<Root, kMerkleLanes> roots{};
  if (options_.authenticate) {
    std::array<MerkleInput, kMerkleLanes> inputs;
    for (size_t i = 0; i < candidate_count_; i++)
      inputs[i] = merkle_input(candidates_[i].packet, candidates_[i].shred);
    merkle_roots(inputs.data(), candidate_count_, roots.data());
  }
  for (size_t i = 0; i < candidate_count_; i++) {
    const Verdict verdict =
        options_.authenticate ? authenticate(candidates_[i], roots[i]) : Verdict::first;
    if (verdict == Verdict::first) record(candidates_[i], roots[i]);
    else count(candidates_[i].source.id, verdict);
  }
  candidate_count_ = 0;
}

// Verdict::first when the leader signed the root. A signature that is known to stand over another
// root cannot stand over this one too, so altered bytes under a known signature cost one hash.
Verdict Worker::authenticate(const Candidate& candidate, const Root& root) {
  if (const FecSetRecord* record = recent_->find(candidate.shred, candidate.packet))
    return record->root == root ? Verdict::first : Verdict::root_mismatch;
  switch (leader_auth_.recall(*candidate.leader, candidate.packet, root)) {
    case LeaderAuth::Answer::valid:
      return Verdict::first;
    case LeaderAuth::Answer::invalid:
      return Verdict::signature_invalid;
    case LeaderAuth::Answer::unknown:
      break;
  }
  FecSetRecord* same_root = recent_->find_root(candidate.shred, root);
  if (same_root ? same_root->other_signatures >= kOtherSignaturesMax
                : recent_->root_count(candidate.shred) >= kSignedRootsMax)
    return Verdict::equivocation_excess;
  if (!may_check_signature(candidate.source.id, candidate.received_ns))
    return Verdict::source_over_budget;
  (*counters_)[WorkerCounter::signature_checks].add(1);
  if (leader_auth_.verify(*candidate.leader, candidate.packet, root)) {
    if (same_root) same_root->other_signatures++;
    return Verdict::first;
  }
  failed_checks_[candidate.source.id].count++;
  return Verdict::signature_invalid;
}

// Forged packets must not fill the core: while packets wait, each source may fail so many checks in
// a second. A worker that keeps up checks everything: somebody who sends forgeries in another's
// name must not cost that source its real shreds.
bool Worker::may_check_signature(uint16_t source, uint64_t now_ns) {
  FailedChecks& failed_checks = failed_checks_[source];
  const uint64_t second = now_ns / 1'000'000'000u;
  if (failed_checks.second != second) failed_checks = {second, 0};
  const bool keeps_up = received_.size() < kReceiveBatchMax;
  return keeps_up || failed_checks.count < options_.failed_checks_per_second;
}

void Worker::record(const Candidate& candidate, const Root& root) {
  if (options_.arrivals) note_arrival(candidate);
  const RecentShreds::Outcome outcome = recent_->record(
      candidate.shred, candidate.packet, root,
      {candidate.source.covers, candidate.source.id, sighting_time(candidate.received_ns)},
      options_.authenticate);
  if (outcome.verdict == Verdict::duplicate) {
    note_duplicate(candidate);
    return;
  }
  count(candidate.source.id, outcome.verdict);
  if (outcome.verdict == Verdict::new_tier) note_lead(candidate);
  if (outcome.tiers) queue_for_send(candidate, outcome);
  if (outcome.verdict == Verdict::first) {
    handing_.items[handing_.count++] = {candidate.packet, candidate.received_ns,
                                        candidate.shred.bytes};
    counters_->note_first_sight(candidate.shred, candidate.received_ns);
    if (window_.note(candidate.shred.slot, candidate.received_ns)) {
      (*counters_)[WorkerCounter::window_anchored].add(1);
      emit({candidate.received_ns, window_.highest(), EventKind::window_anchored, options_.number,
            0, 0});
    }
  } else if (outcome.verdict == Verdict::equivocation) {
    emit({candidate.received_ns, candidate.shred.slot, EventKind::equivocation, candidate.source.id,
          candidate.shred.fec_set_index, candidate.shred.index});
  }
}

bool Worker::note_duplicate(const Candidate& candidate) {
  note_lead(candidate);
  return count(candidate.source.id, Verdict::duplicate);
}

// The second source that brings a shred tells by how much the first one was ahead.
void Worker::note_lead(const Candidate& candidate) {
  FecSetRecord* record = recent_->find(candidate.shred, candidate.packet);
  if (!record) return;
  note_lead_time(record->shred_records[candidate.shred.leaf], candidate.source.id,
                 sighting_time(candidate.received_ns), *counters_);
}

void Worker::queue_for_send(const Candidate& candidate, const RecentShreds::Outcome& outcome) {
  const auto type = static_cast<size_t>(candidate.shred.type);
  for (uint32_t tier = 0; tier < options_.tier_count; tier++) {
    if (!(outcome.tiers >> tier & 1)) continue;
    fresh_->plain[tier][type].add(candidate.packet, candidate.shred.bytes);
    if (!(outcome.recovered_sent >> tier & 1))
      fresh_->wants_recovered[tier][type].add(candidate.packet, candidate.shred.bytes);
  }
  fresh_->received_ns[fresh_->shreds++] = candidate.received_ns;
}

// Widest tier first: it has waited for the most sources.
void Worker::fan_out() {
  if (fresh_->shreds == 0) return;
  if (send_fresh()) {
    const uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    for (uint32_t i = 0; i < fresh_->shreds; i++)
      if (now_ns > fresh_->received_ns[i] && fresh_->received_ns[i])
        counters_->latency.record(now_ns - fresh_->received_ns[i]);
  }
  fresh_->shreds = 0;
}

// False when nobody was to receive anything.
bool Worker::send_fresh() {
  bool anybody = false;
  for (uint32_t tier = options_.tier_count; tier-- > 0;) anybody |= send_tier(tier);
  transmit_.flush();
  for (uint32_t tier = 0; tier < options_.tier_count; tier++)
    for (size_t type = 0; type < 2; type++)
      fresh_->plain[tier][type].count = fresh_->wants_recovered[tier][type].count = 0;
  return anybody;
}

// The shreds are out: now the deshredder may have them. Never waits for it.
void Worker::feed_deshredder() {
  size_t handed = 0;
  for (size_t i = 0; i < handing_.count && options_.deshred; i++) {
    HandedShred* to = options_.deshred->place(handed);
    if (!to) break;
    to->received_ns = handing_.items[i].received_ns;
    std::memcpy(to->packet, handing_.items[i].packet, handing_.items[i].bytes);
    handed++;
  }
  if (options_.deshred) {
    options_.deshred->publish(handed);
    (*counters_)[WorkerCounter::deshred_lost].add(handing_.count - handed);
  }
  handing_.count = 0;
}

// False when nobody was to receive anything.
bool Worker::send_tier(uint32_t tier) {
  auto& plain = fresh_->plain[tier];
  auto& wants_recovered = fresh_->wants_recovered[tier];
  const std::span<const Destination> destinations = tables_->fanout->of_tier(tier);
  if (destinations.empty() ||
      plain[0].count + plain[1].count + wants_recovered[0].count + wants_recovered[1].count == 0)
    return false;
  const auto groups_of = [](auto& payloads) {
    return std::array{PayloadGroup{payloads[0].iovecs, payloads[0].count, kDataShredBytes},
                      PayloadGroup{payloads[1].iovecs, payloads[1].count, kCodeShredBytes}};
  };
  transmit_.add(tier, {groups_of(plain), groups_of(wants_recovered)}, sends_recovered_);
  return true;
}

// Results of each datagram, reported by the transmit.
void Worker::sent(uint32_t tag, uint32_t datagrams) {
  DestinationCounters& counters = counters_->destinations[tag];
  (sends_recovered_ ? counters.recovered_sent : counters.sent).add(datagrams);
}

void Worker::failed(uint32_t tag, uint32_t datagrams, SendFailure failure) {
  counters_->destinations[tag].failed[static_cast<size_t>(failure)].add(datagrams);
}

void Worker::cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) {
  counters_->destinations[tag].sent.add(datagrams);
  counters_->destinations[tag].recovered_sent.add(recovered_datagrams);
}

void Worker::clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) {
  counters_->destinations[tag].failed[static_cast<size_t>(failure)].add(datagrams);
}

void Worker::emit(const Event& event) {
  if (!events_.push(event)) (*counters_)[WorkerCounter::events_lost].add(1);
}

void Worker::run() {
  drop_privileges_of_this_thread();  // its sockets are open
  housekeeping(clock_ns(CLOCK_REALTIME));
  while (!stopping_.load(std::memory_order_relaxed)) {
    bool taken = false;
    bool more_waits = false;
    for (const WorkerSockets::Receive& from : sockets_.receive) {
      if (received_.receive(from.socket.fd()) == 0) continue;
      taken = true;
      more_waits |= received_.size() == kReceiveBatchMax;
      handle_batch(from);
    }
    if (options_.recovered) queue_recovered();
    if (taken) empty_looks_ = 0;
    // A short batch emptied the socket: whoever sleeps asks poll at once, not the socket again.
    if (!taken || (!more_waits && options_.wait == WaitMode::block)) wait();
  }
}

}  // namespace shredway
