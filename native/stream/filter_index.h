// Filter index: the filters of all subscribers, compiled together.
//
// The control plane encodes them as one table; the deshred thread matches each transaction once
// against the whole index. A hash table leads from an account to the filters that name it, so the
// cost of a transaction grows with its accounts and with the filters that they touch, not with the
// number of subscribers. Strangers choose the accounts, so hashing is keyed.
//
//   header   magic "SWF1", u32 filter count, u8 tiers with subscribers of entries, u8 tiers whose
//            history is recorded, u16 replay count
//   filter   u16 id, u8 tier, u8 vote rule (0 any, 1 no votes, 2 votes only), u32 included
//   accounts,
//            u32 excluded accounts, u32 required accounts, u8 1: with a signature, 7 zero bytes,
//            then the signature (64 bytes, if any) and the accounts (32 bytes each)
//   replay   u16 id (not 0; different modulo 64), u8 tier, u8 zero, u32 filter count, u64 first
//            slot, then the ids of the subscriber's filters (u16 each)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crypto/sip_hash.h"
#include "transaction/wire.h"

namespace shredway {

inline constexpr size_t kStreamTiersMax = 8;
inline constexpr size_t kStreamFiltersMax = 4096;
// Ids are below it. A filter and the one that replaces it have different ids at the same time.
inline constexpr size_t kStreamFilterIds = 2 * kStreamFiltersMax;
inline constexpr size_t kStreamAccountsMax = 50'000;
inline constexpr size_t kStreamReplaysMax = 64;

// A subscriber that reads the history first.
struct ReplayRequest {
  uint16_t id;
  uint8_t tier;
  uint64_t from_slot;
  std::vector<uint16_t> filters;
};

class FilterIndex {
 public:
  // The tier whose filters count, and accounts that the transaction's own bytes do not contain.
  struct Scope {
    uint32_t tier;
    std::span<const uint8_t> loaded = {};  // addresses from lookup tables, as far as known
  };

  // Returns nullptr and fills `error` if the table is malformed or exceeds a limit.
  static std::unique_ptr<FilterIndex> parse(const uint8_t* table, size_t length,
                                            std::string& error);

  // Bits of the tiers with a filter, and of those with subscribers of entries.
  uint8_t transaction_tiers() const { return transaction_tiers_; }
  uint8_t entry_tiers() const { return entry_tiers_; }
  uint8_t history_tiers() const { return history_tiers_; }
  uint8_t tiers() const { return transaction_tiers_ | entry_tiers_ | history_tiers_; }
  const std::vector<ReplayRequest>& replays() const { return replays_; }
  // The filter ids of one tier.
  const std::vector<uint16_t>& ids_of(uint32_t tier) const { return ids_[tier]; }
  // Sets `out` to the ids of the tier's filters that the transaction matches, in no order. An
  // unknown loaded address matches no account. Uses scratch memory of the index: one thread. Bytes
  // may be hostile in every respect but their form.
  void match(const uint8_t* bytes, const Transaction& transaction, const Scope& scope,
             std::vector<uint16_t>& out);

 private:
  enum class VoteRule : uint8_t { any, no_votes, votes_only };
  enum class Role : uint8_t { include, exclude, require };
  using Account = std::array<uint8_t, kPublicKeyBytes>;
  struct Filter {
    uint16_t id;
    uint8_t tier;
    VoteRule vote;
    bool has_signature;
    bool has_include;
    uint32_t required;
    std::array<uint8_t, kTransactionSignatureBytes> signature;
    // State of the transaction that is being matched; valid if `turn` is the current one.
    uint64_t turn = 0;
    uint32_t required_found = 0;
    bool included = false;
    bool excluded = false;
  };
  struct Posting {
    uint32_t filter;
    Role role;
    bool operator==(const Posting&) const = default;
  };
  struct Place {
    Account account;
    uint64_t turn = 0;  // an account that a transaction repeats counts once
    std::vector<Posting> postings;
  };

  FilterIndex() : key_(random_hash_key()) {}
  void reserve(size_t accounts);
  const uint8_t* add_filter(const uint8_t* bytes);
  void add_replays(const uint8_t* at, uint32_t count);
  void add_account(const uint8_t* account, Posting posting);
  void file_filter(uint32_t number);
  size_t find(const uint8_t* account) const;
  Filter& touch(uint32_t number);
  void touch_accounts(std::span<const uint8_t> accounts, uint32_t tier);
  bool matches(const Filter& filter, bool is_vote) const;

  HashKey key_;
  uint64_t turn_ = 0;
  uint8_t transaction_tiers_ = 0;
  uint8_t entry_tiers_ = 0;
  uint8_t history_tiers_ = 0;
  std::vector<ReplayRequest> replays_;
  std::vector<Filter> filters_;
  std::vector<Place> places_;
  std::vector<uint32_t> slots_;  // open addressing: 1 + index in places_; 0: empty
  std::vector<uint32_t> touched_;
  // Filters by tier that need no account, and those with a signature.
  std::array<std::vector<uint32_t>, kStreamTiersMax> broad_;
  std::array<std::vector<uint32_t>, kStreamTiersMax> by_signature_;
  std::array<std::vector<uint16_t>, kStreamTiersMax> ids_;
};

}  // namespace shredway
