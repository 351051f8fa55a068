#include "relay/worker.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "net/steering.h"
#include "relay/lead_times.h"
#include "system/privileges.h"

namespace shredway {
namespace {

constexpr int64_t kHousekeepingInterval_ns = 50'000'000;
// Maximum of signed roots of one FEC set. An honest leader signs one root; a leader who signs one
// root per shred would otherwise cost 50 us per shred.
constexpr uint32_t kSignedRootsMax = 4;

bool same_identity(const Shred& a, const Shred& b) {
  return a.slot == b.slot && a.fec_set_index == b.fec_set_index && a.leaf == b.leaf;
}

}  // namespace

// ---- packet path ----------------------------------------------------------------------------

void Worker::handle_batch(std::span<const ReceivedPacket> packets, const Origin& from) {
  acquire_tables();
  if (options_.arrivals) options_.arrivals->capture(packets, from.port);
  for (const ReceivedPacket& packet : packets)
    if (!examine(packet, from)) postponed_[postponed_count_++] = packet;
  settle_candidates();
  for (size_t i = 0; i < postponed_count_; i++) {
    if (examine(postponed_[i], from)) continue;
    settle_candidates();
    examine(postponed_[i], from);
  }
  postponed_count_ = 0;
  settle_candidates();
  fan_out();
  check_unverified();
  feed_deshredder();
  (*counters_)[WorkerCounter::received].add(packets.size());
  (*counters_)[WorkerCounter::batches].add(1);
  const uint64_t now_ns = packets.back().received_ns;
  const auto since_ns = static_cast<int64_t>(now_ns - last_housekeeping_ns_);
  if (since_ns > kHousekeepingInterval_ns || since_ns < -kHousekeepingInterval_ns)
    housekeeping(now_ns);
}

// Returns false without any effect if a candidate with the same identity waits for its root: the
// verdict depends on that candidate. Settling fewer than four candidates at once would double the
// cost of each.
bool Worker::examine(const ReceivedPacket& packet, const Origin& from) {
  Candidate candidate{packet.bytes, packet.received_ns, nullptr, {}, {}};
  Shred& shred = candidate.shred;
  const Verdict verdict = check_packet(packet.bytes, packet.length, shred);
  const Source* source = source_of(packet, from);
  if (verdict != Verdict::first)
    return refuse(packet, from, source ? source->id : kUnknownSourceRow, verdict);
  if (!source) return count(kUnknownSourceRow, Verdict::unknown_source);
  candidate.source = *source;
  if (options_.shred_version && shred.version != options_.shred_version)
    return count(source->id, Verdict::wrong_version);
  const SlotWindow::Place place = place_of(shred.slot, packet.received_ns);
  if (place == SlotWindow::Place::behind ||
      recent_->outranked(shred, arrival_time(packet.received_ns)))
    return count(source->id, Verdict::slot_behind);
  if (place == SlotWindow::Place::ahead) {
    record_ahead(candidate);
    return count(source->id, Verdict::slot_ahead);
  }
  for (size_t i = 0; i < candidate_count_; i++)
    if (same_identity(candidates_[i].shred, shred)) return false;
  count_misdirected(shred);

  // The signature binds the root and the root binds the bytes. A packet with a known signature and
  // a served identity therefore is a duplicate and needs no hash. When feeds are measured, each
  // packet must prove its own bytes.
  const bool checks_every_packet = options_.arrivals && options_.authenticate;
  const FecSetRecord* known = checks_every_packet ? nullptr : recent_->find(shred, packet.bytes);
  if (known && known->shred_records[shred.leaf].has_arrived &&
      (source->tier_mask & ~known->shred_records[shred.leaf].tiers_served) == 0) {
    if (options_.arrivals) record_arrival(candidate);
    return record_duplicate(candidate);
  }

  if (options_.authenticate) {
    candidate.leader = tables_->leaders->leader_of(shred.slot);
    if (!candidate.leader) return count(source->id, Verdict::unknown_leader);
  }
  candidates_[candidate_count_++] = candidate;
  if (candidate_count_ == kMerkleLanes) settle_candidates();
  return true;
}

// The kernel steers the parts of a segmented or joined datagram together, by the first one. Another
// worker may get copies of the others, and both then send them.
void Worker::count_misdirected(const Shred& shred) {
  const uint32_t workers = options_.worker_count;
  if (workers > 1 && steered_worker(shred.slot, shred.fec_set_index, workers) != options_.number)
    (*counters_)[WorkerCounter::misdirected].add(1);
}

const Source* Worker::source_of(const ReceivedPacket& packet, const Origin& from) const {
  if (!from.multicast)
    return tables_->sources->find(*packet.sender, packet.port ? packet.port : from.port);
  AddressBytes group;
  if (!destination_of(packet, group) || !is_multicast(group)) return nullptr;
  return tables_->sources->find_group(group, from.port);
}

// Gives a packet that is not a shred its verdict. A challenge also ends here, because it is shorter
// than the offset of the variant byte in a shred.
bool Worker::refuse(const ReceivedPacket& packet, const Origin& from, uint16_t source,
                    Verdict verdict) {
  static_assert(kChallengeBytesMax <= offset::kVariant);
  if (verdict == Verdict::too_short && from.multicast && packet.length < kDataShredBytes &&
      is_group_heartbeat(packet))
    return count(source, Verdict::heartbeat);
  if (verdict == Verdict::too_short && options_.answer_challenges && source != kUnknownSourceRow &&
      !from.multicast && challenge_echo_.answer(from.fd, packet))
    return count(source, Verdict::challenge);
  if (source != kUnknownSourceRow && is_trace(packet.bytes, packet.length)) {
    Trace trace{packet.received_ns, source, static_cast<uint16_t>(packet.length), {}};
    std::memcpy(trace.packet.data(), packet.bytes, packet.length);
    traces_.push(trace);  // a full ring drops it: the verdict counts it
    return count(source, Verdict::trace);
  }
  return count(source, verdict);
}

// Bounds of a trusted clock decide alone, and an anchor outside them is wrong. The clock may follow
// a recording, though, or a frozen node. If leaders moved the window beyond unconfirmed bounds, the
// window decides until the clock has followed.
SlotWindow::Place Worker::place_of(uint64_t slot, uint64_t now_ns) {
  const SlotBounds* bounds = options_.slot_bounds;
  if (bounds && slot < bounds->floor.load(std::memory_order_relaxed))
    return SlotWindow::Place::behind;
  if (!bounds || !bounds->hold_at(now_ns)) return window_.place_of(slot, now_ns);
  const uint64_t lowest = bounds->lowest.load(std::memory_order_relaxed);
  const uint64_t highest = bounds->highest.load(std::memory_order_relaxed);
  overrules_bounds_ &= window_.highest() > highest && !bounds->confirmed.load();
  if (overrules_bounds_) return window_.place_of(slot, now_ns);
  if (window_.anchored() && (window_.highest() < lowest || window_.highest() > highest))
    window_.forget();
  if (slot < lowest) return SlotWindow::Place::behind;
  return slot > highest ? SlotWindow::Place::ahead : SlotWindow::Place::inside;
}

// Authenticates a sample of the shreds that are ahead of the window: as evidence only, so that
// replayed old shreds cannot hold the window in the past.
void Worker::record_ahead(const Candidate& candidate) {
  const uint64_t now_ns = candidate.received_ns;
  const SlotBounds* bounds = options_.slot_bounds;
  const bool bounded = bounds && bounds->hold_at(now_ns);
  if (!options_.authenticate || (bounded && bounds->confirmed.load())) return;
  const VerifyingKey* leader = tables_->leaders->leader_of(candidate.shred.slot);
  if (!leader || !window_.samples_ahead(now_ns)) return;
  const MerkleInput input = merkle_input(candidate.packet, candidate.shred);
  Root root;
  merkle_roots(&input, 1, &root);
  LeaderAuth::Answer answer = leader_auth_.recall(*leader, candidate.packet, root);
  if (answer == LeaderAuth::Answer::unknown) {
    const bool valid = verify(*leader, candidate.packet, root);
    answer = valid ? LeaderAuth::Answer::valid : LeaderAuth::Answer::invalid;
  }
  if (answer != LeaderAuth::Answer::valid ||
      !window_.record_ahead(candidate.shred.slot, load_u64(leader->bytes().data()), now_ns))
    return;
  overrules_bounds_ = bounded;
  report_anchor(now_ns);
}

void Worker::report_anchor(uint64_t now_ns) {
  (*counters_)[WorkerCounter::window_anchored].add(1);
  emit({now_ns, window_.highest(), EventKind::window_anchored, options_.number, 0, 0});
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
    const std::optional<Verdict> verdict =
        options_.authenticate ? known_verdict(candidates_[i], roots[i]) : Verdict::first;
    if (verdict) settle(candidates_[i], roots[i], *verdict);
    else unverified_[unverified_count_++] = {candidates_[i], roots[i], 0, false};
  }
  candidate_count_ = 0;
}

void Worker::settle(const Candidate& candidate, const Root& root, Verdict verdict) {
  if (verdict == Verdict::first) record(candidate, root);
  else count(candidate.source.id, verdict);
}

// Verdict::first if the leader signed the root; no value if only a check can tell. The root binds
// the bytes of the shred. Altered bytes under a known signature therefore cost one hash, and a
// shred of a known root with any other signature is authentic: it is sent with the verified one. It
// is not sent with a signature that came from sources for own use only.
std::optional<Verdict> Worker::known_verdict(const Candidate& candidate, const Root& root) {
  if (const FecSetRecord* known = recent_->find_root(candidate.shred, root)) {
    if (std::memcmp(known->signature, candidate.packet, kSignatureBytes) == 0)
      return Verdict::first;
    if (known->forwardable || !candidate.source.tier_mask) {
      std::memcpy(candidate.packet, known->signature, kSignatureBytes);
      (*counters_)[WorkerCounter::signatures_replaced].add(1);
      return Verdict::first;
    }
  }
  if (recent_->find(candidate.shred, candidate.packet)) return Verdict::root_mismatch;
  switch (leader_auth_.recall(*candidate.leader, candidate.packet, root)) {
    case LeaderAuth::Answer::valid:
      return Verdict::first;
    case LeaderAuth::Answer::invalid:
      return Verdict::signature_invalid;
    case LeaderAuth::Answer::unknown:
      break;
  }
  if (recent_->root_count(candidate.shred, candidate.source.tier_mask) >= kSignedRootsMax)
    return Verdict::equivocation_excess;
  return std::nullopt;
}

void Worker::record(const Candidate& candidate, const Root& root) {
  if (send_queue_->shreds == kReceiveBatchMax || deshred_input_.count == kReceiveBatchMax) {
    fan_out();  // pending shreds may come on top of a full batch
    feed_deshredder();
  }
  if (options_.arrivals) record_arrival(candidate);
  const RecentShreds::Outcome outcome = recent_->record(
      candidate.shred, candidate.packet, root,
      {candidate.source.tier_mask, candidate.source.id, arrival_time(candidate.received_ns)},
      options_.authenticate);
  if (outcome.verdict == Verdict::duplicate) {
    record_duplicate(candidate);
    return;
  }
  count(candidate.source.id, outcome.verdict);
  if (outcome.verdict == Verdict::new_tier || outcome.verdict == Verdict::first_forwardable)
    record_lead(candidate);
  if (candidate.shred.resigned() && !options_.keep_retransmitter_signatures)
    std::memset(candidate.packet + candidate.shred.proof_end(), 0, kSignatureBytes);
  if (outcome.tiers) queue_for_send(candidate, outcome);
  queue_for_deshredder(candidate, outcome);
  if (outcome.is_new) {
    record_new(candidate);
  } else if (outcome.is_equivocation) {
    emit({candidate.received_ns, candidate.shred.slot, EventKind::equivocation, candidate.source.id,
          candidate.shred.fec_set_index, candidate.shred.index});
  }
}

void Worker::record_new(const Candidate& candidate) {
  counters_->record_first_arrival(candidate.shred, candidate.received_ns);
  if (candidate.shred.resigned()) (*counters_)[WorkerCounter::resigned].add(1);
  if (window_.record(candidate.shred.slot, candidate.received_ns))
    report_anchor(candidate.received_ns);
}

bool Worker::record_duplicate(const Candidate& candidate) {
  record_lead(candidate);
  return count(candidate.source.id, Verdict::duplicate);
}

// The second source of a shred determines the lead time of the first one.
void Worker::record_lead(const Candidate& candidate) {
  FecSetRecord* known = recent_->find(candidate.shred, candidate.packet);
  if (!known) return;
  record_lead_time(known->shred_records[candidate.shred.leaf], candidate.source.id,
                   arrival_time(candidate.received_ns), *counters_);
}

void Worker::queue_for_send(const Candidate& candidate, const RecentShreds::Outcome& outcome) {
  const auto type = static_cast<size_t>(candidate.shred.type);
  for (uint32_t tier = 0; tier < options_.tier_count; tier++) {
    if (!(outcome.tiers >> tier & 1)) continue;
    send_queue_->plain[tier][type].add(candidate.packet, candidate.shred.bytes);
    if (!(outcome.recovered_sent >> tier & 1))
      send_queue_->wants_recovered[tier][type].add(candidate.packet, candidate.shred.bytes);
  }
  send_queue_->received_ns[send_queue_->shreds++] = candidate.received_ns;
}

// Sends the widest tier first: its destinations have waited the longest.
void Worker::fan_out() {
  if (send_queue_->shreds == 0) return;
  if (send_queued()) {
    const uint64_t sent_ns = now_ns();
    for (uint32_t i = 0; i < send_queue_->shreds; i++)
      if (sent_ns > send_queue_->received_ns[i] && send_queue_->received_ns[i])
        counters_->latency.record(sent_ns - send_queue_->received_ns[i]);
  }
  send_queue_->shreds = 0;
}

// Returns false if no datagram was queued.
bool Worker::send_queued() {
  bool any_queued = false;
  for (uint32_t tier = options_.tier_count; tier-- > 0;) any_queued |= send_tier(tier);
  transmit_.flush();
  for (uint32_t tier = 0; tier < options_.tier_count; tier++)
    for (size_t type = 0; type < 2; type++)
      send_queue_->plain[tier][type].count = send_queue_->wants_recovered[tier][type].count = 0;
  return any_queued;
}

void Worker::queue_for_deshredder(const Candidate& candidate,
                                  const RecentShreds::Outcome& outcome) {
  const uint8_t stream_tiers =
      options_.stream_tiers ? options_.stream_tiers->load(std::memory_order_relaxed) : uint8_t{0};
  const auto tiers = static_cast<TierMask>(outcome.tiers & stream_tiers);
  if (!outcome.is_new && !outcome.is_new_forwardable && !tiers) return;
  deshred_input_.items[deshred_input_.count++] = {candidate.packet,           candidate.received_ns,
                                                  candidate.shred.bytes,      outcome.is_new,
                                                  outcome.is_new_forwardable, tiers};
}

// Runs after the send; never waits for the deshredder.
void Worker::feed_deshredder() {
  size_t queued = 0;
  for (size_t i = 0; i < deshred_input_.count && options_.deshred; i++) {
    QueuedShred* to = options_.deshred->place(queued);
    if (!to) break;
    const DeshredInput::Item& item = deshred_input_.items[i];
    to->received_ns = item.received_ns;
    to->is_new = item.is_new;
    to->is_forwardable = item.is_forwardable;
    to->tiers = item.tiers;
    std::memcpy(to->packet, item.packet, item.bytes);
    queued++;
  }
  if (options_.deshred) {
    options_.deshred->publish(queued);
    (*counters_)[WorkerCounter::deshred_lost].add(deshred_input_.count - queued);
  }
  deshred_input_.count = 0;
}

// Returns false if no datagram was queued.
bool Worker::send_tier(uint32_t tier) {
  auto& plain = send_queue_->plain[tier];
  auto& wants_recovered = send_queue_->wants_recovered[tier];
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

// Results of each datagram, reported by Transmit.
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

// While AF_XDP brings packets, the sockets are asked in one turn of four only: they get little
// then, and each call costs as much as a shred.
Worker::Turn Worker::take_turn() {
  constexpr uint32_t kTurnsWithoutSocketsMax = 3;
  Turn turn;
  const bool by_xdp = receive_by_xdp(turn);
  if (by_xdp && turns_without_sockets_++ < kTurnsWithoutSocketsMax) {
    if (options_.recovered) queue_recovered();
    return turn;
  }
  turns_without_sockets_ = 0;
  for (const WorkerSockets::Receive& from : sockets_.receive) {
    if (received_.receive(from.socket.fd()) == 0) continue;
    turn.received_any = true;
    turn.more_waiting |= received_.size() == kReceiveBatchMax;
    handle_batch(received_.packets(), {from.socket.fd(), from.port, from.multicast});
  }
  if (options_.recovered) queue_recovered();
  return turn;
}

// Returns false if no frame waited.
bool Worker::receive_by_xdp(Turn& turn) {
  if (by_xdp_.is_empty()) return false;
  const std::span<const ReceivedPacket> packets = by_xdp_.receive();
  turn.more_waiting = by_xdp_.may_have_more();
  if (!packets.empty()) {
    handle_batch(packets, {-1, 0, false});
    (*counters_)[WorkerCounter::xdp_received].add(packets.size());
  }
  by_xdp_.release();
  turn.received_any = !packets.empty() || turn.more_waiting;
  return turn.received_any;
}

void Worker::run() {
  drop_privileges_of_this_thread();  // all sockets are open
  rest();
  while (!stopping_.load(std::memory_order_relaxed)) {
    const Turn turn = take_turn();
    if (turn.received_any) empty_polls_ = 0;
    // A short batch means that the socket is empty, so a blocking worker sleeps in poll right away.
    if (!turn.received_any || (!turn.more_waiting && options_.wait == WaitMode::block)) wait();
  }
}

}  // namespace shredway
