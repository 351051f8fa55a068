// Offers: which transactions of the QUIC process may be sent, and which were sent and not claimed.
//
// The service claims the sequence number of every offer, in any order: before the fast path has
// read the offer, while it checks it, or afterwards. Its owner's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "submission/taken_request.h"

namespace shredway {

// A connection whose transactions may be sent.
struct OfferSource {
  uint32_t key = 0;
  uint64_t until_ns = 0;  // CLOCK_MONOTONIC
};

class Offers {
 public:
  // Claims before their offers, at most; afterwards, those offers are not read any more.
  static constexpr size_t kEarlyMax = 4096;

  struct Taken {
    uint64_t sequence;
    uint32_t key;
    TakenRequest request;
  };
  struct Claim {
    std::optional<Taken> taken;
    bool was_checked = false;  // a check was under way, and ends without a send
  };

  void watch(uint64_t connection, OfferSource source) { sources_[connection] = source; }
  // A check under way ends without a send.
  void forget(uint64_t connection);
  void forget_all();
  // nullptr: nothing from this connection may be sent.
  const OfferSource* find(uint64_t connection) const;

  // The fast path has read the next offer. False: it was claimed before, or its number is not
  // ascending.
  bool begin(uint64_t sequence, uint64_t connection);
  // Whether the offer that was read last is still to be sent.
  bool is_checking() const { return stage_ == Stage::checking; }
  void begin_to_send() { stage_ = Stage::sending; }
  bool is_sending() const { return stage_ == Stage::sending; }
  bool is_sending(uint64_t sequence) const { return is_sending() && sequence == current_; }
  void end() { stage_ = Stage::none; }
  void end_sent(uint32_t key, TakenRequest request);

  // Once for each number, and not while its offer is sent.
  Claim claim(uint64_t sequence);
  // Whether `claim` would return something.
  bool is_taken(uint64_t sequence) const;
  size_t unclaimed() const { return taken_.size(); }
  // The channel has ended, and nothing is sent. Returns what was not claimed, one for each call;
  // after the last one, the numbers begin again.
  std::optional<Taken> take_left();

 private:
  enum class Stage : uint8_t { none, checking, sending };

  void cancel();
  void claim_early(uint64_t sequence);
  Taken remove(size_t place);

  std::unordered_map<uint64_t, OfferSource> sources_;
  Stage stage_ = Stage::none;
  uint64_t current_ = 0;                // number of the offer that is checked or sent
  uint64_t connection_ = 0;             // of this offer
  uint64_t last_ = 0;                   // offers up to this number are not read any more
  std::unordered_set<uint64_t> early_;  // claimed before their offers were read
  std::vector<Taken> taken_;
};

}  // namespace shredway
