#include "submission/fast_path.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "submission/memory_streams.h"

namespace shredway {
namespace {

uint64_t descriptor_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace

FastPath::FastPath(FastPathSockets& sockets)
    : sockets_(sockets), descriptors_max_(descriptor_limit() / 4) {}

std::unique_ptr<FastPath> FastPath::simulate(MemoryStreams& streams) {
  return std::unique_ptr<FastPath>(new FastPath(streams));
}

std::unique_ptr<FastPath> FastPath::open(std::string& error) {
  std::unique_ptr<FastPath> path(new FastPath(system_fast_path_sockets()));
  path->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  path->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kFastPathWakeEvent;
  if (path->epoll_ < 0 || path->wake_ < 0 ||
      epoll_ctl(path->epoll_, EPOLL_CTL_ADD, path->wake_, &event) != 0) {
    error = std::string("cannot watch connections: ") + std::strerror(errno);
    return nullptr;
  }
  // Its work is short, and a customer waits for it.
  const RaisedPriority raised;
  error = path->thread_.start<&FastPath::run>(path.get(), "shredway-fast");
  return error.empty() ? std::move(path) : nullptr;
}

FastPath::~FastPath() {
  stop();
  for (Connection& connection : connections_)
    if (connection.fd >= 0) sockets_.close(connection.fd);
  for (const Loan& loan : loans_)
    if (loan.fd >= 0) sockets_.close(loan.fd);
  for (const int descriptor : {epoll_, wake_, offers_fd_})
    if (descriptor >= 0) close(descriptor);
}

void FastPath::stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
  }
  const uint64_t one = 1;
  if (wake_ >= 0) (void)!write(wake_, &one, sizeof one);
  thread_.join();
}

// ---- what may be sent -----------------------------------------------------------------------

void FastPath::set_rules(std::shared_ptr<const TransactionInspector> inspector,
                         uint64_t minimum_tip) {
  const std::scoped_lock lock(mutex_);
  inspector_ = std::move(inspector);
  minimum_tip_ = minimum_tip;
}

void FastPath::allow(uint32_t key, uint32_t calls) {
  const std::scoped_lock lock(mutex_);
  if (key >= kFastPathKeysMax) return;
  if (keys_.size() <= key) keys_.resize(key + 1);
  keys_[key].left = calls - std::min(calls, keys_[key].unclaimed);
}

void FastPath::add_unclaimed_locked(uint32_t key) {
  keys_[key].left--;
  keys_[key].unclaimed++;
  counts_.unclaimed++;
}

void FastPath::remove_unclaimed_locked(uint32_t key) {
  keys_[key].unclaimed--;
  counts_.unclaimed--;
}

void FastPath::note(std::string_view signature) {
  const std::scoped_lock lock(mutex_);
  recent_.add(signature);
}

// -1: the system refuses it, or the rest of the service needs it.
int FastPath::duplicate_locked(int fd) {
  const uint64_t used = uint64_t{counts_.connections} + counts_.loans;
  return used < descriptors_max_ ? sockets_.duplicate(fd) : -1;
}

// ---- callers' connections -------------------------------------------------------------------

std::optional<uint32_t> FastPath::watch(int fd) {
  const std::scoped_lock lock(mutex_);
  const int own = duplicate_locked(fd);
  if (own < 0) return {};
  uint32_t number = 0;
  if (!free_connections_.empty()) {
    number = free_connections_.back();
    free_connections_.pop_back();
  } else if (connections_.size() < kFastPathConnectionsMax) {
    number = static_cast<uint32_t>(connections_.size());
    connections_.emplace_back();
  } else {
    sockets_.close(own);
    return {};
  }
  Connection& connection = connections_[number];
  const uint32_t generation = connection.generation + 1;
  connection = {};
  connection.generation = generation;
  connection.fd = own;
  connection.is_open = true;
  if (!sockets_.watch(epoll_, own, number)) {
    sockets_.close(own);
    connection.fd = -1;
    connection.is_open = false;
    free_connections_.push_back(number);
    return {};
  }
  counts_.connections++;
  return number;
}

bool FastPath::learn(uint32_t connection, std::string_view head, std::string_view body,
                     TransactionTextEncoding encoding, uint32_t key, uint64_t until_ns) {
  auto pattern = RequestPattern::learn(head, body, encoding);
  const std::scoped_lock lock(mutex_);
  if (connection >= connections_.size() || !connections_[connection].is_open) return false;
  Connection& known = connections_[connection];
  known.pattern = pattern ? std::make_shared<const RequestPattern>(std::move(*pattern)) : nullptr;
  known.key = key;
  known.until_ns = until_ns;
  return known.pattern != nullptr;
}

void FastPath::forget(uint32_t connection) {
  const std::scoped_lock lock(mutex_);
  if (connection < connections_.size()) forget_locked(connections_[connection]);
}

void FastPath::forget_all() {
  const std::scoped_lock lock(mutex_);
  for (Connection& connection : connections_) forget_locked(connection);
  offers_.forget_all();
}

// A check under way ends without a send.
void FastPath::forget_locked(Connection& connection) {
  connection.pattern = nullptr;
  if (connection.stage != Stage::armed && connection.stage != Stage::checking) return;
  connection.stage = Stage::idle;
  connection.generation++;
}

void FastPath::arm(uint32_t connection, uint32_t received) {
  const std::scoped_lock lock(mutex_);
  if (connection >= connections_.size()) return;
  Connection& known = connections_[connection];
  if (!known.is_open || known.stage != Stage::idle || !known.pattern) return;
  known.stage = Stage::armed;
  known.received = received;
  known.generation++;
}

std::optional<FastPath::Claim> FastPath::claim(uint32_t connection, uint32_t begin) {
  std::unique_lock lock(mutex_);
  if (connection >= connections_.size()) return {};
  // The thread writes to sockets that never make it wait.
  changed_.wait(lock, [&] { return connections_[connection].stage != Stage::sending; });
  Connection& known = connections_[connection];
  if (known.stage == Stage::checking) counts_.late++;
  const bool is_sent = known.stage == Stage::sent;
  known.stage = Stage::idle;
  known.generation++;
  if (!is_sent) return {};
  remove_unclaimed_locked(known.taken_key);
  return Claim{std::move(known.taken), known.received == begin};
}

bool FastPath::take_difference(uint32_t connection) {
  const std::scoped_lock lock(mutex_);
  if (connection >= connections_.size()) return false;
  return std::exchange(connections_[connection].is_different, false);
}

bool FastPath::is_taken(uint32_t connection, uint32_t begin) {
  const std::scoped_lock lock(mutex_);
  if (connection >= connections_.size()) return false;
  const Connection& known = connections_[connection];
  const bool is_sent = known.stage == Stage::sending || known.stage == Stage::sent;
  return is_sent && known.received == begin;
}

void FastPath::unwatch(uint32_t connection) {
  const std::scoped_lock lock(mutex_);
  if (connection >= connections_.size() || !connections_[connection].is_open) return;
  Connection& known = connections_[connection];
  known.is_open = false;
  known.pattern = nullptr;
  counts_.connections--;
  sockets_.unwatch(epoll_, known.fd);
  if (!known.is_in_use) close_connection_locked(connection);
}

void FastPath::close_connection_locked(uint32_t number) {
  Connection& connection = connections_[number];
  sockets_.close(connection.fd);
  connection.fd = -1;
  free_connections_.push_back(number);
}

// ---- connections to partners ----------------------------------------------------------------

bool FastPath::set_route(uint32_t route, FastRoute settings) {
  if (route >= kFastPathRoutesMax) return false;
  const std::scoped_lock lock(mutex_);
  routes_[route].settings = std::make_shared<const FastRoute>(std::move(settings));
  return true;
}

std::optional<uint32_t> FastPath::lend(uint32_t route, int fd, uint64_t until_ns) {
  const std::scoped_lock lock(mutex_);
  const int own = duplicate_locked(fd);
  if (own < 0) return {};
  uint32_t number = 0;
  if (route >= kFastPathRoutesMax || (free_loans_.empty() && loans_.size() >= kFastPathLoansMax)) {
    sockets_.close(own);
    return {};
  }
  if (free_loans_.empty()) {
    number = static_cast<uint32_t>(loans_.size());
    loans_.emplace_back();
  } else {
    number = free_loans_.back();
    free_loans_.pop_back();
  }
  loans_[number] = {};
  loans_[number].fd = own;
  loans_[number].route = route;
  loans_[number].until_ns = until_ns;
  routes_[route].loans.push_back(number);
  counts_.loans++;
  return number;
}

void FastPath::lend_again(uint32_t loan, uint64_t until_ns) {
  const std::scoped_lock lock(mutex_);
  if (loan >= loans_.size()) return;
  Loan& known = loans_[loan];
  if (known.fd < 0 || known.state == LoanState::free || known.state == LoanState::writing) return;
  known.state = LoanState::free;
  known.until_ns = until_ns;
  routes_[known.route].loans.push_back(loan);
}

bool FastPath::reclaim(uint32_t loan) {
  std::unique_lock lock(mutex_);
  if (loan >= loans_.size()) return true;
  changed_.wait(lock, [&] { return loans_[loan].state != LoanState::writing; });
  Loan& known = loans_[loan];
  if (known.state == LoanState::written) return false;
  take_back_locked(loan);
  return true;
}

void FastPath::take_back_locked(uint32_t number) {
  Loan& loan = loans_[number];
  if (loan.state == LoanState::free) std::erase(routes_[loan.route].loans, number);
  loan.state = LoanState::kept;
}

void FastPath::release(uint32_t loan) {
  std::unique_lock lock(mutex_);
  if (loan >= loans_.size() || loans_[loan].fd < 0) return;
  changed_.wait(lock, [&] { return loans_[loan].state != LoanState::writing; });
  take_back_locked(loan);
  sockets_.close(loans_[loan].fd);
  loans_[loan].fd = -1;
  free_loans_.push_back(loan);
  counts_.loans--;
}

FastPathCounts FastPath::counts() {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

}  // namespace shredway
