// Messages of streams pass from one thread to another in order, complete, or not at all.
#include <thread>

#include "stream_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

// A message whose content and filters follow from its number.
bool push_numbered(StreamRing& ring, uint64_t number, std::mt19937_64& random, size_t content_max) {
  StreamMessageHead head{};
  head.slot = number;
  std::vector<uint16_t> filters(random() % 5);
  for (uint16_t& id : filters) id = static_cast<uint16_t>(number);
  const Bytes content(random() % content_max, static_cast<uint8_t>(number));
  return ring.push(head, filters, content);
}

bool is_numbered(const StreamMessage& message) {
  const uint64_t number = message.head.slot;
  return std::all_of(message.filters.begin(), message.filters.end(),
                     [&](uint16_t id) { return id == static_cast<uint16_t>(number); }) &&
         std::all_of(message.content.begin(), message.content.end(),
                     [&](uint8_t byte) { return byte == static_cast<uint8_t>(number); });
}

}  // namespace

TEST(stream_ring_refuses_what_does_not_fit_and_continues) {
  StreamRing ring;
  std::mt19937_64 random(1);
  Bytes out(StreamRing::kBytes);
  uint64_t next = 0;
  for (int round = 0; round < 6; round++) {
    const uint64_t first = next;
    while (push_numbered(ring, next, random, 200'000)) next++;
    CHECK(next > first + 10);
    uint64_t expected = first;
    while (const size_t bytes = ring.drain(out.data(), 5'000'000))
      for (const StreamMessage& message :
           messages_of({out.begin(), out.begin() + static_cast<long>(bytes)})) {
        CHECK_EQ(message.head.slot, expected++);
        CHECK(is_numbered(message));
      }
    CHECK_EQ(expected, next);
    CHECK_EQ(ring.next_bytes(), 0u);
  }
  CHECK(!ring.push({}, {}, Bytes(StreamRing::kMessageBytesMax)));
}

TEST(stream_ring_drains_whole_messages_only) {
  StreamRing ring;
  CHECK(ring.push({}, {}, Bytes(100, 1)));
  CHECK(ring.push({}, {}, Bytes(100, 2)));
  const size_t bytes = ring.next_bytes();
  CHECK_EQ(bytes, 168u);
  Bytes out(2 * bytes - 1);
  CHECK_EQ(ring.drain(out.data(), bytes - 1), 0u);
  CHECK_EQ(ring.drain(out.data(), out.size()), bytes);
  CHECK_EQ(ring.drain(out.data(), bytes), bytes);
  CHECK_EQ(ring.drain(out.data(), bytes), 0u);
}

TEST(stream_ring_stops_draining_after_enough_bytes) {
  StreamRing ring;
  for (uint8_t i = 0; i < 3; i++) CHECK(ring.push({}, {}, Bytes(100, i)));
  const size_t bytes = ring.next_bytes();
  Bytes out(10 * bytes);
  CHECK_EQ(ring.drain(out.data(), out.size(), 1), bytes);
  CHECK_EQ(ring.drain(out.data(), out.size(), bytes + 1), 2 * bytes);
  CHECK_EQ(ring.drain(out.data(), out.size(), 0), 0u);
}

TEST(stream_ring_hands_over_between_two_threads) {
  StreamRing ring;
  constexpr uint64_t kMessages = 20'000;
  std::thread writer([&] {
    std::mt19937_64 random(2);
    for (uint64_t i = 0; i < kMessages; i++)
      while (!push_numbered(ring, i, random, 5000)) std::this_thread::yield();
  });
  Bytes out(1u << 20);
  uint64_t expected = 0;
  while (expected < kMessages) {
    const size_t bytes = ring.drain(out.data(), out.size());
    if (bytes == 0) std::this_thread::yield();
    for (const StreamMessage& message :
         messages_of({out.begin(), out.begin() + static_cast<long>(bytes)})) {
      CHECK_EQ(message.head.slot, expected++);
      CHECK(is_numbered(message));
    }
  }
  writer.join();
}
