// The thread of the fast path: looks at the requests of callers.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "submission/fast_path.h"
#include "submission/memory_streams.h"
#include "system/base58.h"
#include "system/base64.h"

namespace shredway {
namespace {

constexpr int kEventsMax = 64;
// As in src/core/transactions/transaction-text.ts.
constexpr size_t kBase58CharactersMax = 1683;

}  // namespace

void FastPath::run() {
  std::array<epoll_event, kEventsMax> events;
  while (true) {
    const int count = epoll_wait(epoll_, events.data(), kEventsMax, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; i++) {
      const uint64_t event = events[static_cast<size_t>(i)].data.u64;
      if (event == kFastPathWakeEvent) return;
      if (event == kFastPathOfferEvent) handle_offer();
      else handle(static_cast<uint32_t>(event));
    }
  }
}

void FastPath::handle(uint32_t connection) {
  Look look;
  look.connection = connection;
  if (begin(look)) conclude(look, check(look));
}

void FastPath::conclude(const Look& look, Finding finding) {
  if (finding == Finding::valid && !reserve(look)) finding = Finding::rejected;
  if (finding == Finding::valid) {
    write_all(look.candidate, workspace_);
    finish(look);
  }
  end(look, finding);
}

bool FastPath::look(MemoryStreams& streams) {
  while (!held_) {
    const auto connection = streams.take_ready();
    if (!connection) return false;
    Held held;
    held.look.connection = *connection;
    if (!begin(held.look)) continue;
    held.finding = check(held.look);
    held_ = std::move(held);
  }
  return true;
}

void FastPath::conclude() {
  if (held_) conclude(held_->look, held_->finding);
  held_.reset();
}

bool FastPath::begin(Look& look) {
  const std::scoped_lock lock(mutex_);
  if (look.connection >= connections_.size()) return false;
  Connection& connection = connections_[look.connection];
  const bool may_be_sent =
      connection.is_open && connection.stage == Stage::armed && connection.pattern &&
      counts_.unclaimed - offers_.unclaimed() < kFastPathUnclaimedMax &&
      begin_candidate_locked(look.candidate) && look.candidate.begun_ns < connection.until_ns;
  if (!may_be_sent) return false;
  connection.stage = Stage::checking;
  connection.is_in_use = true;
  look.fd = connection.fd;
  look.generation = connection.generation;
  look.received = connection.received;
  look.key = connection.key;
  look.pattern = connection.pattern;
  return true;
}

FastPath::Finding FastPath::check(Look& look) {
  const ssize_t length = sockets_.peek(look.fd, bytes_.data(), bytes_.size());
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
  const bool is_valid = decode(text, look.pattern->encoding(), look.candidate) &&
                        inspect(look.candidate) && has_valid_signatures(look.candidate, workspace_);
  return is_valid ? Finding::valid : Finding::rejected;
}

// JavaScript has read no byte of what was seen.
bool FastPath::is_at_front(const Look& look) {
  uint32_t read = 0;
  return sockets_.count_read(look.fd, read) && read == look.received;
}

bool FastPath::decode(std::string_view text, TransactionTextEncoding encoding,
                      Candidate& candidate) {
  size_t length = 0;
  const bool is_decoded = encoding == TransactionTextEncoding::base64
                              ? base64_decode(text, wire_.data(), wire_.size(), length)
                              : text.size() <= kBase58CharactersMax &&
                                    base58_decode(text.data(), text.size(), wire_.data(), length);
  candidate.wire = {wire_.data(), length};
  return is_decoded;
}

bool FastPath::reserve(const Look& look) {
  const std::scoped_lock lock(mutex_);
  Connection& connection = connections_[look.connection];
  const bool is_current =
      connection.stage == Stage::checking && connection.generation == look.generation;
  if (!is_current || look.key >= keys_.size() || keys_[look.key].left == 0) return false;
  if (!reserve_locked(look.candidate, workspace_)) return false;
  add_unclaimed_locked(look.key);
  connection.taken_key = look.key;
  connection.stage = Stage::sending;
  return true;
}

void FastPath::finish(const Look& look) {
  const std::scoped_lock lock(mutex_);
  Connection& connection = connections_[look.connection];
  connection.taken = settle_locked(look.candidate, workspace_);
  const bool is_taken = connection.taken.send_count > 0;
  connection.stage = is_taken ? Stage::sent : Stage::idle;
  if (is_taken) counts_.taken++;
  else remove_unclaimed_locked(look.key);
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
