// Worker: construction, start and stop.
#include <cerrno>
#include <cstring>

#include "relay/worker.h"

namespace shredway {
namespace {

std::vector<int> receive_fds(const WorkerSockets& sockets) {
  std::vector<int> fds;
  for (const WorkerSockets::Receive& from : sockets.receive) fds.push_back(from.socket.fd());
  return fds;
}

std::vector<int> multicast_fds(const WorkerSockets& sockets) {
  std::vector<int> fds;
  for (const WorkerSockets::Receive& from : sockets.receive)
    if (from.multicast) fds.push_back(from.socket.fd());
  return fds;
}

}  // namespace

Worker::Worker(const WorkerOptions& options, WorkerSockets sockets, Tables& tables,
               std::string& error)
    : options_(options),
      sockets_(std::move(sockets)),
      table_reader_(tables.current()),
      counters_(std::make_unique<WorkerCounters>()),
      recent_(RecentShreds::create(options.prefault)),
      challenge_echo_(*options.calls),
      received_(*options.calls),
      by_xdp_(options.xdp_receive, *options.calls),
      transmit_({{sockets_.send_ipv4.fd(), sockets_.send_ipv6.fd(), options.gso},
                 options.clone,
                 options.xdp,
                 options.ttl,
                 options.dscp},
                *this, *options.calls),
      send_queue_(std::make_unique<SendQueue>()),
      receive_drop_counter_(receive_fds(sockets_), multicast_fds(sockets_), options.filtered),
      waiter_(receive_fds(sockets_), by_xdp_.descriptors(), error) {
  if (!recent_) error = std::string("cannot reserve memory for recent shreds: ") + strerror(errno);
}

std::unique_ptr<Worker> Worker::create(const WorkerOptions& options, WorkerSockets sockets,
                                       Tables& tables, std::string& error) {
  std::unique_ptr<Worker> worker(new Worker(options, std::move(sockets), tables, error));
  if (!error.empty()) return nullptr;
  tables.add_reader(&worker->table_reader_, worker->transmit_.target_rules(options.tier_count));
  return worker;
}

std::unique_ptr<Worker> Worker::start(const WorkerOptions& options, WorkerSockets sockets,
                                      Tables& tables, std::string& error) {
  std::unique_ptr<Worker> worker = create(options, std::move(sockets), tables, error);
  if (!worker) return nullptr;
  if (options.sender_threads > 0) error = worker->start_senders();
  if (!error.empty()) return nullptr;
  error = worker->thread_.start<&Worker::run>(worker.get(),
                                              "shredway-" + std::to_string(options.number));
  if (error.empty() && options.cpu >= 0) error = worker->thread_.pin(options.cpu);
  return error.empty() ? std::move(worker) : nullptr;
}

// A thread that polls without end would take a processor from the other threads, because it has
// none of its own.
std::string Worker::start_senders() {
  return transmit_.start_senders({options_.sender_threads, options_.number,
                                  options_.wait == WaitMode::block ? 0 : options_.spin_us});
}

std::string Worker::change_membership(uint16_t port, const GroupMembership& membership,
                                      bool join) const {
  const bool ipv4 = is_ipv4(membership.group);
  bool any = false;
  for (const WorkerSockets::Receive& from : sockets_.receive) {
    if (!from.multicast || from.port != port || local_endpoint(from.socket.fd()).is_ipv4() != ipv4)
      continue;
    any = true;
    std::string error =
        join ? join_group(from.socket.fd(), membership) : leave_group(from.socket.fd(), membership);
    if (!error.empty()) return error;
  }
  return any ? "" : "no multicast socket for " + to_string({membership.group, port});
}

void Worker::lock_memory(MemoryLock& lock) const {
  lock.add(this, sizeof *this);
  lock.add(counters_.get(), sizeof *counters_);
  lock.add(send_queue_.get(), sizeof *send_queue_);
  recent_->lock_memory(lock);
  leader_auth_.lock_memory(lock);
  received_.lock_memory(lock);
  transmit_.lock_memory(lock);
  pending_.lock_memory(lock);
  events_.lock_memory(lock);
  traces_.lock_memory(lock);
  if (options_.deshred) options_.deshred->lock_memory(lock);
  if (options_.recovered) options_.recovered->lock_memory(lock);
  thread_.lock_memory(lock);
}

void Worker::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  waiter_.wake();
  thread_.join();
}

Worker::~Worker() { stop(); }

}  // namespace shredway
