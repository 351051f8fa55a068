// Keys of the leaders around the highest slot are prepared, and no others.
#include "relay/key_preparer.h"

#include "check.h"
#include "support.h"

namespace shredway::test {
namespace {

// Leader i, of three, has the slots 1000 + 100 i to 1099 + 100 i.
Bytes three_leaders() {
  Bytes bytes = {'S', 'W', 'L', '1'};
  append(bytes, uint32_t{3});
  append(bytes, uint64_t{1000});
  append(bytes, uint32_t{300});
  for (uint8_t seed = 1; seed <= 3; seed++) {
    const PublicKey key = leader_key(seed);
    bytes.insert(bytes.end(), key.begin(), key.end());
  }
  for (uint32_t slot = 0; slot < 300; slot++) append(bytes, slot / 100);
  return bytes;
}

struct Preparation {
  WorkerCounters first, second;
  Tables tables{TableSet{.sources = nullptr,
                         .fanout = nullptr,
                         .leaders = leaders(three_leaders()),
                         .prepared_keys = std::make_shared<const PreparedKeys>(),
                         .next_hops = nullptr,
                         .generation = 1}};
  std::unique_ptr<KeyPreparer> preparer = KeyPreparer::create(tables, {&first, &second});

  static std::shared_ptr<const LeaderTable> leaders(const Bytes& bytes) {
    std::string error;
    return LeaderTable::parse(bytes.data(), bytes.size(), error);
  }
  // Seeds of the leaders whose keys are prepared, as digits.
  std::string prepared_at(uint64_t slot) {
    first[WorkerCounter::highest_slot].set(slot);
    preparer->take_turn();
    return prepared();
  }
  std::string prepared() const {
    std::string out;
    const auto keys = tables.latest(&TableSet::prepared_keys);
    for (uint8_t seed = 1; seed <= 3; seed++)
      if (keys->find(leader_key(seed))) out += std::to_string(seed);
    return out;
  }
};

}  // namespace

TEST(key_preparer_follows_the_highest_slot) {
  const auto preparation = std::make_unique<Preparation>();
  Preparation& it = *preparation;
  CHECK_EQ(it.prepared_at(0), "");
  CHECK_EQ(it.prepared_at(900), "");
  CHECK_EQ(it.prepared_at(1000 - KeyPreparer::kSlotsAhead), "1");
  CHECK_EQ(it.prepared_at(1099 - KeyPreparer::kSlotsAhead), "1");
  CHECK_EQ(it.prepared_at(1100 - KeyPreparer::kSlotsAhead), "12");
  CHECK_EQ(it.prepared_at(1099 + KeyPreparer::kSlotsBehind), "12");
  CHECK_EQ(it.prepared_at(1100 + KeyPreparer::kSlotsBehind), "2");
  it.second[WorkerCounter::highest_slot].set(1299);  // the other worker is ahead
  CHECK_EQ(it.prepared_at(1100), "3");
  it.second[WorkerCounter::highest_slot].set(0);
  CHECK_EQ(it.prepared_at(~uint64_t{0} - 3), "");
}

TEST(key_preparer_publishes_only_changes) {
  const auto preparation = std::make_unique<Preparation>();
  Preparation& it = *preparation;
  CHECK_EQ(it.prepared_at(1010), "1");
  const uint64_t generation = it.tables.generation();
  CHECK_EQ(it.prepared_at(1010), "1");
  CHECK_EQ(it.prepared_at(1020), "1");
  CHECK_EQ(it.tables.generation(), generation);
  // Another schedule: leader 2 has all slots.
  it.tables.replace(&TableSet::leaders,
                    Preparation::leaders(leader_table(leader_key(2), 1000, 300)));
  it.preparer->take_turn();
  CHECK_EQ(it.prepared(), "2");
}

TEST(key_preparer_thread_prepares_and_ends) {
  const auto preparation = std::make_unique<Preparation>();
  std::string error;
  auto thread = KeyPreparer::start(preparation->tables, {&preparation->first}, error);
  CHECK(thread && error.empty());
  preparation->first[WorkerCounter::highest_slot].set(1150);
  while (preparation->prepared() != "2") sleep_for_us(1000);
  thread.reset();
}

}  // namespace shredway::test
