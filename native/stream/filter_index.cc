#include "stream/filter_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "shred/wire.h"
#include "transaction/vote.h"

namespace shredway {
namespace {

constexpr size_t kFilterHeaderBytes = 12;
constexpr size_t kFilterBytes = 24;  // without signature and accounts
constexpr size_t kReplayBytes = 16;  // without ids
constexpr char kFilterMagic[] = "SWF1";

// The fields of an encoded filter.
struct EncodedFilter {
  uint16_t id;
  uint8_t tier, vote;
  uint32_t included, excluded, required;
  bool has_signature;

  explicit EncodedFilter(const uint8_t* bytes)
      : id(load_u16(bytes)),
        tier(bytes[2]),
        vote(bytes[3]),
        included(load_u32(bytes + 4)),
        excluded(load_u32(bytes + 8)),
        required(load_u32(bytes + 12)),
        has_signature(bytes[16] != 0) {}
  uint64_t accounts() const { return uint64_t{included} + excluded + required; }
  uint64_t bytes() const {
    return kFilterBytes + (has_signature ? kTransactionSignatureBytes : 0) +
           accounts() * kPublicKeyBytes;
  }
};

std::string too_many(const char* what, size_t max, uint64_t got) {
  return std::string("stream filters: expected at most ") + std::to_string(max) + " " + what +
         ", got " + std::to_string(got);
}

// Returns an error text, empty if the filter is valid; `accounts` is the sum so far.
std::string check_filter(const uint8_t* bytes, size_t length, uint64_t& accounts) {
  if (length < kFilterBytes) return "stream filters: the table ends inside a filter";
  const EncodedFilter filter(bytes);
  if (filter.id >= kStreamFilterIds)
    return "stream filters: expected an id below " + std::to_string(kStreamFilterIds) + ", got " +
           std::to_string(filter.id);
  if (filter.tier >= kStreamTiersMax || filter.vote > 2 || bytes[16] > 1)
    return "stream filters: filter " + std::to_string(filter.id) + " has an invalid field";
  accounts += filter.accounts();
  if (accounts > kStreamAccountsMax) return too_many("accounts", kStreamAccountsMax, accounts);
  if (length < filter.bytes()) return "stream filters: the table ends inside a filter";
  return "";
}

// Moves `at` to the end of the replays.
std::string check_replays(const uint8_t* table, size_t length, size_t& at) {
  const uint16_t count = load_u16(table + 10);
  if (count > kStreamReplaysMax) return too_many("replays", kStreamReplaysMax, count);
  std::vector<bool> used(kStreamReplaysMax);
  for (uint32_t i = 0; i < count; i++) {
    if (length - at < kReplayBytes) return "stream filters: the table ends inside a replay";
    const uint16_t id = load_u16(table + at);
    const uint32_t filters = load_u32(table + at + 4);
    if (id == 0 || table[at + 2] >= kStreamTiersMax || used[id % kStreamReplaysMax] ||
        !(table[9] >> table[at + 2] & 1))
      return "stream filters: replay " + std::to_string(id) + " has an invalid field";
    used[id % kStreamReplaysMax] = true;
    at += kReplayBytes;
    if (filters > kStreamFiltersMax) return too_many("filters", kStreamFiltersMax, filters);
    if (length - at < size_t{filters} * 2) return "stream filters: the table ends inside a replay";
    for (uint32_t j = 0; j < filters; j++, at += 2)
      if (load_u16(table + at) >= kStreamFilterIds)
        return "stream filters: replay " + std::to_string(id) + " has an invalid filter";
  }
  return "";
}

std::string check_filters(const uint8_t* table, size_t length, uint64_t& accounts) {
  if (length < kFilterHeaderBytes || std::memcmp(table, kFilterMagic, 4) != 0)
    return "stream filters: expected 12 header bytes that begin with SWF1, got " +
           std::to_string(length) + " bytes";
  const uint32_t count = load_u32(table + 4);
  if (count > kStreamFiltersMax) return too_many("filters", kStreamFiltersMax, count);
  std::vector<bool> used(kStreamFilterIds);
  size_t at = kFilterHeaderBytes;
  for (uint32_t i = 0; i < count; i++) {
    std::string error = check_filter(table + at, length - at, accounts);
    if (!error.empty()) return error;
    const EncodedFilter filter(table + at);
    if (used[filter.id])
      return "stream filters: id " + std::to_string(filter.id) + " occurs more than once";
    used[filter.id] = true;
    at += filter.bytes();
  }
  std::string error = check_replays(table, length, at);
  if (!error.empty()) return error;
  if (at != length)
    return "stream filters: expected " + std::to_string(at) + " bytes, got " +
           std::to_string(length);
  return "";
}

}  // namespace

std::unique_ptr<FilterIndex> FilterIndex::parse(const uint8_t* table, size_t length,
                                                std::string& error) {
  uint64_t accounts = 0;
  error = check_filters(table, length, accounts);
  if (!error.empty()) return nullptr;
  std::unique_ptr<FilterIndex> index(new FilterIndex());
  index->entry_tiers_ = table[8];
  index->reserve(accounts);
  const uint32_t count = load_u32(table + 4);
  const uint8_t* at = table + kFilterHeaderBytes;
  for (uint32_t i = 0; i < count; i++) at = index->add_filter(at);
  index->history_tiers_ = table[9];
  index->add_replays(at, load_u16(table + 10));
  return index;
}

void FilterIndex::add_replays(const uint8_t* at, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    ReplayRequest& replay = replays_.emplace_back();
    replay.id = load_u16(at);
    replay.tier = at[2];
    replay.from_slot = load_u64(at + 8);
    replay.filters.resize(load_u32(at + 4));
    at += kReplayBytes;
    for (uint16_t& id : replay.filters) {
      id = load_u16(at);
      at += 2;
    }
  }
}

void FilterIndex::reserve(size_t accounts) {
  slots_.resize(std::bit_ceil(2 * accounts + 1));
  places_.reserve(accounts);
}

// Returns the first byte after the filter.
const uint8_t* FilterIndex::add_filter(const uint8_t* bytes) {
  const EncodedFilter encoded(bytes);
  const auto number = static_cast<uint32_t>(filters_.size());
  Filter filter{};
  filter.id = encoded.id;
  filter.tier = encoded.tier;
  filter.vote = static_cast<VoteRule>(encoded.vote);
  filter.has_signature = encoded.has_signature;
  filter.has_include = encoded.included > 0;
  filters_.push_back(filter);
  const uint8_t* at = bytes + kFilterBytes;
  if (encoded.has_signature) {
    std::memcpy(filters_.back().signature.data(), at, kTransactionSignatureBytes);
    at += kTransactionSignatureBytes;
  }
  const std::pair<uint32_t, Role> lists[] = {{encoded.included, Role::include},
                                             {encoded.excluded, Role::exclude},
                                             {encoded.required, Role::require}};
  for (const auto& [count, role] : lists)
    for (uint32_t i = 0; i < count; i++, at += kPublicKeyBytes) add_account(at, {number, role});
  file_filter(number);
  return at;
}

// An account that a list repeats counts once.
void FilterIndex::add_account(const uint8_t* account, Posting posting) {
  const size_t slot = find(account);
  if (slots_[slot] == 0) {
    places_.emplace_back();
    std::memcpy(places_.back().account.data(), account, kPublicKeyBytes);
    slots_[slot] = static_cast<uint32_t>(places_.size());
  }
  std::vector<Posting>& postings = places_[slots_[slot] - 1].postings;
  const auto is_other = [&](const Posting& one) { return one.filter != posting.filter; };
  const auto end = std::find_if(postings.rbegin(), postings.rend(), is_other);
  if (std::find(postings.rbegin(), end, posting) != end) return;
  postings.push_back(posting);
  if (posting.role == Role::require) filters_[posting.filter].required++;
}

void FilterIndex::file_filter(uint32_t number) {
  const Filter& filter = filters_[number];
  transaction_tiers_ |= static_cast<uint8_t>(1u << filter.tier);
  ids_[filter.tier].push_back(filter.id);
  if (filter.has_signature) by_signature_[filter.tier].push_back(number);
  else if (!filter.has_include && filter.required == 0) broad_[filter.tier].push_back(number);
}

// The slot of the account, or the empty slot where it belongs.
size_t FilterIndex::find(const uint8_t* account) const {
  const size_t last = slots_.size() - 1;
  size_t slot = sip_hash(account, kPublicKeyBytes, key_) & last;
  while (slots_[slot] != 0 &&
         std::memcmp(places_[slots_[slot] - 1].account.data(), account, kPublicKeyBytes) != 0)
    slot = (slot + 1) & last;
  return slot;
}

FilterIndex::Filter& FilterIndex::touch(uint32_t number) {
  Filter& filter = filters_[number];
  if (filter.turn == turn_) return filter;
  filter.turn = turn_;
  filter.required_found = 0;
  filter.included = filter.excluded = false;
  touched_.push_back(number);
  return filter;
}

void FilterIndex::touch_accounts(std::span<const uint8_t> accounts, uint32_t tier) {
  for (size_t at = 0; at < accounts.size(); at += kPublicKeyBytes) {
    const size_t slot = find(&accounts[at]);
    if (slots_[slot] == 0) continue;
    Place& place = places_[slots_[slot] - 1];
    if (place.turn == turn_) continue;
    place.turn = turn_;
    for (const Posting& posting : place.postings) {
      if (filters_[posting.filter].tier != tier) continue;
      Filter& filter = touch(posting.filter);
      if (posting.role == Role::include) filter.included = true;
      else if (posting.role == Role::exclude) filter.excluded = true;
      else filter.required_found++;
    }
  }
}

bool FilterIndex::matches(const Filter& filter, bool is_vote) const {
  if (filter.vote == VoteRule::no_votes && is_vote) return false;
  if (filter.vote == VoteRule::votes_only && !is_vote) return false;
  if (filter.turn != turn_) return !filter.has_include && filter.required == 0;
  return !filter.excluded && (filter.included || !filter.has_include) &&
         filter.required_found == filter.required;
}

void FilterIndex::match(const uint8_t* bytes, const Transaction& transaction, const Scope& scope,
                        std::vector<uint16_t>& out) {
  const uint32_t tier = scope.tier;
  out.clear();
  if (!(transaction_tiers_ >> tier & 1) || transaction.signature_count == 0) return;
  turn_++;
  touched_.clear();
  if (!places_.empty()) {
    touch_accounts(
        {bytes + transaction.keys_begin, size_t{transaction.key_count} * kPublicKeyBytes}, tier);
    touch_accounts(scope.loaded, tier);
  }
  const bool is_vote = is_simple_vote(bytes, transaction);
  const auto add = [&](const Filter& filter) {
    if (matches(filter, is_vote)) out.push_back(filter.id);
  };
  for (const uint32_t number : broad_[tier]) add(filters_[number]);
  for (const uint32_t number : touched_) {
    const Filter& filter = filters_[number];
    if (!filter.has_signature && (filter.has_include || filter.required > 0)) add(filter);
  }
  const uint8_t* signature = bytes + transaction.signatures_begin;
  for (const uint32_t number : by_signature_[tier]) {
    const Filter& filter = filters_[number];
    if (std::memcmp(filter.signature.data(), signature, kTransactionSignatureBytes) == 0)
      add(filter);
  }
}

}  // namespace shredway
