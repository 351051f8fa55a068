#include "stream/lookup_resolver.h"

#include <cstring>

#include "shred/wire.h"
#include "system/counter.h"
#include "transaction/instructions.h"

namespace shredway {
namespace {

// AddressLookupTab1e1111111111111111111111111
constexpr PublicKey kLookupTableProgram{
    0x02, 0x77, 0xa6, 0xaf, 0x97, 0x33, 0x9b, 0x7a, 0xc8, 0x8d, 0x18, 0x92, 0xc9, 0x04, 0x46, 0xf5,
    0x00, 0x02, 0x30, 0x92, 0x66, 0xf6, 0x2e, 0x53, 0xc1, 0x18, 0x24, 0x49, 0x82, 0x00, 0x00, 0x00};
// Its instructions: a u32, then fields. The table is the first account of each.
constexpr uint32_t kFreeze = 1;
constexpr uint32_t kInstructions = 5;  // create, freeze, extend, deactivate, close

}  // namespace

LookupResolver::LookupResolver() : reported_key_(random_hash_key()), reported_(kReportedPlaces) {}

// ---- control --------------------------------------------------------------------------------

std::string LookupResolver::change(const uint8_t* changes, size_t length) {
  std::string error = store_.apply(changes, length);
  if (!error.empty()) return error;
  std::unique_ptr<const LookupTables> next = store_.snapshot();
  std::unique_ptr<const LookupTables> retired;
  const std::lock_guard lock(mutex_);
  published_.swap(next);  // one that was never used is freed here, after the lock
  retired = std::move(retired_);
  is_published_.store(true, std::memory_order_release);
  return "";
}

// ---- the deshred thread ---------------------------------------------------------------------

// If the control thread holds the lock, the next turn gets the tables.
void LookupResolver::update() {
  if (!is_published_.load(std::memory_order_acquire)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  retired_ = std::move(tables_);  // empty before, because every publication takes it
  tables_ = std::move(published_);
  is_published_.store(false, std::memory_order_relaxed);
}

// Returns false if the transaction has more accounts than any that can be executed.
bool LookupResolver::read_lookups(const uint8_t* bytes, const Transaction& transaction) {
  lookup_count_ = 0;
  size_t total = transaction.key_count;
  size_t at = transaction.lookups_begin;
  for (size_t i = 0; i < transaction.lookup_count && i < kLookupsMax; i++) {
    Lookup& lookup = lookups_[lookup_count_++];
    lookup = {bytes + at, tables_ ? tables_->find(bytes + at) : nullptr, {}, {}, true};
    at += kPublicKeyBytes;
    for (auto* indexes : {&lookup.writable, &lookup.readonly}) {
      uint16_t count = 0;
      size_t used = 0;
      (void)parse_compact_u16(bytes + at, transaction.message_end - at, count, used);
      *indexes = {bytes + at + used, count};
      at += used + count;
      total += count;
    }
  }
  return total <= kTransactionAccountsMax;
}

// Appends the known addresses at `begin` and returns their number.
uint16_t LookupResolver::load(std::span<const uint8_t> Lookup::*indexes, size_t begin,
                              uint64_t slot) {
  uint16_t count = 0;
  for (size_t i = 0; i < lookup_count_; i++) {
    Lookup& lookup = lookups_[i];
    for (const uint8_t index : lookup.*indexes) {
      const uint8_t* address = lookup.table ? lookup.table->address(index, slot) : nullptr;
      if (!address) {
        lookup.is_complete = false;
        continue;
      }
      std::memcpy(&loaded_[(begin + count) * kPublicKeyBytes], address, kPublicKeyBytes);
      count++;
    }
  }
  return count;
}

LoadedAddresses LookupResolver::resolve(const uint8_t* bytes, const Transaction& transaction,
                                        uint64_t slot) {
  if (transaction.lookup_count == 0) return {};
  add_one(transactions_);
  LoadedAddresses out{.state = LookupState::unresolved};
  if (!read_lookups(bytes, transaction)) {
    add_one(unresolved_);
    return out;
  }
  out.writable = load(&Lookup::writable, 0, slot);
  out.readonly = load(&Lookup::readonly, out.writable, slot);
  out.bytes = {loaded_.data(), (size_t{out.writable} + out.readonly) * kPublicKeyBytes};
  out.state = LookupState::resolved;
  for (size_t i = 0; i < lookup_count_; i++) {
    const Lookup& lookup = lookups_[i];
    if (lookup.table) lookup.table->used_slot.store(slot, std::memory_order_relaxed);
    if (lookup.table && lookup.is_complete) continue;
    out.state = LookupState::unresolved;
    report(lookup.key, slot, false);
  }
  if (out.state == LookupState::unresolved) add_one(unresolved_);
  return out;
}

void LookupResolver::report_changes(const uint8_t* bytes, const Transaction& transaction,
                                    const LoadedAddresses& loaded, uint64_t slot) {
  const uint8_t* keys = bytes + transaction.keys_begin;
  size_t program = 0;
  while (program < transaction.key_count &&
         std::memcmp(keys + program * kPublicKeyBytes, kLookupTableProgram.data(),
                     kPublicKeyBytes) != 0)
    program++;
  if (program == transaction.key_count) return;
  InstructionWalk walk(bytes, transaction);
  for (Instruction one; walk.next(one);) {
    if (one.program != program || one.account_count == 0 || one.data_bytes < 4) continue;
    const uint32_t kind = load_u32(one.data);
    if (kind >= kInstructions || kind == kFreeze)
      continue;  // a frozen table has the same addresses
    const size_t place = one.accounts[0];
    const size_t after_keys = place - transaction.key_count;
    if (place < transaction.key_count) report(keys + place * kPublicKeyBytes, slot, true);
    else if (loaded.state == LookupState::resolved &&
             after_keys < loaded.bytes.size() / kPublicKeyBytes)
      report(&loaded.bytes[after_keys * kPublicKeyBytes], slot, true);
  }
}

void LookupResolver::report(const uint8_t* table, uint64_t slot, bool is_change) {
  const uint64_t hash = sip_hash(table, kPublicKeyBytes, reported_key_);
  Reported& reported = reported_[hash % kReportedPlaces];
  if (reported.hash != hash) reported = {hash, 0, 0};
  uint64_t& next = is_change ? reported.next_change : reported.next_use;
  if (slot < next) return;
  LookupReport report{{}, slot, is_change ? uint64_t{1} : 0};
  std::memcpy(report.table.data(), table, report.table.size());
  if (!reports_.push(report)) return add_one(reports_lost_);
  next = slot + (is_change ? 1 : kSlotsUntilRepeated);
}

}  // namespace shredway
