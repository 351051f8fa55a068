// Offer channel: carries transactions from the process of the QUIC ingress to the fast path.
//
// Each message is one offer: the bytes of a stream that is complete. The process writes the same
// bytes to the service, which reads them later.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace shredway {

struct OfferHead {
  uint64_t sequence;    // ascending, from 1
  uint64_t connection;  // number in the process
};

struct OfferChannel {
  int fast_path;
  int process;
};

// Both descriptors never wait and are closed on exec. Nothing: the system refuses them; errno says
// why.
std::optional<OfferChannel> open_offer_channel();

// False: the channel is full or closed, or the system refuses the message.
bool write_offer(int fd, const OfferHead& head, std::span<const uint8_t> bytes);

enum class OfferRead : uint8_t { offer, nothing, ended };

// Reads the next offer. Its bytes are the first `length` of `into`, or it was too long, and
// `length` is 0.
OfferRead read_offer(int fd, OfferHead& head, std::span<uint8_t> into, size_t& length);

}  // namespace shredway
