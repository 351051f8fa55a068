#include "clone/next_hop_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "clone/device_features.h"
#include "clone/netlink_socket.h"
#include "clone/next_hop_view.h"
#include "net/thread.h"
#include "net/udp_socket.h"
#include "system/privileges.h"

namespace shredway {
namespace {

constexpr unsigned kWatchedGroups[] = {RTNLGRP_LINK,        RTNLGRP_NEIGH,      RTNLGRP_IPV4_IFADDR,
                                       RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
                                       RTNLGRP_IPV4_RULE,   RTNLGRP_IPV6_RULE,  RTNLGRP_NEXTHOP};

constexpr uint64_t kMillisecond_ns = 1'000'000;
// Collects messages that belong together: a link that goes down removes its routes.
constexpr uint64_t kCollect_ns = 2 * kMillisecond_ns;
// A routing daemon may change routes for minutes; following it may use at most a fifth of a core.
constexpr uint64_t kPausePerWork = 4;
// Workers copy every new table: for 4,096 destinations in about 45 µs, so at most 0.3 % of a core.
constexpr uint64_t kTableInterval_ns = 20 * kMillisecond_ns;
// The kernel reports a neighbour that turns stale, but not that a datagram made it verify the
// neighbour. The watch therefore asks: soon, then less and less often.
constexpr uint64_t kAskFirst_ns = 100 * kMillisecond_ns;
constexpr uint64_t kAgainAfterLoss_ns = 50 * kMillisecond_ns;
constexpr uint64_t kNever_ns = ~uint64_t{0};

constexpr size_t kRequestsPerBatch = 32;  // the answers fit the smallest receive buffer
constexpr int kTriesMax = 3;
constexpr int kDatagramsPerTable = 256;  // datagrams read before a table is built
constexpr uint32_t kAnswerBufferBytes = 1u << 20;

// True for an error that does not concern the route.
bool is_temporary(int error) { return error == ENOBUFS || error == ENOMEM || error == EAGAIN; }

// Only where the answer matters: a machine may have hundreds of interfaces.
void read_features(std::vector<LinkMessage>& links) {
  const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (LinkMessage& link : links)
    if (link.is_virtual) link.segments = device_segments_udp(socket.fd(), link.name);
}

}  // namespace

class NextHopWatch::Impl {
 public:
  explicit Impl(NextHopWatchOptions options)
      : options_(std::move(options)), view_(rules_of(options_)) {}
  ~Impl() {
    stop();
    if (notifier_ >= 0) close(notifier_);
  }

  std::string open() {
    std::string error;
    notifier_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (notifier_ < 0) return std::string("eventfd: ") + std::strerror(errno);
    // Subscribe first, then ask, so that no change is missed in between.
    events_ =
        NetlinkSocket::open(NETLINK_ROUTE, kWatchedGroups, options_.receive_buffer_bytes, error);
    if (events_) requests_ = NetlinkSocket::open(NETLINK_ROUTE, {}, kAnswerBufferBytes, error);
    if (!requests_) return error;
    return thread_.start<&Impl::run>(this, "shredway-hops");
  }
  void set_addresses(std::vector<AddressBytes> addresses) {
    {
      const std::lock_guard lock(mutex_);
      wanted_next_ = std::move(addresses);
    }
    notify();
  }
  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    notify();
    const std::lock_guard lock(stop_mutex_);
    thread_.join();
  }

 private:
  static NextHopRules rules_of(const NextHopWatchOptions& options) {
    NextHopRules rules;
    rules.packet_bytes_max = options.packet_bytes_max;
    rules.avoids_lossy_queues = options.output_rules != nullptr;
    const AddressBytes& source = options.source.address;
    const auto rest = source.begin() + (is_ipv4(source) ? kIpv4At : 0);
    if (std::any_of(rest, source.end(), [](uint8_t byte) { return byte != 0; }))
      rules.source = source;
    return rules;
  }

  void notify() {
    const uint64_t one = 1;
    (void)!write(notifier_, &one, sizeof one);
  }
  uint64_t refresh_interval_ns() const { return options_.refresh_interval_ms * kMillisecond_ns; }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

  // ---- the thread ----

  void run();
  void wait();
  void apply_wanted();
  void take_messages();
  void take_output_rules();
  void apply_change(const NetlinkMessage& message);
  void ask_for_stale_neighbours();
  void refresh_due(uint64_t at_ns) { refresh_at_ns_ = std::min(refresh_at_ns_, at_ns); }
  void resolve(bool everything);
  bool request_routes(bool everything);
  void request_some_routes(std::span<const size_t> some, std::vector<size_t>& unanswered);
  template <typename Message>
  bool request_all(uint16_t type, std::optional<Message> (*read)(const NetlinkMessage&),
                   std::vector<Message>& out);
  template <typename Take>
  bool dump(uint16_t type, Take take);
  void publish();

  const NextHopWatchOptions options_;
  NextHopView view_;
  std::unique_ptr<NetlinkSocket> events_;
  std::unique_ptr<NetlinkSocket> requests_;
  int notifier_ = -1;
  uint32_t sequence_ = 0;
  uint64_t refresh_at_ns_ = kNever_ns;
  uint64_t turn_at_ns_ = 0;
  uint64_t ask_at_ns_ = kNever_ns;  // for the states of stale neighbours
  uint64_t ask_interval_ns_ = 0;
  uint64_t pause_until_ns_ = 0;  // pause after resolving everything
  uint64_t publish_at_ns_ = 0;   // earliest time of the next table
  bool wanted_ = false;          // addresses were set, possibly none
  bool new_addresses_ = false;   // addresses without a known route
  bool changed_ = false;         // since the last table
  std::shared_ptr<const NextHops> published_;

  std::mutex mutex_;
  std::optional<std::vector<AddressBytes>> wanted_next_;  // guarded by the mutex

  std::mutex stop_mutex_;
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

void NextHopWatch::Impl::run() {
  drop_privileges_of_this_thread();
  while (!stopping()) {
    apply_wanted();
    const bool everything = clock_ns(CLOCK_MONOTONIC) >= refresh_at_ns_;
    if (everything || new_addresses_) resolve(everything);
    else if (clock_ns(CLOCK_MONOTONIC) >= ask_at_ns_) ask_for_stale_neighbours();
    // Messages that arrived meanwhile go into the same table.
    take_messages();
    take_output_rules();
    if (changed_ && !stopping() && clock_ns(CLOCK_MONOTONIC) >= publish_at_ns_) publish();
    wait();
  }
}

// Sleeps until a message arrives or something is due.
void NextHopWatch::Impl::wait() {
  const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  uint64_t until_ns = std::min(refresh_at_ns_, ask_at_ns_);
  if (changed_) until_ns = std::min(until_ns, publish_at_ns_);
  pollfd entries[] = {{notifier_, POLLIN, 0},
                      {events_->fd(), POLLIN, 0},
                      {-1, POLLIN, 0},  // poll ignores negative descriptors
                      {-1, POLLIN, 0}};
  if (options_.output_rules)
    for (size_t i = 0; i < 2; i++) entries[2 + i].fd = options_.output_rules->fds()[i];
  const uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  const timespec time = {static_cast<time_t>(left_ns / 1'000'000'000),
                         static_cast<long>(left_ns % 1'000'000'000)};
  ppoll(entries, std::size(entries), until_ns == kNever_ns ? nullptr : &time, nullptr);
  uint64_t notified;
  if (entries[0].revents) (void)!::read(notifier_, &notified, sizeof notified);
}

void NextHopWatch::Impl::apply_wanted() {
  std::optional<std::vector<AddressBytes>> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted.swap(wanted_next_);
  }
  if (!wanted) return;
  view_.set_wanted(std::move(*wanted));
  if (!wanted_) refresh_at_ns_ = 0;  // links are not known either
  wanted_ = true;
  new_addresses_ = true;
  changed_ = true;
  publish_at_ns_ = 0;
}

void NextHopWatch::Impl::take_messages() {
  std::span<const uint8_t> datagram;
  for (int i = 0; i < kDatagramsPerTable; i++) {
    switch (events_->read(datagram)) {
      case NetlinkSocket::Read::nothing:
        return;
      case NetlinkSocket::Read::lost:
        if (wanted_) refresh_due(std::max(clock_ns(CLOCK_MONOTONIC), pause_until_ns_));
        break;
      case NetlinkSocket::Read::datagram:
        NetlinkMessage message;
        while (next_message(datagram, message)) apply_change(message);
        break;
    }
  }
}

void NextHopWatch::Impl::take_output_rules() {
  if (!options_.output_rules) return;
  options_.output_rules->update();
  changed_ |= view_.set_output_rules(!options_.output_rules->found().empty());
}

void NextHopWatch::Impl::apply_change(const NetlinkMessage& message) {
  if (message.type == RTM_NEWNEIGH || message.type == RTM_DELNEIGH) {
    const auto neighbour = read_neighbour(message);
    if (neighbour && view_.set_neighbour(*neighbour)) changed_ = true;
    return;
  }
  if (wanted_) refresh_due(std::max(clock_ns(CLOCK_MONOTONIC) + kCollect_ns, pause_until_ns_));
}

void NextHopWatch::Impl::publish() {
  changed_ = false;
  auto table = std::make_shared<const NextHops>(view_.entries());
  const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  publish_at_ns_ = now_ns + kTableInterval_ns;
  if (published_ && published_->entries() == table->entries()) return;
  const bool checks = std::any_of(
      table->entries().begin(), table->entries().end(),
      [](const NextHops::Entry& entry) { return entry.state == NextHopState::neighbour_checked; });
  ask_interval_ns_ = kAskFirst_ns;
  ask_at_ns_ = checks ? now_ns + ask_interval_ns_ : kNever_ns;
  published_ = std::move(table);
  if (options_.publish) options_.publish(published_);
}

// ---- requests -------------------------------------------------------------------------------

void NextHopWatch::Impl::resolve(bool everything) {
  const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
  new_addresses_ = false;
  bool whole = true;
  if (everything) {
    refresh_at_ns_ = kNever_ns;
    std::vector<LinkMessage> links;
    whole = request_all(RTM_GETLINK, &read_link, links);
    if (options_.output_rules) read_features(links);
    view_.set_links(links);
  }
  whole &= request_routes(everything);
  view_.follow_routes();
  std::vector<NeighbourMessage> neighbours;
  whole &= request_all(RTM_GETNEIGH, &read_neighbour, neighbours);
  view_.set_neighbours(neighbours);
  changed_ = true;

  const uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
  if (everything) pause_until_ns_ = end_ns + (end_ns - begin_ns) * kPausePerWork;
  refresh_due(end_ns + (whole ? refresh_interval_ns() : kAgainAfterLoss_ns));
  if (end_ns < turn_at_ns_) return;
  turn_at_ns_ = end_ns + refresh_interval_ns();
  view_.turn_stale();
}

void NextHopWatch::Impl::ask_for_stale_neighbours() {
  std::vector<NeighbourMessage> neighbours;
  if (request_all(RTM_GETNEIGH, &read_neighbour, neighbours)) {
    view_.set_neighbours(neighbours);
    changed_ = true;
  }
  ask_interval_ns_ = std::min(2 * ask_interval_ns_, refresh_interval_ns());
  ask_at_ns_ = clock_ns(CLOCK_MONOTONIC) + ask_interval_ns_;
}

// Returns false if answers were lost repeatedly.
bool NextHopWatch::Impl::request_routes(bool everything) {
  std::vector<size_t> open;
  for (size_t i = 0; i < view_.wanted(); i++)
    if (everything || !view_.route_known(i)) open.push_back(i);
  for (int tries = 0; tries < kTriesMax && !open.empty(); tries++) {
    std::vector<size_t> unanswered;
    for (size_t i = 0; i < open.size() && !stopping(); i += kRequestsPerBatch)
      request_some_routes(std::span(open).subspan(i, std::min(kRequestsPerBatch, open.size() - i)),
                          unanswered);
    open = std::move(unanswered);
  }
  for (const size_t i : open) view_.set_route(i, std::nullopt);
  return open.empty();
}

void NextHopWatch::Impl::request_some_routes(std::span<const size_t> some,
                                             std::vector<size_t>& unanswered) {
  const uint32_t first = sequence_ + 1;
  sequence_ += static_cast<uint32_t>(some.size());
  std::vector<uint8_t> requests;
  for (size_t i = 0; i < some.size(); i++) {
    const AddressBytes& address = view_.wanted_address(some[i]);
    append_route_request(requests, first + static_cast<uint32_t>(i), address,
                         view_.source_for(address));
  }
  requests_->send(requests);

  std::array<bool, kRequestsPerBatch> answered{};
  std::span<const uint8_t> datagram;
  for (auto got = requests_->read(datagram); got != NetlinkSocket::Read::nothing;
       got = requests_->read(datagram)) {
    NetlinkMessage message;
    while (got == NetlinkSocket::Read::datagram && next_message(datagram, message)) {
      const uint32_t i = message.sequence - first;
      if (i >= some.size()) continue;
      if (message.type == NLMSG_ERROR && is_temporary(error_of(message))) continue;
      view_.set_route(some[i], read_route(message));  // an error means that there is no route
      answered[i] = true;
    }
  }
  for (size_t i = 0; i < some.size(); i++)
    if (!answered[i]) unanswered.push_back(some[i]);
}

// Reads all entries of one kind. Returns false, with an incomplete `out`, if answers were lost or
// changed during the dump repeatedly.
template <typename Message>
bool NextHopWatch::Impl::request_all(uint16_t type,
                                     std::optional<Message> (*read)(const NetlinkMessage&),
                                     std::vector<Message>& out) {
  for (int tries = 0; tries < kTriesMax; tries++) {
    out.clear();
    const bool whole = dump(type, [&](const NetlinkMessage& message) {
      if (const auto one = read(message)) out.push_back(*one);
    });
    if (whole) return true;
  }
  return false;
}

template <typename Take>
bool NextHopWatch::Impl::dump(uint16_t type, Take take) {
  const uint32_t sequence = ++sequence_;
  std::vector<uint8_t> request;
  append_dump_request(request, sequence, type);
  requests_->send(request);
  bool whole = true;
  std::span<const uint8_t> datagram;
  for (;;) {
    const auto got = requests_->read(datagram);
    if (got == NetlinkSocket::Read::nothing) return false;
    if (got == NetlinkSocket::Read::lost) {
      whole = false;
      continue;
    }
    NetlinkMessage message;
    while (next_message(datagram, message)) {
      if (message.sequence != sequence) continue;
      if (message.flags & NLM_F_DUMP_INTR) whole = false;
      if (message.type == NLMSG_ERROR) return false;
      if (message.type == NLMSG_DONE) return whole && error_of(message) == 0;
      take(message);
    }
  }
}

// ---- public interface -----------------------------------------------------------------------

NextHopWatch::NextHopWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NextHopWatch::~NextHopWatch() = default;

std::unique_ptr<NextHopWatch> NextHopWatch::start(NextHopWatchOptions options, std::string& error) {
  auto impl = std::make_unique<Impl>(std::move(options));
  error = impl->open();
  if (!error.empty()) return nullptr;
  return std::unique_ptr<NextHopWatch>(new NextHopWatch(std::move(impl)));
}
void NextHopWatch::set_addresses(std::vector<AddressBytes> addresses) {
  impl_->set_addresses(std::move(addresses));
}
void NextHopWatch::stop() { impl_->stop(); }

}  // namespace shredway
