// Worker, outside the packet path: tables, waiting, ICMP errors, and counters that are read from
// other objects.
#include <time.h>

#include <array>

#include "relay/worker.h"

namespace shredway {
namespace {

constexpr int kSleepMax_ms = 50;
constexpr size_t kIcmpErrorsPerRead = 64;
constexpr int64_t kDropCountInterval_ns = 1'000'000'000;

}  // namespace

// Loads the tables for the batch. The lists in use live until the next acquire(), so newer lists
// never have the same address.
void Worker::acquire_tables() {
  tables_ = &table_reader_.acquire();
  const TargetLists* targets = tables_->targets[table_reader_.number()].get();
  if (targets == targets_) return;
  targets_ = targets;
  transmit_.set_lists(*targets);
  const auto& states = targets->next_hop_states();
  for (size_t i = 0; i < states.size(); i++) counters_->next_hops[i].set(states[i]);
  (*counters_)[WorkerCounter::cloned_destinations].set(transmit_.cloned_targets());
}

uint64_t Worker::now_ns() const { return options_.calls->clock_ns(CLOCK_REALTIME); }

void Worker::wait() {
  constexpr uint32_t kEmptyPollCost_ns = 400;  // cost of an empty recvmmsg; only scales spinning
  constexpr uint32_t kPollsPerHousekeeping = 1u << 16;
  empty_polls_++;
  const bool may_sleep = options_.wait == WaitMode::block ||
                         (options_.wait == WaitMode::spin &&
                          empty_polls_ > options_.spin_us * 1000 / kEmptyPollCost_ns);
  if (!may_sleep) {
    if (empty_polls_ % kPollsPerHousekeeping == 0) rest();
    return;
  }
  if (!waiter_.wait(kSleepMax_ms)) rest();
}

void Worker::housekeeping(uint64_t now_ns) {
  last_housekeeping_ns_ = now_ns;
  WorkerCounters& counters = *counters_;
  acquire_tables();   // lets an idle worker release old tables
  by_xdp_.release();  // frames that another worker's call kept
  transmit_.settle(now_ns);
  expire_pending(now_ns);
  counters[WorkerCounter::cpu_ns].set(options_.calls->clock_ns(CLOCK_THREAD_CPUTIME_ID));
  counters[WorkerCounter::send_calls].set(transmit_.system_calls());
  counters[WorkerCounter::divided_sends].set(transmit_.divided_sends());
  counters[WorkerCounter::late_senders].set(transmit_.late_senders());
  counters[WorkerCounter::sender_cpu_ns].set(transmit_.sender_cpu_ns());
  counters[WorkerCounter::gso_fallbacks].set(transmit_.gso_fallbacks());
  counters[WorkerCounter::clone_triggers].set(transmit_.clone_triggers());
  counters[WorkerCounter::clone_fallbacks].set(transmit_.clone_fallbacks());
  counters[WorkerCounter::clone_refusals].set(transmit_.clone_refusals());
  counters[WorkerCounter::cloned_destinations].set(transmit_.cloned_targets());
  counters[WorkerCounter::highest_slot].set(window_.anchored() ? window_.highest() : 0);
  count_receive_drops(now_ns);
  read_send_errors(sockets_.send_ipv4.fd(), now_ns);
  if (sockets_.send_ipv6.valid()) read_send_errors(sockets_.send_ipv6.fd(), now_ns);
}

void Worker::count_receive_drops(uint64_t now_ns) {
  const auto since_ns = static_cast<int64_t>(now_ns - last_drop_count_ns_);
  if (since_ns >= 0 && since_ns < kDropCountInterval_ns) return;
  last_drop_count_ns_ = now_ns;
  const ReceiveDrops& drops = receive_drop_counter_.update();
  const XdpReceiveDrops by_xdp = by_xdp_.drops();
  (*counters_)[WorkerCounter::receive_drops].set(drops.buffer_full + by_xdp.datagrams);
  (*counters_)[WorkerCounter::filtered].set(drops.filtered);
  (*counters_)[WorkerCounter::xdp_refused].set(by_xdp_.refused());
  (*counters_)[WorkerCounter::xdp_drops].set(by_xdp.datagrams);
  (*counters_)[WorkerCounter::xdp_fill_ring_empty].set(by_xdp.fill_ring_empty);
}

std::vector<uint64_t> Worker::receive_drops_by_socket() const {
  std::vector<uint64_t> drops;
  for (const WorkerSockets::Receive& from : sockets_.receive)
    drops.push_back(receive_drops(from.socket.fd()));
  return drops;
}

// Charges each ICMP error for a datagram of this worker to its destination.
void Worker::read_send_errors(int fd, uint64_t now_ns) {
  std::array<IcmpError, kIcmpErrorsPerRead> errors;
  const size_t count = read_icmp_errors(fd, errors.data(), errors.size(), *options_.calls);
  for (size_t i = 0; i < count; i++) {
    const Destination* destination = tables_->fanout->find(errors[i].destination);
    if (!destination) continue;  // no longer in the table
    counters_->destinations[destination->id].icmp_errors.add(1);
    emit({now_ns, 0, EventKind::icmp_error, destination->id, 0,
          static_cast<uint32_t>(errors[i].error_number)});
  }
}

}  // namespace shredway
