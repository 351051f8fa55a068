// The thread of the fast path: looks at requests, checks their transactions and writes them to
// partners.
//
// fast_path.cc has the functions for JavaScript.
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "submission/fast_path.h"
#include "system/base58.h"
#include "system/base64.h"

namespace shredway {
namespace {

constexpr int kEventsMax = 64;
// As in src/core/transactions/transaction-text.ts.
constexpr size_t kBase58CharactersMax = 1683;
// Other ids than those of JavaScript, which count from 1.
constexpr uint32_t kFirstId = 1'000'000'000;
constexpr uint32_t kIdsMax = 1'000'000'000;

uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

// Appends to a buffer of fixed size; what does not fit sets `is_full`.
class Appender {
 public:
  explicit Appender(std::vector<char>& buffer) : buffer_(buffer) {}

  void add(std::string_view text) {
    if (char* place = take(text.size())) std::copy(text.begin(), text.end(), place);
  }
  void add_number(size_t number) {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    add({digits.data(), static_cast<size_t>(end - digits.data())});
  }
  // Space for `length` characters, or nullptr.
  char* take(size_t length) {
    is_full_ |= length > buffer_.size() - used_;
    if (is_full_) return nullptr;
    used_ += length;
    return buffer_.data() + used_ - length;
  }
  bool is_full() const { return is_full_; }
  size_t size() const { return used_; }

 private:
  std::vector<char>& buffer_;
  size_t used_ = 0;
  bool is_full_ = false;
};

size_t digits_of(size_t number) {
  size_t digits = 1;
  for (; number >= 10; number /= 10) digits++;
  return digits;
}

}  // namespace

void FastPath::run() {
  std::array<epoll_event, kEventsMax> events;
  while (true) {
    const int count = epoll_wait(epoll_, events.data(), kEventsMax, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; i++) {
      const uint64_t event = events[static_cast<size_t>(i)].data.u64;
      if (event == kFastPathWakeEvent) return;
      handle(static_cast<uint32_t>(event));
    }
  }
}

void FastPath::handle(uint32_t connection) {
  Look look;
  look.connection = connection;
  if (!begin(look)) return;
  Finding finding = check(look);
  if (finding == Finding::valid && !reserve(look)) finding = Finding::rejected;
  if (finding == Finding::valid) {
    for (Writing& writing : writings_) write_one(look, writing);
    finish(look);
  }
  end(look, finding);
}

bool FastPath::begin(Look& look) {
  const std::scoped_lock lock(mutex_);
  if (is_stopped_ || !inspector_ || look.connection >= connections_.size()) return false;
  Connection& connection = connections_[look.connection];
  look.begun_ns = now_ns();
  const bool may_be_sent = connection.is_open && connection.stage == Stage::armed &&
                           connection.pattern && look.begun_ns < connection.until_ns &&
                           counts_.unclaimed < kFastPathUnclaimedMax &&
                           has_free_loan_locked(look.begun_ns);
  if (!may_be_sent) return false;
  connection.stage = Stage::checking;
  connection.is_in_use = true;
  look.fd = connection.fd;
  look.generation = connection.generation;
  look.received = connection.received;
  look.key = connection.key;
  look.pattern = connection.pattern;
  look.inspector = inspector_;
  look.minimum_tip = minimum_tip_;
  return true;
}

bool FastPath::has_free_loan_locked(uint64_t at_ns) const {
  for (const Route& route : routes_)
    for (const uint32_t loan : route.loans)
      if (loans_[loan].until_ns > at_ns) return true;
  return false;
}

FastPath::Finding FastPath::check(Look& look) {
  const ssize_t length = recv(look.fd, bytes_.data(), bytes_.size(), MSG_PEEK | MSG_DONTWAIT);
  if (length <= 0 || !is_at_front(look)) return Finding::nothing;
  const std::string_view bytes(bytes_.data(), static_cast<size_t>(length));
  std::string_view text;
  switch (look.pattern->match(bytes, text)) {
    case RequestPattern::Match::different:
      return Finding::different;
    case RequestPattern::Match::incomplete:
      return Finding::nothing;
    case RequestPattern::Match::repeated:
      break;
  }
  if (!decode(text, look.pattern->encoding(), look.wire_bytes)) return Finding::rejected;
  Transaction transaction;
  TransactionFacts facts;
  TransactionFault fault;
  if (!look.inspector->inspect(wire_.data(), look.wire_bytes, transaction, facts, fault))
    return Finding::rejected;
  look.tip = facts.tip_lamports;
  // JavaScript has more rules for those with a key that must be at the front.
  if (facts.tip_lamports < look.minimum_tip || facts.has_dont_front_key) return Finding::rejected;
  std::array<char, kBase58TextMax> signature;
  look.signature_length = base58_encode(wire_.data() + transaction.signatures_begin,
                                        kTransactionSignatureBytes, signature.data());
  std::copy_n(signature.begin(), look.signature_length, look.signature.begin());
  return verify_signatures(wire_.data(), look.wire_bytes, verifying_keys_) ? Finding::valid
                                                                           : Finding::rejected;
}

// JavaScript has read no byte of what was seen. The number of waiting bytes is read before the
// number of received ones: bytes that arrive in between make the difference larger, never smaller.
bool FastPath::is_at_front(const Look& look) {
  int waiting = 0;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (ioctl(look.fd, SIOCINQ, &waiting) != 0 ||
      getsockopt(look.fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
    return false;
  return static_cast<uint32_t>(info.tcpi_bytes_received) - static_cast<uint32_t>(waiting) ==
         look.received;
}

bool FastPath::decode(std::string_view text, TransactionTextEncoding encoding, size_t& length) {
  if (encoding == TransactionTextEncoding::base64)
    return base64_decode(text, wire_.data(), wire_.size(), length);
  return text.size() <= kBase58CharactersMax &&
         base58_decode(text.data(), text.size(), wire_.data(), length);
}

bool FastPath::reserve(const Look& look) {
  const std::scoped_lock lock(mutex_);
  Connection& connection = connections_[look.connection];
  writings_.clear();
  const std::string_view signature(look.signature.data(), look.signature_length);
  const bool is_current = connection.stage == Stage::checking &&
                          connection.generation == look.generation && !is_stopped_;
  if (!is_current || look.tip < minimum_tip_ || inspector_ != look.inspector) return false;
  if (look.key >= keys_.size() || keys_[look.key].left == 0) return false;
  if (recent_.contains(signature)) return false;
  for (uint32_t number = 0; number < kFastPathRoutesMax; number++) {
    Route& route = routes_[number];
    const auto& settings = route.settings;
    if (!settings || look.tip < settings->minimum_tip || look.wire_bytes > settings->bytes_max)
      continue;
    const auto loan = pop_loan_locked(route, look.begun_ns);
    if (!loan) continue;
    loans_[*loan].state = LoanState::writing;
    const uint32_t id = kFirstId + route.next_id++ % kIdsMax;
    writings_.push_back({number, *loan, id, loans_[*loan].fd, settings, 0});
  }
  if (writings_.empty()) return false;
  recent_.add(signature);
  keys_[look.key].left--;
  keys_[look.key].unclaimed++;
  connection.taken_key = look.key;
  counts_.unclaimed++;
  connection.stage = Stage::sending;
  return true;
}

std::optional<uint32_t> FastPath::pop_loan_locked(Route& route, uint64_t at_ns) {
  for (size_t i = route.loans.size(); i-- > 0;) {
    const uint32_t loan = route.loans[i];
    if (loans_[loan].until_ns <= at_ns) continue;
    route.loans.erase(route.loans.begin() + static_cast<std::ptrdiff_t>(i));
    return loan;
  }
  return {};
}

// `sent_ns` stays 0 if the kernel did not take the whole request: an idle connection always has
// space, so this one is broken, and its end is reported to JavaScript.
void FastPath::write_one(const Look& look, Writing& writing) {
  const FastRoute& route = *writing.settings;
  const size_t text_length = base64_text_length(look.wire_bytes);
  const size_t body_length = route.before_id.size() + digits_of(writing.id) +
                             route.before_text.size() + text_length + route.after_text.size();
  Appender request(request_);
  request.add(route.head);
  request.add_number(body_length);
  request.add("\r\n\r\n");
  request.add(route.before_id);
  request.add_number(writing.id);
  request.add(route.before_text);
  if (char* text = request.take(text_length)) base64_encode(wire_.data(), look.wire_bytes, text);
  request.add(route.after_text);
  if (!request.is_full()) {
    const ssize_t sent =
        send(writing.fd, request_.data(), request.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(request.size())) writing.sent_ns = now_ns();
  }
  if (writing.sent_ns == 0) shutdown(writing.fd, SHUT_RDWR);
}

void FastPath::finish(const Look& look) {
  const std::scoped_lock lock(mutex_);
  Connection& connection = connections_[look.connection];
  TakenRequest& taken = connection.taken;
  taken = {};
  taken.taken_ns = look.begun_ns;
  taken.signature = look.signature;
  taken.signature_length = static_cast<uint32_t>(look.signature_length);
  for (const Writing& writing : writings_) {
    Loan& loan = loans_[writing.loan];
    const bool is_sent = writing.sent_ns > 0;
    loan.state = is_sent ? LoanState::written : LoanState::kept;
    if (!is_sent) continue;
    taken.sends[taken.send_count++] = {writing.route, writing.loan, writing.id,
                                       static_cast<uint32_t>(look.wire_bytes), writing.sent_ns};
  }
  const bool is_taken = taken.send_count > 0;
  connection.stage = is_taken ? Stage::sent : Stage::idle;
  if (is_taken) {
    counts_.taken++;
  } else {
    counts_.unclaimed--;
    keys_[look.key].unclaimed--;
  }
  changed_.notify_all();
}

void FastPath::end(const Look& look, Finding finding) {
  const std::scoped_lock lock(mutex_);
  Connection& connection = connections_[look.connection];
  connection.is_in_use = false;
  if (!connection.is_open) close_connection_locked(look.connection);
  // Not claimed meanwhile, and not sent.
  const bool is_left =
      connection.stage == Stage::checking && connection.generation == look.generation;
  if (!is_left) return;
  // More bytes of the request may follow, unless they show already that it is another one.
  connection.stage = finding == Finding::nothing ? Stage::armed : Stage::idle;
  connection.is_different |= finding == Finding::different;
  if (finding == Finding::different) counts_.different++;
  if (finding == Finding::rejected) counts_.rejected++;
}

}  // namespace shredway
