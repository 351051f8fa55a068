// An update-parent marker withdraws what precedes it in its slot, in whichever order both arrive.
#include "deshred/slot_restarts.h"

#include <map>
#include <numeric>
#include <set>

#include "deshred_thread_support.h"

namespace {

using namespace shredway;
using test::BatchedSlot;
using test::Bytes;

BlockMarker marker_of(const Bytes& batch) {
  const size_t payload_bytes = batch.size() - 13;
  return {static_cast<BlockMarkerKind>(batch[10]), static_cast<uint16_t>(payload_bytes), &batch[13],
          static_cast<uint16_t>(std::min<size_t>(payload_bytes, kMarkerPayloadSeenBytesMax))};
}

std::vector<std::pair<uint64_t, uint32_t>> reported(SlotRestarts& restarts, size_t max = 100) {
  std::vector<std::pair<uint64_t, uint32_t>> out;
  restarts.report([&](const SlotRestarts::Restart& restart) {
    if (out.size() == max) return false;
    out.emplace_back(restart.slot, restart.batch_index);
    return true;
  });
  return out;
}

// Batches of a slot that begins again once or twice. Some transactions are in several parts.
struct RestartedSlot {
  BatchedSlot slot;
  uint32_t begin = 0;  // index of the last marker's batch
  std::vector<TransactionSignature> all;
  std::set<TransactionSignature> landed;  // after the last marker
};

RestartedSlot make_restarted_slot(uint64_t number, size_t restarts, std::mt19937& random) {
  RestartedSlot out;
  std::vector<Bytes> transactions;
  for (size_t i = 0; i < 40; i++) {
    transactions.push_back(test::small_transaction(random));
    std::copy_n(&transactions[i][1], kTransactionSignatureBytes, out.all.emplace_back().begin());
  }
  std::vector<Bytes> batches{test::block_marker(BlockMarkerKind::header, 41)};
  size_t last_marker = 0;
  for (size_t part = 0; part <= restarts; part++) {
    if (part > 0) {
      last_marker = batches.size();
      batches.push_back(test::block_marker(BlockMarkerKind::update_parent, 41));
      out.landed.clear();
    }
    for (size_t batch = 0; batch <= random() % 3; batch++) {
      std::vector<Bytes> entry;
      for (size_t i = batch; i < transactions.size(); i += 3) {
        if (random() % 2) continue;
        entry.push_back(transactions[i]);
        out.landed.insert(out.all[i]);
      }
      batches.push_back(test::entry_batch({entry}));
    }
  }
  out.slot = test::make_batched_slot(number, batches);
  out.begin = out.slot.batches[last_marker].first_index;
  return out;
}

// Observations of the slot according to a reader of the reports.
class Reader {
 public:
  void read(const Landing& landing) {
    if (!(landing.flags & kRestart)) {
      CHECK(landing.flags & kMayRestart);
      observed_.insert({landing.signature, landing.batch_index});
      return;
    }
    std::erase_if(observed_, [&](const auto& one) { return one.second < landing.batch_index; });
  }
  std::set<TransactionSignature> landed() const {
    std::set<TransactionSignature> out;
    for (const auto& [signature, batch_index] : observed_) out.insert(signature);
    return out;
  }

 private:
  std::set<std::pair<TransactionSignature, uint32_t>> observed_;
};

}  // namespace

TEST(slot_restarts_keep_the_last_marker_of_a_slot) {
  SlotRestarts restarts;
  CHECK_EQ(restarts.begin_of(7), 0u);
  restarts.add(7, 0, 1);  // nothing precedes it
  CHECK(reported(restarts).empty());
  restarts.add(7, 64, 1);
  restarts.add(7, 96, 2);
  restarts.add(7, 32, 3);
  CHECK_EQ(restarts.begin_of(7), 96u);
  CHECK_EQ(restarts.begin_of(8), 0u);
  restarts.add(9, 32, 4);
  using Reported = std::vector<std::pair<uint64_t, uint32_t>>;
  CHECK((reported(restarts, 1) == Reported{{7, 96}}));
  CHECK((reported(restarts) == Reported{{9, 32}}));
  CHECK(reported(restarts).empty());
  restarts.add(7, 128, 5);
  CHECK((reported(restarts) == Reported{{7, 128}}));
  restarts.add(7 + SlotRestarts::kSlots, 32, 6);
  restarts.add(7, 256, 7);
  CHECK_EQ(restarts.begin_of(7), 0u);
  CHECK_EQ(restarts.begin_of(7 + SlotRestarts::kSlots), 32u);
}

TEST(slot_restarts_need_a_marker_of_the_known_format) {
  const Bytes valid = test::block_marker(BlockMarkerKind::update_parent, 41);
  CHECK(is_update_parent(marker_of(valid)));
  for (const size_t payload_bytes : {1, 40, 42, 300})
    CHECK(!is_update_parent(
        marker_of(test::block_marker(BlockMarkerKind::update_parent, payload_bytes))));
  for (const auto kind :
       {BlockMarkerKind::footer, BlockMarkerKind::header, BlockMarkerKind::genesis_certificate})
    CHECK(!is_update_parent(marker_of(test::block_marker(kind, 41))));
  Bytes other_version = valid;
  other_version[13] = 2;
  CHECK(!is_update_parent(marker_of(other_version)));
  BlockMarker cut = marker_of(valid);
  cut.payload_seen = 40;
  CHECK(!is_update_parent(cut));
}

TEST(deshred_thread_withdraws_what_precedes_a_marker_in_any_order) {
  std::mt19937 random(11);
  for (uint64_t round = 0; round < 40; round++) {
    const size_t restarts = round % 3;
    const RestartedSlot made = make_restarted_slot(500 + round, restarts, random);
    test::Watcher watcher;
    CHECK_EQ(watcher.thread->watch(made.all), std::string());
    CHECK(test::eventually(
        [&] { return watcher.counter(DeshredCounter::watched) == made.all.size(); }));
    std::vector<Bytes> packets = made.slot.packets;
    std::shuffle(packets.begin(), packets.end(), random);
    for (const Bytes& packet : packets) test::push_shred(watcher.thread->ring_of(0), packet, 5);
    CHECK(test::eventually([&] {
      return watcher.counter(DeshredCounter::batches) == made.slot.batches.size() &&
             watcher.counter(DeshredCounter::restarts) >= (restarts > 0);
    }));
    // Recorded landings of the slot, without those that were abandoned.
    watcher.thread->unwatch(made.all);
    CHECK(test::eventually([&] { return watcher.counter(DeshredCounter::watched) == 0; }));
    Reader reader, late_reader;
    Landing landing;
    while (watcher.thread->drain(&landing, 1)) reader.read(landing);
    CHECK(reader.landed() == made.landed);
    CHECK_EQ(watcher.thread->watch(made.all), std::string());
    CHECK(test::eventually(
        [&] { return watcher.counter(DeshredCounter::watched) == made.all.size(); }));
    while (watcher.thread->drain(&landing, 1)) {
      CHECK_EQ(landing.flags & (kBeforeWatch | kRestart), kBeforeWatch);
      CHECK(landing.batch_index >= made.begin);
      late_reader.read(landing);
    }
    CHECK(late_reader.landed() == made.landed);
  }
}

TEST(deshred_thread_reports_whether_a_block_may_begin_again) {
  std::mt19937 random(12);
  const BatchedSlot plain = test::make_batched_slot(900, {10, 10}, random);
  const BatchedSlot marked = test::make_batched_slot(
      901, {test::block_marker(BlockMarkerKind::header, 41), test::entry_batch({{}})});
  const TransactionSignature wanted = test::signature_of(plain.batches[1].signatures[3]);
  const auto flags_after = [&](const std::vector<Bytes>& packets) {
    test::Watcher watcher;
    CHECK_EQ(watcher.thread->watch({&wanted, 1}), std::string());
    CHECK(test::eventually([&] { return watcher.counter(DeshredCounter::watched) == 1; }));
    for (const Bytes& packet : packets) test::push_shred(watcher.thread->ring_of(0), packet, 5);
    CHECK(watcher.has(1));
    return watcher.landings.empty() ? ~0u : watcher.landings[0].flags;
  };
  CHECK_EQ(flags_after(plain.packets), 0u);
  std::vector<Bytes> both = marked.packets;
  both.insert(both.end(), plain.packets.begin(), plain.packets.end());
  CHECK_EQ(flags_after(both), kMayRestart);
  // Without the beginning of a block it is not known whether the chain has markers.
  CHECK_EQ(plain.batches[0].sets, 1u);
  std::vector<Bytes> second(plain.packets.begin() + kFecSetLeaves, plain.packets.end());
  second.push_back(plain.packets[kFecSetShreds - 1]);
  CHECK_EQ(flags_after(second), kMayRestart);
}
