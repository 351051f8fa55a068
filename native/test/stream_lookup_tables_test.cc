// Address lookup tables: known addresses are resolved and matched, unknown ones are reported, and
// memory is bounded.
#include <map>
#include <set>

#include "stream/lookup_resolver.h"
#include "stream_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

using Accounts = std::vector<StreamAccount>;

// `count` addresses; address i is account_of(first + i).
Accounts addresses_from(uint32_t first, size_t count) {
  Accounts out(count);
  for (uint32_t i = 0; i < count; i++) out[i] = account_of(first + i);
  return out;
}

void change(LookupResolver& resolver, const std::vector<TableChange>& changes) {
  const Bytes bytes = lookup_changes(changes);
  CHECK_EQ(resolver.change(bytes.data(), bytes.size()), std::string());
  resolver.update();
}

LoadedAddresses resolved(LookupResolver& resolver, const Bytes& bytes, uint64_t slot) {
  return resolver.resolve(bytes.data(), parsed(bytes), slot);
}

std::vector<LookupReport> reports_of(LookupResolver& resolver) {
  std::vector<LookupReport> out;
  for (LookupReport report; resolver.next_report(report);) out.push_back(report);
  return out;
}

// A transaction whose only instruction belongs to `program` and names `place` first.
Bytes table_instruction(const StreamAccount& table, uint8_t kind, std::mt19937& random) {
  Bytes program(32);
  static constexpr uint8_t kBegin[] = {0x02, 0x77, 0xa6, 0xaf, 0x97, 0x33, 0x9b, 0x7a, 0xc8, 0x8d,
                                       0x18, 0x92, 0xc9, 0x04, 0x46, 0xf5, 0x00, 0x02, 0x30, 0x92,
                                       0x66, 0xf6, 0x2e, 0x53, 0xc1, 0x18, 0x24, 0x49, 0x82};
  std::copy(std::begin(kBegin), std::end(kBegin), program.begin());
  StreamAccount program_account;
  std::copy(program.begin(), program.end(), program_account.begin());
  Bytes out = transaction_of({account_of(1), table, program_account}, random);
  out.resize(out.size() - 4);
  out.insert(out.end(), {1, 2, 2, 1, 0, 4, kind, 0, 0, 0});
  return out;
}

// A simple model: tables as a map, each address by itself.
struct TableModel {
  struct Known {
    Accounts addresses;
    uint64_t extended_slot;
    uint16_t extension_begin;
  };
  struct Result {
    Accounts loaded;
    std::set<StreamAccount> missing;  // tables
  };
  std::map<StreamAccount, Known> tables;

  Result load(const std::vector<TableLookup>& lookups, uint64_t slot) const {
    Result out;
    for (const auto list : {&TableLookup::writable, &TableLookup::readonly})
      for (const TableLookup& lookup : lookups) {
        const auto known = tables.find(lookup.table);
        if (known == tables.end()) out.missing.insert(lookup.table);
        for (const uint8_t at : lookup.*list) {
          const bool is_known =
              known != tables.end() && at < known->second.addresses.size() &&
              (slot > known->second.extended_slot || at < known->second.extension_begin);
          if (is_known) out.loaded.push_back(known->second.addresses[at]);
          else out.missing.insert(lookup.table);
        }
      }
    return out;
  }
};

Accounts some_accounts(std::mt19937& random, size_t max) {
  Accounts out(random() % (max + 1));
  for (StreamAccount& one : out) one = account_of(static_cast<uint32_t>(random() % 40));
  return out;
}

StreamAccount some_table(std::mt19937& random) {
  return account_of(static_cast<uint32_t>(1000 + random() % 6));
}

// A change of one table, in the resolver and in the model.
void change_some_table(LookupResolver& resolver, TableModel& model, uint64_t slot,
                       std::mt19937& random) {
  const StreamAccount table = some_table(random);
  if (random() % 5 == 0) {
    change(resolver, {{.table = table, .is_removal = true}});
    model.tables.erase(table);
    return;
  }
  TableModel::Known known{some_accounts(random, 40), slot, static_cast<uint16_t>(random() % 40)};
  change(resolver, {{table, known.addresses, slot, known.extension_begin}});
  model.tables[table] = std::move(known);
}

std::vector<TableLookup> some_lookups(std::mt19937& random) {
  std::vector<TableLookup> lookups(random() % 4);
  for (TableLookup& lookup : lookups) {
    lookup.table = some_table(random);
    for (Bytes* list : {&lookup.writable, &lookup.readonly})
      for (size_t i = random() % 4; i > 0; i--)
        list->push_back(static_cast<uint8_t>(random() % 30));
  }
  return lookups;
}

// The specification of a filter without an index.
bool matches_alone(const StreamFilter& filter, const Accounts& accounts) {
  const auto has = [&](const StreamAccount& one) {
    return std::find(accounts.begin(), accounts.end(), one) != accounts.end();
  };
  return (filter.include.empty() ||
          std::any_of(filter.include.begin(), filter.include.end(), has)) &&
         std::none_of(filter.exclude.begin(), filter.exclude.end(), has) &&
         std::all_of(filter.require.begin(), filter.require.end(), has);
}

}  // namespace

TEST(lookup_tables_load_writable_addresses_of_all_tables_before_read_only_ones) {
  std::mt19937 random(1);
  LookupResolver resolver;
  const StreamAccount a = account_of(1000), b = account_of(1001);
  change(resolver, {{a, addresses_from(0, 256)}, {b, addresses_from(5000, 3)}});
  const Bytes bytes = transaction_with_lookups(
      {account_of(9)}, {{a, {255, 0}, {7}}, {b, {2}, {0, 0}}, {a, {255}, {}}}, random);
  const LoadedAddresses loaded = resolved(resolver, bytes, 50);
  CHECK_EQ(loaded.state, LookupState::resolved);
  CHECK_EQ(loaded.writable, 4u);
  CHECK_EQ(loaded.readonly, 3u);
  CHECK(accounts_in(loaded.bytes) ==
        (Accounts{account_of(255), account_of(0), account_of(5002), account_of(255), account_of(7),
                  account_of(5000), account_of(5000)}));
  CHECK(reports_of(resolver).empty());
  CHECK_EQ(resolver.transactions(), 1u);
  CHECK_EQ(resolver.unresolved(), 0u);
  CHECK_EQ(resolved(resolver, transaction_of({account_of(9)}, random), 50).state,
           LookupState::none);
  CHECK_EQ(resolver.transactions(), 1u);
}

TEST(lookup_tables_that_are_unknown_or_too_short_are_reported) {
  std::mt19937 random(2);
  LookupResolver resolver;
  const StreamAccount known = account_of(1000), unknown = account_of(1001);
  const Bytes bytes =
      transaction_with_lookups({account_of(9)}, {{known, {1}, {}}, {unknown, {0}, {3}}}, random);
  // Before any table was published.
  CHECK_EQ(resolved(resolver, bytes, 10).state, LookupState::unresolved);
  CHECK_EQ(reports_of(resolver).size(), 2u);
  change(resolver, {{known, addresses_from(0, 2)}});
  const LoadedAddresses partly = resolved(resolver, bytes, 18);
  CHECK_EQ(partly.state, LookupState::unresolved);
  CHECK(accounts_in(partly.bytes) == (Accounts{account_of(1)}));
  std::vector<LookupReport> reports = reports_of(resolver);
  CHECK_EQ(reports.size(), 1u);
  CHECK(reports[0].table == unknown);
  CHECK_EQ(reports[0].slot, 18u);
  CHECK_EQ(reports[0].is_change, 0u);
  const Bytes beyond = transaction_with_lookups({account_of(9)}, {{known, {2}, {}}}, random);
  CHECK_EQ(resolved(resolver, beyond, 19).state, LookupState::unresolved);
  reports = reports_of(resolver);
  CHECK_EQ(reports.size(), 1u);
  CHECK(reports[0].table == known);
  // The same table is reported again after some slots only.
  for (uint64_t slot = 19; slot < 27; slot++) resolved(resolver, beyond, slot);
  CHECK(reports_of(resolver).empty());
  resolved(resolver, beyond, 27);
  CHECK_EQ(reports_of(resolver).size(), 1u);
  CHECK_EQ(resolver.unresolved(), 12u);
  // A table that was closed is unknown again.
  change(resolver, {{.table = known, .is_removal = true}});
  CHECK_EQ(resolver.counts().tables, 0u);
  CHECK_EQ(resolver.counts().addresses, 0u);
  CHECK(resolved(resolver, bytes, 40).bytes.empty());
}

TEST(lookup_tables_use_an_extension_from_the_next_slot_on) {
  std::mt19937 random(3);
  LookupResolver resolver;
  const StreamAccount table = account_of(1000);
  change(resolver, {{table, addresses_from(0, 5), 100, 3}});
  const auto state = [&](uint8_t index, uint64_t slot) {
    return resolved(resolver,
                    transaction_with_lookups({account_of(9)}, {{table, {}, {index}}}, random), slot)
        .state;
  };
  CHECK_EQ(state(2, 100), LookupState::resolved);
  CHECK_EQ(state(3, 100), LookupState::unresolved);
  CHECK_EQ(state(3, 101), LookupState::resolved);
  CHECK_EQ(state(5, 101), LookupState::unresolved);
  // The first index of an extension cannot reach beyond the table.
  change(resolver, {{table, addresses_from(0, 5), 100, 900}});
  CHECK_EQ(state(4, 100), LookupState::resolved);
  CHECK_EQ(state(5, 100), LookupState::unresolved);
}

TEST(lookup_tables_leave_a_transaction_with_too_many_accounts_unresolved) {
  std::mt19937 random(4);
  LookupResolver resolver;
  const StreamAccount table = account_of(1000);
  change(resolver, {{table, addresses_from(0, 256)}});
  const auto loaded = [&](size_t count) {
    return resolved(
        resolver, transaction_with_lookups({account_of(9)}, {{table, Bytes(count, 4), {}}}, random),
        5);
  };
  CHECK_EQ(loaded(255).state, LookupState::resolved);
  CHECK_EQ(loaded(255).writable, 255u);
  CHECK_EQ(loaded(256).state, LookupState::unresolved);
  CHECK(loaded(256).bytes.empty());
  CHECK(reports_of(resolver).empty());
}

TEST(lookup_tables_report_instructions_that_change_them) {
  std::mt19937 random(5);
  LookupResolver resolver;
  const StreamAccount table = account_of(1000);
  for (uint8_t kind = 0; kind < 7; kind++) {
    const Bytes bytes = table_instruction(table, kind, random);
    const uint64_t slot = 20u + kind;
    for (int repeated = 0; repeated < 3; repeated++)
      resolver.report_changes(bytes.data(), parsed(bytes), {}, slot);
    const std::vector<LookupReport> reports = reports_of(resolver);
    const bool is_change = kind < 5 && kind != 1;  // not a freeze
    CHECK_EQ(reports.size(), is_change ? 1u : 0u);
    if (reports.size() != 1) continue;
    CHECK(reports[0].table == table);
    CHECK_EQ(reports[0].slot, slot);
    CHECK_EQ(reports[0].is_change, 1u);
  }
  const Bytes other = transaction_of({account_of(1), table}, random);
  resolver.report_changes(other.data(), parsed(other), {}, 60);
  CHECK(reports_of(resolver).empty());
  // The table itself may be a loaded account.
  Bytes loading = table_instruction(account_of(2), 2, random);
  loading[loading.size() - 7] = 4;  // second loaded address
  const Accounts addresses{account_of(70), account_of(71)};
  Bytes flat;
  for (const StreamAccount& one : addresses) flat.insert(flat.end(), one.begin(), one.end());
  resolver.report_changes(loading.data(), parsed(loading),
                          {LookupState::resolved, 2, 0, {flat.data(), flat.size()}}, 61);
  const std::vector<LookupReport> reports = reports_of(resolver);
  CHECK_EQ(reports.size(), 1u);
  if (reports.size() == 1) CHECK(reports[0].table == account_of(71));
}

TEST(lookup_tables_count_reports_that_find_the_ring_full) {
  std::mt19937 random(6);
  LookupResolver resolver;
  for (uint32_t i = 0; i < 1100; i++)
    resolved(resolver,
             transaction_with_lookups({account_of(9)}, {{account_of(i), {0}, {}}}, random), 5);
  CHECK_EQ(reports_of(resolver).size(), 1024u);
  CHECK_EQ(resolver.reports_lost(), 76u);
  // A lost report comes again with the next transaction.
  resolved(resolver,
           transaction_with_lookups({account_of(9)}, {{account_of(1099), {0}, {}}}, random), 5);
  CHECK_EQ(reports_of(resolver).size(), 1u);
}

TEST(lookup_tables_evict_what_was_not_used_for_longest) {
  std::mt19937 random(7);
  LookupResolver resolver;
  for (uint32_t first = 0; first < kLookupTablesMax; first += 256) {
    std::vector<TableChange> changes(256);
    for (uint32_t i = 0; i < 256; i++)
      changes[i] = {account_of(first + i), addresses_from(0, 1), 0, 0, 10 + first};
    change(resolver, changes);
  }
  CHECK_EQ(resolver.counts().tables, kLookupTablesMax);
  // The oldest table is in use.
  const auto state = [&](uint32_t table) {
    return resolved(
               resolver,
               transaction_with_lookups({account_of(9)}, {{account_of(table), {0}, {}}}, random),
               1'000'000)
        .state;
  };
  CHECK_EQ(state(0), LookupState::resolved);
  change(resolver, {{account_of(70'000), addresses_from(0, 1), 0, 0, 900'000}});
  CHECK_EQ(resolver.counts().tables, kLookupTablesMax / 8 * 7);
  CHECK_EQ(resolver.counts().evicted, kLookupTablesMax / 8 + 1);
  CHECK_EQ(state(0), LookupState::resolved);
  CHECK_EQ(state(1), LookupState::unresolved);
  CHECK_EQ(state(16'383), LookupState::resolved);
  CHECK_EQ(state(70'000), LookupState::resolved);
  // Addresses are bounded too.
  for (uint32_t first = 0; first < 5000; first += 200) {
    std::vector<TableChange> changes(200);
    for (uint32_t i = 0; i < 200; i++)
      changes[i] = {account_of(100'000 + first + i), addresses_from(0, 256), 0, 0, 2'000'000};
    change(resolver, changes);
    CHECK(resolver.counts().addresses <= kLookupAddressesMax);
  }
}

TEST(lookup_tables_refuse_malformed_changes) {
  const auto error_of = [](const Bytes& bytes) {
    LookupTableStore store;
    std::string error = store.apply(bytes.data(), bytes.size());
    CHECK_EQ(store.counts().tables, 0u);
    return error;
  };
  const Bytes valid = lookup_changes(
      {{account_of(1), addresses_from(0, 2)}, {.table = account_of(2), .is_removal = true}});
  for (size_t length = 0; length < valid.size(); length++)
    CHECK(!error_of({valid.begin(), valid.begin() + static_cast<long>(length)}).empty());
  Bytes longer = valid;
  longer.push_back(0);
  CHECK_EQ(error_of(longer), "lookup tables: expected 184 bytes, got 185");
  CHECK_EQ(error_of(lookup_changes({{account_of(1), addresses_from(0, 257)}})),
           "lookup tables: expected at most 256 addresses in a table, got 257");
  CHECK_EQ(error_of(lookup_changes(std::vector<TableChange>(257))),
           "lookup tables: expected at most 256 changes, got 257");
}

TEST(lookup_tables_and_filters_match_a_simple_model) {
  std::mt19937 random(8);
  for (int round = 0; round < 40; round++) {
    LookupResolver resolver;
    TableModel model;
    std::vector<StreamFilter> filters(1 + random() % 20);
    for (uint16_t i = 0; i < filters.size(); i++)
      filters[i] = {.id = i,
                    .include = some_accounts(random, 3),
                    .exclude = some_accounts(random, 1),
                    .require = some_accounts(random, 2)};
    const auto index = index_of(filter_table(filters));
    for (int step = 0; step < 120; step++) {
      const uint64_t slot = 100 + random() % 8;
      if (random() % 4 == 0) change_some_table(resolver, model, slot, random);
      const std::vector<TableLookup> lookups = some_lookups(random);
      const Accounts keys{account_of(static_cast<uint32_t>(random() % 40)), account_of(50)};
      const Bytes bytes = transaction_with_lookups(keys, lookups, random);
      TableModel::Result expected = model.load(lookups, slot);
      const LoadedAddresses loaded = resolved(resolver, bytes, slot);
      CHECK(accounts_in(loaded.bytes) == expected.loaded);
      CHECK_EQ(loaded.state, lookups.empty()            ? LookupState::none
                             : expected.missing.empty() ? LookupState::resolved
                                                        : LookupState::unresolved);
      for (const LookupReport& report : reports_of(resolver))
        CHECK(expected.missing.contains(report.table));
      std::vector<uint16_t> matched, wanted;
      index->match(bytes.data(), parsed(bytes), {0, loaded.bytes}, matched);
      std::sort(matched.begin(), matched.end());
      expected.loaded.insert(expected.loaded.end(), keys.begin(), keys.end());
      for (const StreamFilter& filter : filters)
        if (matches_alone(filter, expected.loaded)) wanted.push_back(filter.id);
      CHECK(matched == wanted);
    }
  }
}
