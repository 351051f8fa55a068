// The offers of the fast path: transactions of the QUIC process.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "submission/fast_path.h"
#include "system/offer_channel.h"

namespace shredway {

// ---- on JavaScript's thread -----------------------------------------------------------------

std::optional<int> FastPath::open_offers() {
  const std::scoped_lock lock(mutex_);
  if (epoll_ < 0 || offers_fd_ >= 0) return {};
  const auto channel = open_offer_channel();
  if (!channel) return {};
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kFastPathOfferEvent;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, channel->fast_path, &event) != 0) {
    close(channel->fast_path);
    close(channel->process);
    return {};
  }
  offers_fd_ = channel->fast_path;
  return channel->process;
}

void FastPath::watch_offers(uint64_t connection, uint32_t key, uint64_t until_ns) {
  const std::scoped_lock lock(mutex_);
  offers_.watch(connection, {key, until_ns});
}

void FastPath::forget_offers(uint64_t connection) {
  const std::scoped_lock lock(mutex_);
  offers_.forget(connection);
}

std::optional<FastPath::Claim> FastPath::claim_offer(uint64_t sequence,
                                                     std::span<const uint8_t> wire) {
  std::unique_lock lock(mutex_);
  // The thread writes to sockets that never make it wait.
  changed_.wait(lock, [&] { return !offers_.is_sending(sequence); });
  auto claim = offers_.claim(sequence);
  if (claim.was_checked) counts_.late++;
  if (!claim.taken) return {};
  remove_unclaimed_locked(claim.taken->key);
  TakenRequest& request = claim.taken->request;
  const bool is_same = std::ranges::equal(request.wire, wire);
  return Claim{std::move(request), is_same};
}

bool FastPath::is_offer_taken(uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  return offers_.is_taken(sequence);
}

std::optional<TakenRequest> FastPath::end_offers() {
  std::unique_lock lock(mutex_);
  // The thread reads the channel with the lock only.
  if (offers_fd_ >= 0) close(std::exchange(offers_fd_, -1));
  changed_.wait(lock, [&] { return !offers_.is_sending(); });
  const auto left = offers_.take_left();
  if (!left) return {};
  remove_unclaimed_locked(left->key);
  return left->request;
}

// ---- on the thread --------------------------------------------------------------------------

void FastPath::handle_offer() {
  OfferLook look;
  if (!begin_offer(look)) return;
  if (!reserve_offer(look, is_new_and_valid(look.candidate, workspace_))) return;
  write_all(look.candidate, workspace_);
  finish_offer(look);
}

bool FastPath::begin_offer(OfferLook& look) {
  const std::scoped_lock lock(mutex_);
  if (offers_fd_ < 0) return false;
  OfferHead head{};
  size_t length = 0;
  switch (read_offer(offers_fd_, head, wire_, length)) {
    case OfferRead::nothing:
      return false;
    case OfferRead::ended:
      // The process has ended; JavaScript ends the channel.
      (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, offers_fd_, nullptr);
      return false;
    case OfferRead::offer:
      break;
  }
  if (!offers_.begin(head.sequence, head.connection)) {
    counts_.late++;
    return false;
  }
  const OfferSource* source = offers_.find(head.connection);
  const bool may_be_sent = source && length > 0 && offers_.unclaimed() < kFastPathUnclaimedMax &&
                           begin_candidate_locked(look.candidate) &&
                           look.candidate.begun_ns < source->until_ns;
  if (!may_be_sent) {
    offers_.end();
    return false;
  }
  look.key = source->key;
  look.candidate.wire = {wire_.data(), length};
  return true;
}

bool FastPath::reserve_offer(const OfferLook& look, bool is_valid) {
  const std::scoped_lock lock(mutex_);
  if (!offers_.is_checking()) return false;  // claimed or forgotten meanwhile
  const bool may_be_sent = is_valid && look.key < keys_.size() && keys_[look.key].left > 0 &&
                           reserve_locked(look.candidate, workspace_);
  if (!may_be_sent) {
    counts_.rejected++;
    offers_.end();
    return false;
  }
  add_unclaimed_locked(look.key);
  offers_.begin_to_send();
  return true;
}

void FastPath::finish_offer(const OfferLook& look) {
  const std::scoped_lock lock(mutex_);
  TakenRequest taken = settle_locked(look.candidate, workspace_);
  if (taken.send_count > 0) {
    counts_.taken++;
    offers_.end_sent(look.key, std::move(taken));
  } else {
    remove_unclaimed_locked(look.key);
    offers_.end();
  }
  changed_.notify_all();
}

}  // namespace shredway
