// Lookup resolver: the addresses that a transaction loads, as far as its tables are known.
//
// The deshred thread resolves with the tables that the control plane published last. It never waits
// and never allocates. Tables that are unknown or too short, and tables that a transaction is about
// to change, are reported to the control plane, which reads them from a node. Reports are bounded:
// a table is reported again only after some slots, and a report that finds the ring full is lost,
// which a later transaction repairs.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "stream/lookup_tables.h"
#include "system/spsc_ring.h"
#include "transaction/wire.h"

namespace shredway {

// A transaction with more accounts, its own keys included, cannot be executed.
inline constexpr size_t kTransactionAccountsMax = 256;

enum class LookupState : uint8_t {
  none,        // the transaction has no lookups
  resolved,    // all loaded addresses are known
  unresolved,  // at least one is unknown
};

struct LoadedAddresses {
  LookupState state = LookupState::none;
  uint16_t writable = 0, readonly = 0;
  // The known addresses, writable ones first, in the order of the transaction.
  std::span<const uint8_t> bytes = {};
};

// In the layout that the control plane reads.
struct LookupReport {
  PublicKey table;
  uint64_t slot;
  uint64_t is_change;  // 1: an instruction names the table; 0: a transaction needs it
};
static_assert(sizeof(LookupReport) == 48);

class LookupResolver {
 public:
  static constexpr size_t kReportsMax = 1024;

  LookupResolver();

  // ---- control thread ----

  // In the layout of lookup_tables.h. Returns an error text, empty on success.
  std::string change(const uint8_t* changes, size_t length);
  LookupTableCounts counts() const { return store_.counts(); }
  bool next_report(LookupReport& out) { return reports_.pop(out); }

  // ---- deshred thread ----

  // Puts published tables into force.
  void update();
  // The result is valid until the next call. Bytes may be hostile in every respect but their form.
  LoadedAddresses resolve(const uint8_t* bytes, const Transaction& transaction, uint64_t slot);
  // Reports the tables that instructions of the transaction create, extend, deactivate or close.
  void report_changes(const uint8_t* bytes, const Transaction& transaction,
                      const LoadedAddresses& loaded, uint64_t slot);

  // ---- any thread ----

  uint64_t transactions() const { return transactions_.load(std::memory_order_relaxed); }
  uint64_t unresolved() const { return unresolved_.load(std::memory_order_relaxed); }
  uint64_t reports_lost() const { return reports_lost_.load(std::memory_order_relaxed); }

 private:
  // Every lookup has a table and two counts.
  static constexpr size_t kLookupsMax = kTransactionBytesMax / (kPublicKeyBytes + 2);
  static constexpr size_t kReportedPlaces = 4096;
  static constexpr uint64_t kSlotsUntilRepeated = 8;

  struct Lookup {
    const uint8_t* key;
    const LookupTable* table;  // nullptr: unknown
    std::span<const uint8_t> writable, readonly;
    bool is_complete;
  };
  // When the table may be reported again.
  struct Reported {
    uint64_t hash = 0, next_use = 0, next_change = 0;
  };

  bool read_lookups(const uint8_t* bytes, const Transaction& transaction);
  uint16_t load(std::span<const uint8_t> Lookup::*indexes, size_t begin, uint64_t slot);
  void report(const uint8_t* table, uint64_t slot, bool is_change);

  LookupTableStore store_;  // control thread

  std::mutex mutex_;                               // held for moves of pointers only
  std::unique_ptr<const LookupTables> published_;  // nullptr: in force
  std::unique_ptr<const LookupTables> retired_;    // freed by the control thread
  std::atomic<bool> is_published_{false};

  std::unique_ptr<const LookupTables> tables_;  // in force; nullptr: none was published
  std::array<Lookup, kLookupsMax> lookups_;
  size_t lookup_count_ = 0;
  std::array<uint8_t, kTransactionAccountsMax * kPublicKeyBytes> loaded_;
  HashKey reported_key_;
  std::vector<Reported> reported_;
  SpscRing<LookupReport, kReportsMax> reports_;
  std::atomic<uint64_t> transactions_{0}, unresolved_{0}, reports_lost_{0};
};

}  // namespace shredway
