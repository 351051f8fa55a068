// Watched signatures are found exactly, and recent landings are recorded, whatever their number.
#include "relay/landings.h"
#include "transaction/vote.h"

#include <random>
#include <set>

#include "check.h"
#include "deshred_support.h"

namespace {

using namespace shredway;

TransactionSignature numbered(uint64_t number) {
  TransactionSignature out{};
  std::memcpy(out.data(), &number, sizeof number);
  return out;
}

Landing landing_of(uint64_t number, uint64_t slot) {
  return {slot, 1, 2, 3, 4, 0, numbered(number)};
}

std::vector<uint64_t> slots_of(const RecentLandings& recent, uint64_t number) {
  std::vector<uint64_t> out;
  recent.find(numbered(number).data(), [&](const Landing& found) { out.push_back(found.slot); });
  return out;
}

}  // namespace

TEST(watch_list_ignores_duplicates) {
  std::mt19937 random(3);
  WatchList list({random(), random()});
  std::set<uint64_t> model;
  for (int step = 0; step < 200'000; step++) {
    const uint64_t number = random() % 3000;
    switch (random() % 3) {
      case 0:
        CHECK_EQ(list.add(numbered(number)), model.insert(number).second);
        break;
      case 1:
        CHECK_EQ(list.remove(numbered(number)), model.erase(number) == 1);
        break;
      default:
        CHECK_EQ(list.contains(numbered(number).data()), model.contains(number));
    }
  }
  CHECK_EQ(list.size(), model.size());
}

TEST(watch_list_is_full_at_its_limit) {
  WatchList list({9, 8});
  for (uint64_t i = 0; i < WatchList::kSignaturesMax; i++) CHECK(list.add(numbered(i)));
  CHECK(!list.add(numbered(WatchList::kSignaturesMax)));
  CHECK(!list.contains(numbered(WatchList::kSignaturesMax).data()));
  for (uint64_t i = 0; i < WatchList::kSignaturesMax; i += 2) CHECK(list.remove(numbered(i)));
  for (uint64_t i = 0; i < WatchList::kSignaturesMax; i++)
    CHECK_EQ(list.contains(numbered(i).data()), i % 2 == 1);
  WatchList empty({1, 1});
  CHECK(!empty.contains(numbered(0).data()));
  CHECK(!empty.remove(numbered(0)));
}

TEST(watch_list_hash_is_siphash_of_the_whole_signature) {
  TransactionSignature signature;
  for (size_t i = 0; i < signature.size(); i++) signature[i] = static_cast<uint8_t>(i);
  // From an implementation that gives the published value a129ca6149be45e5 for the first 15 bytes.
  CHECK_EQ(hash_of(signature.data(), {0x0706050403020100u, 0x0f0e0d0c0b0a0908u}),
           0xacd2c40b8502cad8u);
  for (size_t bit = 0; bit < 8 * signature.size(); bit++) {
    TransactionSignature other = signature;
    other[bit / 8] = static_cast<uint8_t>(other[bit / 8] ^ 1 << bit % 8);
    CHECK(hash_of(other.data(), {1, 2}) != hash_of(signature.data(), {1, 2}));
  }
}

TEST(watch_list_reports_once_per_slot_up_to_a_limit) {
  WatchList list({1, 2});
  CHECK(!list.record_landing(numbered(1).data(), 5, 0));
  list.add(numbered(1));
  CHECK(list.record_landing(numbered(1).data(), 0, 0));
  CHECK(!list.record_landing(numbered(1).data(), 0, 0));
  CHECK(list.record_landing(numbered(1).data(), 5, 0));
  CHECK(!list.record_landing(numbered(2).data(), 5, 0));
  uint64_t reported = 2;
  for (uint64_t slot = 6; slot < 1000; slot++)
    reported += list.record_landing(numbered(1).data(), slot % 2, 0);
  CHECK_EQ(reported, WatchList::kReportsMax);
  CHECK(list.remove(numbered(1)));
  list.add(numbered(1));
  CHECK(list.record_landing(numbered(1).data(), 5, 0));
}

TEST(watch_list_reports_later_batches_of_a_slot_up_to_a_limit) {
  WatchList list({1, 2});
  list.add(numbered(1));
  const auto reports = [&](uint64_t slot, uint32_t batch_index) {
    return list.record_landing(numbered(1).data(), slot, batch_index);
  };
  CHECK(reports(5, 32));
  CHECK(!reports(5, 0));
  CHECK(reports(5, 64));
  CHECK(!reports(5, 64));
  CHECK(reports(5, 96));
  CHECK(reports(5, 128));
  CHECK(!reports(5, 160));
  CHECK(reports(6, 0));
}

TEST(recent_landings_hold_the_newest) {
  RecentLandings recent({5, 6});
  CHECK(slots_of(recent, 1).empty());
  recent.record(landing_of(1, 10));
  recent.record(landing_of(1, 11));  // on a fork
  recent.record(landing_of(1, 11));
  CHECK(slots_of(recent, 1) == (std::vector<uint64_t>{10, 11}));
  const uint64_t many = 8 * RecentLandings::kLandings;
  for (uint64_t i = 2; i < many; i++) recent.record(landing_of(i, i));
  uint64_t found = 0;
  for (uint64_t i = 2; i < many; i++) {
    const auto slots = slots_of(recent, i);
    CHECK(slots.empty() || slots == std::vector<uint64_t>{i});
    found += slots.size();
  }
  CHECK_EQ(found, RecentLandings::kLandings);
  CHECK(slots_of(recent, 1).empty());
  // Hardly one of the newest quarter is missing.
  uint64_t missing = 0;
  for (uint64_t i = many - RecentLandings::kLandings / 4; i < many; i++)
    missing += slots_of(recent, i).empty();
  CHECK(missing < RecentLandings::kLandings / 4 / 50);
}

TEST(landings_recognise_simple_votes) {
  std::mt19937 random(1);
  test::Bytes vote = test::small_transaction(random);
  Transaction transaction;
  CHECK_EQ(parse_transaction(vote.data(), vote.size(), transaction), ParseResult::complete);
  CHECK(!is_simple_vote(vote.data(), transaction));
  // Two keys, the second being the vote program, and one instruction of it.
  const uint8_t program[8] = {0x07, 0x61, 0x48, 0x1d, 0x35, 0x74, 0x74, 0xbb};
  const uint8_t rest[24] = {0x7c, 0x4d, 0x76, 0x24, 0xeb, 0xd3, 0xbd, 0xb3, 0xd8, 0x35, 0x5e, 0x73,
                            0xd1, 0x10, 0x43, 0xfc, 0x0d, 0xa3, 0x53, 0x80, 0,    0,    0,    0};
  vote[68] = 2;
  vote.insert(vote.begin() + 69 + 32, std::begin(rest), std::end(rest));
  vote.insert(vote.begin() + 69 + 32, std::begin(program), std::end(program));
  vote.back() = 1;
  vote.insert(vote.end(), {1, 0, 0});
  CHECK_EQ(parse_transaction(vote.data(), vote.size(), transaction), ParseResult::complete);
  CHECK(is_simple_vote(vote.data(), transaction));
  vote[69 + 32 + 5] ^= 1;
  CHECK(!is_simple_vote(vote.data(), transaction));
  vote[vote.size() - 3] = 200;  // a program index beyond the static keys
  CHECK_EQ(parse_transaction(vote.data(), vote.size(), transaction), ParseResult::complete);
  CHECK(!is_simple_vote(vote.data(), transaction));
}
