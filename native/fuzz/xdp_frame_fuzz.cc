// Fuzz target: any bytes as a frame of AF_XDP. A datagram that is read lies inside the frame, has a
// possible sender, and does not depend on the padding.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "xdp/xdp_datagram.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr size_t kPaddingBytes = 7;

// A copy of exactly this size, so that a read beyond it is detected.
std::unique_ptr<uint8_t[]> copy_of(const uint8_t* bytes, size_t length, size_t padding = 0) {
  std::unique_ptr<uint8_t[]> copy(new uint8_t[length + padding]);
  if (length) std::memcpy(copy.get(), bytes, length);
  std::memset(copy.get() + length, 0xee, padding);
  return copy;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  const auto frame = copy_of(bytes, length);
  XdpDatagram datagram;
  const FrameFault fault = read_xdp_frame(frame.get(), length, datagram);
  require(frame_fault_name(fault)[0] != 0);

  const auto padded = copy_of(bytes, length, kPaddingBytes);
  XdpDatagram again;
  const FrameFault padded_fault = read_xdp_frame(padded.get(), length + kPaddingBytes, again);
  if (fault != FrameFault::none) {
    // More bytes can only complete a frame that was too short.
    require(fault == FrameFault::length || padded_fault == fault);
    return 0;
  }
  require(padded_fault == FrameFault::none);
  const size_t at = static_cast<size_t>(datagram.payload - frame.get());
  require(datagram.payload >= frame.get() && at + datagram.length <= length && at >= 14 + 20 + 8);
  require(again.length == datagram.length && again.payload == padded.get() + at);
  require(again.from == datagram.from && again.to == datagram.to);
  require(datagram.from.is_ipv4() ? frame[14] == 0x45 : frame[14] >> 4 == 6);
  const auto& from = datagram.from.address;
  require(from[0] != 0xff && from != AddressBytes{});
  if (datagram.from.is_ipv4()) require(from[12] != 127 && from[12] != 0);
  return 0;
}
