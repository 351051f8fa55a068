// Tables: parsed as a whole, checked byte by byte, and swapped under readers.
#include "relay/tables.h"

#include <random>
#include <thread>

#include "check.h"
#include "support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

const Source* find(const SourceTable& table, const char* address, uint16_t port = 20000) {
  sockaddr_storage sender{};
  to_sockaddr(ipv4_endpoint(address, 999), sender);
  return table.find(sender, port);
}

template <typename Parse>
void check_refused(const Bytes& bytes, const char* expected, Parse parse) {
  std::string error;
  CHECK(parse(bytes, error) == nullptr);
  if (error.find(expected) == std::string::npos) CHECK_EQ(error, std::string(expected));
}

const auto parse_sources = [](const Bytes& bytes, std::string& error) {
  return SourceTable::parse(bytes.data(), bytes.size(), 2, error);
};
const auto parse_fanout = [](const Bytes& bytes, std::string& error) {
  return FanoutTable::parse(bytes.data(), bytes.size(), 2, error);
};
const auto parse_leaders = [](const Bytes& bytes, std::string& error) {
  return LeaderTable::parse(bytes.data(), bytes.size(), error);
};

}  // namespace

TEST(source_table_prefers_the_longest_prefix_then_the_port) {
  std::string error;
  const auto table = parse_sources(source_table({{"10.0.0.0", 8, 1, 1},
                                                 {"10.1.0.0", 16, 0, 2},
                                                 {"10.1.2.3", 32, 1, 3},
                                                 {"10.1.2.3", 32, 0, 4, 7000},
                                                 {"10.1.0.0", 16, 1, 5, 7000},
                                                 {"0.0.0.0", 0, 0, 6, 9000}}),
                                   error);
  CHECK_EQ(error, std::string());
  if (!table) return;
  CHECK_EQ(find(*table, "10.9.9.9")->id, 1);
  CHECK_EQ(find(*table, "10.1.9.9")->id, 2);
  CHECK_EQ(find(*table, "10.1.9.9", 7000)->id, 5);
  CHECK_EQ(find(*table, "10.1.2.3")->id, 3);
  CHECK_EQ(find(*table, "10.1.2.3", 7000)->id, 4);
  CHECK_EQ(find(*table, "192.0.2.1", 9000)->id, 6);
  CHECK(find(*table, "192.0.2.1") == nullptr);
  CHECK(find(*table, "11.0.0.1") == nullptr);
  CHECK_EQ(find(*table, "10.9.9.9")->tier_mask, 2);  // tier 1 of 2: only the wider one
  CHECK_EQ(find(*table, "10.1.9.9")->tier_mask, 3);
  sockaddr_storage ipv6{};
  Endpoint endpoint;
  endpoint.address = {0x20, 0x01, 0x0d, 0xb8};
  to_sockaddr(endpoint, ipv6);
  CHECK(table->find(ipv6, 20000) == nullptr);
  CHECK_EQ(table->find(ipv6, 9000)->id, 6);
}

TEST(source_table_matches_a_linear_scan) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; round++) {
    std::vector<SourceEntry> entries;
    std::vector<std::string> texts(40);
    for (uint16_t i = 0; i < 40; i++) {
      texts[i] = "10.0." + std::to_string(random() % 4) + "." + std::to_string(random() % 8);
      entries.push_back({texts[i].c_str(),
                         static_cast<uint8_t>(random() % 2 ? 32 : 24 + random() % 8), 0, i,
                         static_cast<uint16_t>(random() % 3 ? 0 : 7000)});
    }
    std::string error;
    const auto table = parse_sources(source_table(entries), error);
    if (!table) continue;  // two equal ranges
    for (int probe = 0; probe < 64; probe++) {
      const auto address = static_cast<uint32_t>(10u << 24 | (random() % 4) << 8 | random() % 8);
      const uint16_t port = random() % 2 ? 7000 : 20000;
      int best = -1;
      int best_rank = -1;
      for (const SourceEntry& entry : entries) {
        uint32_t base = 0;
        unsigned a, b, c, d;
        std::sscanf(entry.address, "%u.%u.%u.%u", &a, &b, &c, &d);
        base = a << 24 | b << 16 | c << 8 | d;
        const uint32_t mask = ~0u << (32 - entry.ipv4_prefix);
        const bool matches =
            (base & mask) == (address & mask) && (!entry.port || entry.port == port);
        const int rank = entry.ipv4_prefix * 2 + (entry.port ? 1 : 0);
        if (matches && rank > best_rank) best = entry.id, best_rank = rank;
      }
      const std::string text =
          "10.0." + std::to_string(address >> 8 & 255) + "." + std::to_string(address & 255);
      const Source* found = find(*table, text.c_str(), port);
      CHECK_EQ(found ? int{found->id} : -1, best);
    }
  }
}

TEST(source_table_refuses_invalid_bytes) {
  check_refused({}, "expected 8 header bytes", parse_sources);
  check_refused(source_table({{"10.0.0.1", 32, 2, 1}}), "expected a tier below 2, got 2",
                parse_sources);
  check_refused(source_table({{"10.0.0.1", 32, 0, 256}}), "source id below 256", parse_sources);
  check_refused(source_table({{"10.0.0.1", 24, 0, 1}, {"10.0.0.9", 24, 0, 2}}),
                "two entries for the same range", parse_sources);
  Bytes bytes = source_table({{"10.0.0.1", 32, 0, 1}});
  bytes.pop_back();
  check_refused(bytes, "expected 32 bytes for 1 entries, got 31", parse_sources);
  bytes = source_table({{"10.0.0.1", 32, 0, 1}});
  bytes[8 + 3] = 129;
  check_refused(bytes, "at most 128 prefix bits", parse_sources);
  store(bytes, 4, uint32_t{0xffffffff});
  check_refused(bytes, "at most 4096 entries", parse_sources);
}

TEST(fanout_table_lists_tiers_and_refuses_invalid_bytes) {
  const Endpoint a = ipv4_endpoint("192.0.2.1", 9001);
  const Endpoint b = ipv4_endpoint("192.0.2.1", 9002);
  std::string error;
  const auto table = parse_fanout(fanout_table({{a, 0, 7}, {b, 1, 8}}), error);
  CHECK_EQ(error, std::string());
  CHECK_EQ(table->of_tier(0).size(), 1u);
  CHECK_EQ(table->of_tier(1)[0].id, 8u);
  CHECK_EQ(table->find(b)->id, 8u);
  CHECK(table->find(ipv4_endpoint("192.0.2.1", 9003)) == nullptr);

  check_refused(fanout_table({{a, 0, 7}, {a, 1, 8}}), "same address 192.0.2.1:9001", parse_fanout);
  check_refused(fanout_table({{a, 0, 7}, {b, 1, 7}}), "same destination id 7", parse_fanout);
  check_refused(fanout_table({{a, 2, 7}}), "tier below 2", parse_fanout);
  check_refused(fanout_table({{a, 0, 4096}}), "id below 4096", parse_fanout);
  check_refused(fanout_table({{ipv4_endpoint("192.0.2.1", 0), 0, 1}}), "port from 1", parse_fanout);
  Bytes bytes = fanout_table({{a, 0, 7}});
  bytes.push_back(0);
  check_refused(bytes, "got 33", parse_fanout);
}

TEST(fanout_table_finds_each_of_many_destinations) {
  std::vector<DestinationEntry> entries;
  for (uint32_t i = 0; i < kDestinationsMax; i++) {
    const std::string address = "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256);
    entries.push_back({ipv4_endpoint(address.c_str(), static_cast<uint16_t>(9000 + i % 3)),
                       static_cast<uint8_t>(i % 2), i});
  }
  std::string error;
  const auto table = parse_fanout(fanout_table(entries), error);
  CHECK_EQ(error, std::string());
  for (const DestinationEntry& entry : entries) {
    CHECK_EQ(table->find(entry.endpoint)->id, entry.id);
    Endpoint other = entry.endpoint;
    other.port = 9003;
    CHECK(table->find(other) == nullptr);
  }
  CHECK(parse_fanout(fanout_table({}), error)->find(entries[0].endpoint) == nullptr);
}

TEST(leader_table_finds_leaders_and_refuses_invalid_bytes) {
  std::string error;
  const auto table = parse_leaders(leader_table(leader_key(1), 1000, 8), error);
  CHECK_EQ(error, std::string());
  CHECK(table->leader_of(999) == nullptr);
  CHECK(table->leader_of(1000)->bytes() == leader_key(1));
  CHECK(table->leader_of(1007) != nullptr);
  CHECK(table->leader_of(1008) == nullptr);
  CHECK(table->leader_of(0) == nullptr);
  CHECK(table->leader_of(~uint64_t{0}) == nullptr);

  Bytes bytes = leader_table(leader_key(1), 1000, 8);
  store(bytes, 52, uint32_t{1});
  check_refused(bytes, "slot 1000 names key 1 of 1", parse_leaders);
  store(bytes, 52, kNoLeader);
  CHECK(parse_leaders(bytes, error)->leader_of(1000) == nullptr);
  store(bytes, 8, ~uint64_t{0} - 3);
  check_refused(bytes, "beyond 2^64", parse_leaders);
  check_refused({'S', 'W', 'L', '1'}, "expected 20 header bytes", parse_leaders);
}

TEST(tables_random_bytes_never_exceed_the_bounds) {
  std::mt19937 random(3);
  size_t accepted = 0;
  size_t refused = 0;
  const auto check_outcome = [&](bool is_accepted, std::string& error) {
    CHECK_EQ(error.empty(), is_accepted);  // a refusal always has an error text
    error.clear();
    is_accepted ? accepted++ : refused++;
  };
  for (int i = 0; i < 30'000; i++) {
    Bytes bytes(random() % 120);
    for (auto& byte : bytes) byte = static_cast<uint8_t>(random() % 5 ? 0 : random());
    if (bytes.size() >= 8) {
      std::memcpy(bytes.data(), i % 3 == 0 ? "SWS1" : i % 3 == 1 ? "SWF1" : "SWL1", 4);
      bytes[4] = static_cast<uint8_t>(bytes.size() / 24);
    }
    std::string error;
    check_outcome(parse_sources(bytes, error) != nullptr, error);
    const auto fanout = parse_fanout(bytes, error);
    check_outcome(fanout != nullptr, error);
    if (fanout) CHECK(fanout->addresses().size() * 24 <= bytes.size());
    const auto leaders = parse_leaders(bytes, error);
    check_outcome(leaders != nullptr, error);
    if (leaders) CHECK(leaders->slot_count() * 4 <= bytes.size());
  }
  CHECK(accepted > 0);
  CHECK(refused > 0);
}

TEST(tables_swapped_under_readers_are_freed_when_unused) {
  std::string error;
  const auto sources = [&](uint16_t id) {
    const Bytes bytes = source_table({{"10.0.0.1", 32, 0, id}});
    return std::shared_ptr<const SourceTable>(
        SourceTable::parse(bytes.data(), bytes.size(), 2, error));
  };
  Tables tables({sources(0), nullptr, nullptr, nullptr, nullptr, 1});
  std::vector<std::unique_ptr<TableReader>> readers;
  for (int i = 0; i < 2; i++) {
    readers.push_back(std::make_unique<TableReader>(tables.current()));
    tables.add_reader(readers.back().get());
  }
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> threads;
  for (auto& reader : readers) {
    threads.emplace_back([&] {
      uint64_t newest = 0;
      while (!stop) {
        const TableSet& set = reader->acquire();
        CHECK(set.generation >= newest);
        newest = set.generation;
        CHECK_EQ(find(*set.sources, "10.0.0.1")->id, (set.generation - 1) % 200);
        reads++;
      }
    });
  }
  for (uint16_t i = 1; i < 2000; i++) tables.replace(&TableSet::sources, sources(i % 200));
  while (reads < 4000) std::this_thread::yield();
  stop = true;
  for (auto& thread : threads) thread.join();
  for (auto& reader : readers) reader->acquire();
  tables.replace(&TableSet::sources, sources(0));
  CHECK(tables.set_count() <= 2);
}
