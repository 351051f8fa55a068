// Prepared keys of the leaders whose slots come next, so that their signatures cost the workers
// less than half.
//
// A thread of its own follows the highest slot that the workers know. It prepares the keys of the
// leaders around it and publishes them as a table. Leaders are known days ahead, so that a key is
// usually ready seconds before its first shred. A worker checks a signature of any other leader
// with the library, with the same result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "crypto/prepared_key.h"
#include "net/thread.h"
#include "relay/counters.h"
#include "relay/tables.h"

namespace shredway {

class KeyPreparer {
 public:
  static constexpr uint64_t kSlotsBehind = 8;
  static constexpr uint64_t kSlotsAhead = 40;  // 16 s: about ten leaders, each with four slots

  // Both need the counters of all workers. start() returns nullptr and fills `error` if the thread
  // cannot be started. Without a thread, the caller calls take_turn().
  static std::unique_ptr<KeyPreparer> start(Tables& tables,
                                            std::vector<const WorkerCounters*> workers,
                                            std::string& error);
  static std::unique_ptr<KeyPreparer> create(Tables& tables,
                                             std::vector<const WorkerCounters*> workers);
  ~KeyPreparer();

  // Publishes the prepared keys if the leaders around the highest slot have changed.
  void take_turn();

 private:
  KeyPreparer(Tables& tables, std::vector<const WorkerCounters*> workers)
      : tables_(tables), workers_(std::move(workers)) {}
  void run();
  uint64_t highest_slot() const;

  Tables& tables_;
  const std::vector<const WorkerCounters*> workers_;
  // The slot and the schedule for which `prepared_` was made.
  uint64_t slot_ = 0;
  std::shared_ptr<const LeaderTable> leaders_;
  std::shared_ptr<const PreparedKeys> prepared_ = std::make_shared<const PreparedKeys>();

  StopSignal stop_;
  Thread thread_;
};

}  // namespace shredway
