// The relay over real sockets: trace packets of block engines get a verdict of their own.
#include <string>

#include "loopback_relay.h"

using namespace shredway;
using namespace shredway::test;

namespace {

// TraceShred { region = 1, created_at = 2 { seconds = 1, nanos = 2 }, seq_num = 3 }
Bytes trace(const std::string& region) {
  Bytes bytes = {0x0a, static_cast<uint8_t>(region.size())};
  bytes.insert(bytes.end(), region.begin(), region.end());
  const Bytes rest = {0x12, 0x08, 0x08, 0x80, 0xa0, 0xd9, 0xcd, 0x06, 0x10, 0x07, 0x18, 0x2a};
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

}  // namespace

TEST(trace_recognises_the_form_of_the_message) {
  const auto check = [](const Bytes& bytes) { return is_trace(bytes.data(), bytes.size()); };
  CHECK(check(trace("ny")));
  CHECK(check(trace(std::string(64, 'x'))));
  CHECK(!check(trace("")));
  CHECK(!check(trace("a b")));
  CHECK(!check(trace(std::string(65, 'x'))));
  Bytes cut = trace("frankfurt");
  cut.resize(11);
  CHECK(!check(cut));
  Bytes long_one = trace("ny");
  long_one.resize(kTraceBytesMax + 1);
  CHECK(!check(long_one));
  Bytes other_field = trace("ny");
  other_field[4] = 0x1a;
  CHECK(!check(other_field));
  CHECK(!check({}));
}

TEST(relay_counts_trace_packets_of_its_sources_and_keeps_copies) {
  LoopbackRelay relayed;
  const Bytes packet = trace("frankfurt");
  relayed.tier1_source.send(relayed.in(), packet);
  relayed.tier2_source.send(relayed.in(), trace("ny"));
  relayed.stranger.send(relayed.in(), packet);
  const auto counts = relayed.counts(3);
  CHECK_EQ(counts.verdict("trace"), 2u);
  CHECK_EQ(counts.verdict("too_short"), 1u);  // from a stranger
  std::array<Trace, 8> traces;
  CHECK_EQ(relayed.relay->drain_traces(traces.data(), traces.size()), 2u);
  CHECK_EQ(traces[0].source, 0u);
  CHECK_EQ(traces[0].length, packet.size());
  CHECK(std::equal(packet.begin(), packet.end(), traces[0].packet.begin()));
  CHECK(traces[0].received_ns != 0);
  CHECK_EQ(traces[1].source, 1u);
  CHECK_EQ(relayed.relay->drain_traces(traces.data(), traces.size()), 0u);
}

TEST(relay_bounds_the_copies_of_a_flood_of_trace_packets) {
  LoopbackRelay relayed;
  for (int i = 0; i < 200; i++) relayed.tier1_source.send(relayed.in(), trace("ny"));
  CHECK_EQ(relayed.counts(200).verdict("trace"), 200u);
  std::array<Trace, 256> traces;
  CHECK_EQ(relayed.relay->drain_traces(traces.data(), traces.size()), 64u);
}
