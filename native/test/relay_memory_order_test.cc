// Data that threads publish without locks arrives whole: rows of slots, rings, notifications of
// landings. With ThreadSanitizer, and on processors that reorder memory accesses, these tests find
// missing orderings.
#include <atomic>
#include <random>
#include <thread>

#include "check.h"
#include "deshred_support.h"
#include "relay/counters.h"
#include "relay/slot_window.h"

namespace {

using namespace shredway;

constexpr uint64_t kFirstSlot = 1000;
// Ends after this many changes between two reads; with one processor, after this many reads.
constexpr uint32_t kChanges = 50'000;
constexpr uint32_t kReadsMax = 20'000'000;

// The slot of step `step`. All slots share one row. Every second one is so far ahead that the next
// one replaces it although it is lower, so that slots recur in the row.
uint64_t slot_of(uint64_t step) {
  const uint64_t near = kFirstSlot + step / 32 * kSlotRows;
  return step % 2 ? near + 16 * SlotWindow::kSlots : near;
}

// A shred whose fields all follow from its slot and its number.
Shred shred_of(uint64_t slot, uint32_t number) {
  Shred shred{};
  shred.slot = slot;
  shred.type = number % 2 ? ShredType::code : ShredType::data;
  shred.index = static_cast<uint32_t>(slot % 30'011);
  shred.flags = number == 2 ? kFlagLastInSlot : uint8_t{0};
  return shred;
}
uint64_t time_of(uint64_t slot, uint32_t number) { return slot * 16 + number; }

void check_row(const SlotRow& row) {
  const uint64_t index = row.slot % 30'011;
  CHECK_EQ(row.slot % kSlotRows, kFirstSlot % kSlotRows);
  CHECK_EQ(row.first_arrival_ns, time_of(row.slot, 0));
  CHECK(row.last_arrival_ns >= row.first_arrival_ns && row.last_arrival_ns <= time_of(row.slot, 3));
  CHECK(row.data <= 2 && row.code <= 2);
  CHECK(row.highest_data_index == 0 || row.highest_data_index == index);
  CHECK(row.last_plus_1 == 0 || row.last_plus_1 == index + 1);
}

}  // namespace

TEST(slot_counters_are_read_whole_while_the_row_is_reused) {
  const auto counters = std::make_unique<WorkerCounters>();
  std::atomic<bool> stopping{false};
  std::thread writer([&] {
    for (uint64_t step = 0; !stopping; step++)
      for (uint32_t number = 0; number < 4; number++)
        counters->record_first_arrival(shred_of(slot_of(step), number),
                                       time_of(slot_of(step), number));
  });
  const SlotCounters& shared = counters->slots[kFirstSlot % kSlotRows];
  SlotRow row;
  uint64_t last_slot = 0;
  uint32_t changes = 0;
  for (uint32_t reads = 0; reads < kReadsMax && changes < kChanges; reads++) {
    if (!shared.read(row)) continue;  // not begun, or begun again meanwhile
    check_row(row);
    if (row.slot != last_slot) changes++;
    last_slot = row.slot;
  }
  CHECK(changes > 0);
  stopping = true;
  writer.join();
  CHECK(shared.read(row));
  check_row(row);
  CHECK(row.data == 2 && row.code == 2);
}

TEST(spsc_ring_elements_are_read_whole_and_in_order) {
  struct Element {
    uint64_t words[8];
  };
  constexpr uint64_t kElementsSent = 200'000;
  SpscRing<Element, 16> ring;
  std::thread writer([&] {
    for (uint64_t sent = 0; sent < kElementsSent;) {
      uint64_t count = 0;  // published together
      for (; count < 3 && sent + count < kElementsSent; count++) {
        Element* to = ring.place(count);
        if (!to) break;
        for (uint64_t& word : to->words) word = sent + count;
      }
      ring.publish(count);
      sent += count;
      if (count == 0) std::this_thread::yield();
    }
  });
  for (uint64_t next = 0; next < kElementsSent;) {
    const size_t waiting = ring.waiting();
    for (size_t i = 0; i < waiting; i++, next++)
      for (const uint64_t word : ring.front(i).words) CHECK_EQ(word, next);
    ring.release(waiting);
    if (waiting == 0) std::this_thread::yield();
  }
  writer.join();
  CHECK_EQ(ring.waiting(), 0u);
}

// A landing that is reported while the notifier is set must be notified by one of the two threads.
TEST(deshred_thread_notifies_landings_that_race_with_the_notifier) {
  struct Notifier : WakeUpNotifier {
    std::atomic<int> notified{0};
    void notify() override { notified++; }
  };
  constexpr int kRounds = 300;
  Notifier notifier;  // outlives the thread
  std::string error;
  const auto thread = DeshredThread::start(1, error);
  CHECK_EQ(error, std::string());
  std::mt19937 random(4);
  const auto slot = test::make_batched_slot(80, {1}, random);
  const auto count_of = [&](DeshredCounter counter) {
    return thread->counters().counters[static_cast<size_t>(counter)].get();
  };
  for (const test::Bytes& packet : slot.packets) {
    QueuedShred* to = thread->ring_of(0).place();
    to->received_ns = 1;
    std::copy(packet.begin(), packet.end(), to->packet);
    thread->ring_of(0).publish();
  }
  while (count_of(DeshredCounter::transactions) == 0) std::this_thread::yield();
  const std::string& text = slot.batches[0].signatures[0];
  TransactionSignature signature;
  for (size_t i = 0; i < signature.size(); i++)
    signature[i] = static_cast<uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  for (uint64_t round = 1; round <= kRounds; round++) {
    thread->set_notifier(nullptr);
    Landing landing;
    while (thread->drain(&landing, 1)) {
    }
    notifier.notified = 0;
    CHECK_EQ(thread->watch({&signature, 1}), std::string());  // reports the recorded landing
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    thread->set_notifier(&notifier);
    while (count_of(DeshredCounter::landings) < round) std::this_thread::yield();
    for (int i = 0; i < 30'000 && notifier.notified == 0; i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // Both threads may notify of the same landing, which only causes one empty drain.
    CHECK(notifier.notified > 0 && notifier.notified <= 2);
  }
  thread->set_notifier(nullptr);
}
