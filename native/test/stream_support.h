// Support for tests of streams: encoded filters, transactions with chosen accounts, and a reader of
// drained messages.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <span>

#include "check.h"
#include "stream/filter_index.h"
#include "stream/stream_ring.h"
#include "support.h"

namespace shredway::test {

using StreamAccount = std::array<uint8_t, kPublicKeyBytes>;

struct StreamFilter {
  uint16_t id = 0;
  uint8_t tier = 0;
  uint8_t vote = 0;  // 0 any, 1 no votes, 2 votes only
  std::vector<StreamAccount> include = {}, exclude = {}, require = {};
  std::optional<std::array<uint8_t, kTransactionSignatureBytes>> signature = {};
};

inline Transaction parsed(const Bytes& bytes) {
  Transaction transaction;
  CHECK(parse_transaction(bytes.data(), bytes.size(), transaction) == ParseResult::complete);
  return transaction;
}

inline Bytes filter_table(const std::vector<StreamFilter>& filters, uint8_t entry_tiers = 0,
                          uint8_t history_tiers = 0,
                          const std::vector<ReplayRequest>& replays = {}) {
  Bytes table{'S', 'W', 'F', '1'};
  append(table, static_cast<uint32_t>(filters.size()));
  table.push_back(entry_tiers);
  table.push_back(history_tiers);
  append(table, static_cast<uint16_t>(replays.size()));
  for (const StreamFilter& filter : filters) {
    append(table, filter.id);
    table.push_back(filter.tier);
    table.push_back(filter.vote);
    for (const auto* list : {&filter.include, &filter.exclude, &filter.require})
      append(table, static_cast<uint32_t>(list->size()));
    append(table, uint64_t{filter.signature ? 1u : 0u});
    if (filter.signature)
      table.insert(table.end(), filter.signature->begin(), filter.signature->end());
    for (const auto* list : {&filter.include, &filter.exclude, &filter.require})
      for (const StreamAccount& account : *list)
        table.insert(table.end(), account.begin(), account.end());
  }
  for (const ReplayRequest& replay : replays) {
    append(table, replay.id);
    append(table, uint16_t{replay.tier});
    append(table, static_cast<uint32_t>(replay.filters.size()));
    append(table, replay.from_slot);
    for (const uint16_t id : replay.filters) append(table, id);
  }
  return table;
}

inline std::unique_ptr<FilterIndex> index_of(const Bytes& table) {
  std::string error;
  auto index = FilterIndex::parse(table.data(), table.size(), error);
  CHECK_EQ(error, std::string());
  return index;
}

inline StreamAccount account_of(uint32_t number) {
  StreamAccount account{};
  std::memcpy(account.data(), &number, sizeof number);
  account[31] = 0x5a;
  return account;
}
inline StreamAccount vote_program() {
  return {0x07, 0x61, 0x48, 0x1d, 0x35, 0x74, 0x74, 0xbb, 0x7c, 0x4d, 0x76,
          0x24, 0xeb, 0xd3, 0xbd, 0xb3, 0xd8, 0x35, 0x5e, 0x73, 0xd1, 0x10,
          0x43, 0xfc, 0x0d, 0xa3, 0x53, 0x80, 0,    0,    0,    0};
}

// A legacy transaction with these accounts and one instruction of the last one.
inline Bytes transaction_of(const std::vector<StreamAccount>& accounts, std::mt19937& random) {
  Bytes out{1};
  for (size_t i = 0; i < kTransactionSignatureBytes; i++)
    out.push_back(static_cast<uint8_t>(random()));
  out.insert(out.end(), {1, 0, 0, static_cast<uint8_t>(accounts.size())});
  for (const StreamAccount& account : accounts)
    out.insert(out.end(), account.begin(), account.end());
  out.resize(out.size() + 32, 0xab);
  out.insert(out.end(), {1, static_cast<uint8_t>(accounts.size() - 1), 0, 0});
  return out;
}

struct TableLookup {
  StreamAccount table;
  Bytes writable, readonly;
};

// The same as version 0, with lookups.
inline Bytes transaction_with_lookups(const std::vector<StreamAccount>& accounts,
                                      const std::vector<TableLookup>& lookups,
                                      std::mt19937& random) {
  Bytes out = transaction_of(accounts, random);
  out.insert(out.begin() + 1 + kTransactionSignatureBytes, 0x80);
  out.push_back(static_cast<uint8_t>(lookups.size()));
  for (const TableLookup& lookup : lookups) {
    out.insert(out.end(), lookup.table.begin(), lookup.table.end());
    for (const Bytes* indexes : {&lookup.writable, &lookup.readonly}) {
      if (indexes->size() < 128) {
        out.push_back(static_cast<uint8_t>(indexes->size()));
      } else {
        out.push_back(static_cast<uint8_t>(indexes->size() | 0x80));
        out.push_back(static_cast<uint8_t>(indexes->size() >> 7));
      }
      out.insert(out.end(), indexes->begin(), indexes->end());
    }
  }
  return out;
}

struct TableChange {
  StreamAccount table;
  std::vector<StreamAccount> addresses = {};
  uint64_t extended_slot = 0;
  uint16_t extension_begin = 0;
  uint64_t used_slot = 0;
  bool is_removal = false;
};

inline Bytes lookup_changes(const std::vector<TableChange>& changes) {
  Bytes out{'S', 'W', 'L', '1'};
  append(out, static_cast<uint32_t>(changes.size()));
  for (const TableChange& change : changes) {
    out.insert(out.end(), change.table.begin(), change.table.end());
    append(out, change.used_slot);
    append(out, change.extended_slot);
    append(out, change.extension_begin);
    append(out, static_cast<uint16_t>(change.addresses.size()));
    append(out, uint32_t{change.is_removal ? 1u : 0u});
    for (const StreamAccount& account : change.addresses)
      out.insert(out.end(), account.begin(), account.end());
  }
  return out;
}

inline std::vector<StreamAccount> accounts_in(std::span<const uint8_t> bytes) {
  std::vector<StreamAccount> out(bytes.size() / kPublicKeyBytes);
  for (size_t i = 0; i < out.size(); i++)
    std::copy_n(&bytes[i * kPublicKeyBytes], kPublicKeyBytes, out[i].begin());
  return out;
}

struct StreamMessage {
  StreamMessageHead head;
  std::vector<uint16_t> filters;
  Bytes content;
  Bytes loaded;
};

// Messages of drained bytes.
inline std::vector<StreamMessage> messages_of(const Bytes& bytes) {
  std::vector<StreamMessage> out;
  for (size_t at = 0; at < bytes.size();) {
    StreamMessage& message = out.emplace_back();
    std::memcpy(&message.head, &bytes[at], sizeof message.head);
    const uint8_t* from = &bytes[at] + sizeof message.head;
    message.filters.resize(message.head.filter_count);
    if (!message.filters.empty())
      std::memcpy(message.filters.data(), from, 2 * message.filters.size());
    from += 2 * message.filters.size();
    message.content.assign(from, from + message.head.content_bytes);
    from += message.content.size();
    message.loaded.assign(from, from + kPublicKeyBytes * (size_t{message.head.loaded_writable} +
                                                          message.head.loaded_readonly));
    std::sort(message.filters.begin(), message.filters.end());
    CHECK(message.head.bytes % 8 == 0 && message.head.bytes > 0);
    if (message.head.bytes == 0) break;
    at += message.head.bytes;
  }
  return out;
}

}  // namespace shredway::test
