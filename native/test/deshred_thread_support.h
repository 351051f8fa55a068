// Support for tests of the deshred thread: shreds for its rings, and a reader of its reports.
#pragma once

#include "check.h"
#include "deshred_support.h"
#include "loopback_relay.h"
#include "relay/deshred_thread.h"

namespace shredway::test {

inline TransactionSignature signature_of(const std::string& hex) {
  TransactionSignature out;
  for (size_t i = 0; i < out.size(); i++)
    out[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return out;
}

inline void push_shred(ShredRing& ring, const Bytes& packet, uint64_t received_ns) {
  QueuedShred* to = ring.place();
  CHECK(to != nullptr);
  if (!to) return;
  to->received_ns = received_ns;
  std::copy(packet.begin(), packet.end(), to->packet);
  ring.publish();
}

struct Watcher {
  std::unique_ptr<DeshredThread> thread;
  std::vector<Landing> landings;
  explicit Watcher(uint32_t workers = 1) {
    std::string error;
    thread = DeshredThread::start(workers, error);
    CHECK_EQ(error, std::string());
  }
  bool has(size_t count) {
    return eventually([&] {
      Landing landing;
      while (thread->drain(&landing, 1)) landings.push_back(landing);
      return landings.size() >= count;
    });
  }
  uint64_t counter(DeshredCounter counter) const {
    return thread->counters().counters[static_cast<size_t>(counter)].get();
  }
};

}  // namespace shredway::test
