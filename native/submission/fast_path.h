// Fast path: sends a transaction to the partners before JavaScript has read its request.
//
// JavaScript decides; this thread repeats a decision. When a request with sendTransaction was
// accepted, JavaScript teaches its pattern (request_pattern.h) to the caller's connection, and
// lends idle connections to partners. If the next request on the connection repeats the pattern,
// the thread checks its transaction (form, tip, duplicates, signatures) and writes it to the lent
// connections. It only looks at the bytes: JavaScript reads the same bytes as always, claims what
// was sent, and does everything else. What the thread does not know completely it leaves to
// JavaScript.
//
// Transactions that arrive over QUIC are read from a channel (offer_channel.h) before JavaScript
// reads them. Those from connections with an accepted submission are sent likewise.
//
// Transactions that arrive in another way are sent on JavaScript's thread by send_now(), when
// JavaScript has decided everything but the checks of the bytes.
//
// A request is at the front of the socket's buffer if JavaScript has read exactly the bytes before
// it. JavaScript says how many these are, and the kernel's counters confirm it after the look. So
// bytes inside of a body are never taken for a request.
//
// Sockets are duplicated: when JavaScript closes its own descriptor, this one still belongs to the
// same connection. One thread runs; all public functions are called on JavaScript's thread. In a
// simulation no thread runs: look() and conclude() do its work.
//
// fast_path.cc has what JavaScript calls, fast_path_thread.cc the thread, fast_path_offers.cc the
// offers of the channel, and fast_path_send.cc the checks and sends of all.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/thread.h"
#include "submission/fast_path_sockets.h"
#include "submission/offers.h"
#include "submission/recent_texts.h"
#include "submission/request_pattern.h"
#include "submission/taken_request.h"
#include "transaction/inspector.h"
#include "verify/signature_verifier.h"

namespace shredway {

class MemoryStreams;

inline constexpr size_t kFastPathConnectionsMax = 16'384;
inline constexpr size_t kFastPathKeysMax = 65'536;
inline constexpr size_t kFastPathLoansMax = 4096;
// Requests that were sent and not claimed, and as many offers: JavaScript is late, and would have
// refused more. A QUIC process that an attacker controls cannot use the share of requests.
inline constexpr uint32_t kFastPathUnclaimedMax = 64;
inline constexpr size_t kFastPathRequestBytesMax = 16'384;
// Ends the thread's wait.
inline constexpr uint64_t kFastPathWakeEvent = ~uint64_t{0};
// An offer has arrived.
inline constexpr uint64_t kFastPathOfferEvent = kFastPathWakeEvent - 1;

// A partner's request around the id and the transaction.
struct FastRoute {
  std::string head;          // up to the digits of Content-Length
  std::string before_id;     // first part of the body
  std::string before_text;   // between the id and the transaction's text
  std::string after_text;    // last part of the body
  uint64_t minimum_tip = 0;  // lamports
  uint32_t bytes_max = 0;    // of a transaction
};

struct FastPathCounts {
  uint64_t taken = 0;      // requests and offers that were sent on at least one route
  uint64_t direct = 0;     // transactions that send_now() sent on at least one route
  uint64_t different = 0;  // requests that do not repeat the pattern
  uint64_t rejected = 0;   // transactions that JavaScript has to refuse, or to look at
  uint64_t late = 0;       // JavaScript was first
  uint32_t connections = 0;
  uint32_t loans = 0;
  uint32_t unclaimed = 0;
};

class FastPath {
 public:
  // Returns nullptr and fills `error` if the system refuses the thread or a descriptor. It uses at
  // most a quarter of the descriptors that the process may have now.
  static std::unique_ptr<FastPath> open(std::string& error);
  // Without a thread; its connections are those of `streams`, which must live longer.
  static std::unique_ptr<FastPath> simulate(MemoryStreams& streams);
  ~FastPath();
  FastPath(const FastPath&) = delete;
  FastPath& operator=(const FastPath&) = delete;

  // ---- what may be sent ----
  // `inspector` nullptr: nothing.
  void set_rules(std::shared_ptr<const TransactionInspector> inspector, uint64_t minimum_tip);
  // Calls that the key may still make; those that are not claimed yet are deducted.
  void allow(uint32_t key, uint32_t calls);
  // The transaction is known: it is not sent again.
  void note(std::string_view signature);
  // Checks a transaction and sends it on the routes that it meets, like the thread. JavaScript has
  // checked key and limits. Nothing: it was not sent, and JavaScript has to refuse it or to look at
  // it.
  std::optional<TakenRequest> send_now(std::span<const uint8_t> wire);

  // ---- callers' connections ----
  // Returns its number, or nothing if there are too many or the system refuses a descriptor.
  std::optional<uint32_t> watch(int fd);
  // The next requests may repeat this one, until `until_ns` (CLOCK_MONOTONIC). False: it has
  // another form.
  bool learn(uint32_t connection, std::string_view head, std::string_view body,
             TransactionTextEncoding encoding, uint32_t key, uint64_t until_ns);
  // Nothing more is taken before the next lesson; a check under way ends without a send.
  void forget(uint32_t connection);
  void forget_all();
  // JavaScript has read `received` bytes (modulo 2^32) of the connection, and its next request may
  // be taken.
  void arm(uint32_t connection, uint32_t received);
  struct Claim {
    TakenRequest taken;
    bool is_same = false;  // it was sent for what JavaScript has read
  };
  // Returns the sends for the request that JavaScript handles now, at most once for each request.
  // Afterwards it is not taken any more. `begin`: the bytes of the connection before the request
  // (modulo 2^32).
  std::optional<Claim> claim(uint32_t connection, uint32_t begin);
  // Whether a request since the last call did not repeat the pattern.
  bool take_difference(uint32_t connection);
  // Whether `claim` would return sends for this request; never stops a check.
  bool is_taken(uint32_t connection, uint32_t begin);
  // Claim before. The descriptor is closed.
  void unwatch(uint32_t connection);

  // ---- offers of the QUIC process ----
  // Opens the channel and returns the descriptor of the process, which the caller closes. Nothing:
  // the system refuses it. End the previous channel before.
  std::optional<int> open_offers();
  // Until `until_ns` (CLOCK_MONOTONIC), offers of this connection may be sent.
  void watch_offers(uint64_t connection, uint32_t key, uint64_t until_ns);
  // A check under way ends without a send.
  void forget_offers(uint64_t connection);
  // Returns the sends for the offer with this number, at most once. Afterwards it is not taken any
  // more. `wire`: the transaction that JavaScript has read.
  std::optional<Claim> claim_offer(uint64_t sequence, std::span<const uint8_t> wire);
  // Whether `claim_offer` would return something; never stops a check.
  bool is_offer_taken(uint64_t sequence);
  // Closes the channel. Returns what was not claimed, one for each call.
  std::optional<TakenRequest> end_offers();

  // ---- connections to partners ----
  bool set_route(uint32_t route, FastRoute settings);
  // An idle, connected socket; until `until_ns` one request may be written to it. Nothing: too
  // many.
  std::optional<uint32_t> lend(uint32_t route, int fd, uint64_t until_ns);
  // Lends it again after `reclaim`, or after its request was answered.
  void lend_again(uint32_t loan, uint64_t until_ns);
  // False: a request was written to it, which `claim` returns or has returned.
  bool reclaim(uint32_t loan);
  // Closes the descriptor.
  void release(uint32_t loan);

  FastPathCounts counts();
  void stop();  // idempotent

  // ---- in a simulation: the work of the thread in two steps ----
  // Looks at a request until the decision to send it. False: none is to be looked at. Conclude
  // before the next look.
  bool look(MemoryStreams& streams);
  // Sends what was looked at, or leaves it to JavaScript.
  void conclude();

 private:
  enum class Stage : uint8_t { idle, armed, checking, sending, sent };
  struct Connection {
    int fd = -1;
    bool is_open = false;
    bool is_in_use = false;  // by the thread, which closes it then
    Stage stage = Stage::idle;
    bool is_different = false;  // a request did not repeat the pattern
    uint32_t generation = 0;    // of the armed request
    uint32_t received = 0;
    uint32_t key = 0;
    uint64_t until_ns = 0;
    std::shared_ptr<const RequestPattern> pattern;
    TakenRequest taken;
    uint32_t taken_key = 0;  // of `taken`; `key` may be that of another request by now
  };
  // kept: JavaScript uses it, or it is broken.
  enum class LoanState : uint8_t { free, writing, written, kept };
  struct Loan {
    int fd = -1;
    LoanState state = LoanState::free;
    uint32_t route = 0;
    uint64_t until_ns = 0;
  };
  struct Key {
    uint32_t left = 0;
    uint32_t unclaimed = 0;
  };
  struct Route {
    std::shared_ptr<const FastRoute> settings;
    std::vector<uint32_t> loans;  // free ones, the most recently used last
    uint32_t next_id = 0;
  };
  // A transaction while it is checked without the lock.
  struct Candidate {
    uint64_t begun_ns = 0;
    std::shared_ptr<const TransactionInspector> inspector;
    uint64_t minimum_tip = 0;
    std::span<const uint8_t> wire;
    uint64_t tip = 0;
    std::array<char, 88> signature;
    size_t signature_length = 0;
  };
  // A request on a caller's connection while it is looked at.
  struct Look {
    uint32_t connection = 0;
    uint32_t generation = 0;
    uint32_t received = 0;
    int fd = -1;
    uint32_t key = 0;
    std::shared_ptr<const RequestPattern> pattern;
    Candidate candidate;
  };
  struct Writing {
    uint32_t route;
    uint32_t loan;
    uint32_t id;
    int fd;
    std::shared_ptr<const FastRoute> settings;
    uint64_t sent_ns;
  };
  // Memory for the sends of one thread.
  struct Workspace {
    VerifyingKeys verifying_keys;
    std::vector<char> request = std::vector<char>(kFastPathRequestBytesMax);
    std::vector<Writing> writings;
  };

  explicit FastPath(FastPathSockets& sockets);
  int duplicate_locked(int fd);
  // A request or an offer that is sent uses one call of the key, until JavaScript claims it.
  void add_unclaimed_locked(uint32_t key);
  void remove_unclaimed_locked(uint32_t key);
  // nothing: the request is not complete, or JavaScript has read from it; different: it does not
  // repeat the pattern; rejected: JavaScript has to refuse it, or to look at it.
  enum class Finding : uint8_t { nothing, different, rejected, valid };

  // An offer while it is looked at.
  struct OfferLook {
    uint32_t key = 0;
    Candidate candidate;
  };

  void run();
  void handle_offer();
  bool begin_offer(OfferLook& look);
  // Reserves the connections to write to; false: it is left to JavaScript.
  bool reserve_offer(const OfferLook& look, bool is_valid);
  void finish_offer(const OfferLook& look);
  void handle(uint32_t connection);
  bool begin(Look& look);
  Finding check(Look& look);
  void conclude(const Look& look, Finding finding);
  bool is_at_front(const Look& look);
  bool decode(std::string_view text, TransactionTextEncoding encoding, Candidate& candidate);
  // Reserves the connections to write to; false: it is left to JavaScript.
  bool reserve(const Look& look);
  void finish(const Look& look);
  void end(const Look& look, Finding finding);

  // Whether anything may be sent now; takes the rules over.
  bool begin_candidate_locked(Candidate& candidate);
  // The checks but for that of the signatures; sets tip and signature.
  static bool inspect(Candidate& candidate);
  static bool has_valid_signatures(const Candidate& candidate, Workspace& workspace);
  // All checks, but for repeated transactions without that of the signatures.
  bool is_new_and_valid(Candidate& candidate, Workspace& workspace);
  bool is_known_locked(const Candidate& candidate) const;
  // Fills the workspace's writings and remembers the transaction; false: no connection is free, the
  // transaction is known, or the rules have changed.
  bool reserve_locked(const Candidate& candidate, Workspace& workspace);
  void write_all(const Candidate& candidate, Workspace& workspace);
  void write_one(const Candidate& candidate, std::vector<char>& buffer, Writing& writing);
  // The sends that the kernel took.
  TakenRequest settle_locked(const Candidate& candidate, const Workspace& workspace);
  bool has_free_loan_locked(uint64_t at_ns) const;
  std::optional<uint32_t> pop_loan_locked(Route& route, uint64_t at_ns);
  static void forget_locked(Connection& connection);
  void take_back_locked(uint32_t number);
  void close_connection_locked(uint32_t number);

  FastPathSockets& sockets_;
  const uint64_t descriptors_max_;
  int epoll_ = -1;
  int wake_ = -1;
  Thread thread_;
  Workspace callers_workspace_;  // used by JavaScript's thread alone

  // Used by the thread alone.
  std::vector<char> bytes_ = std::vector<char>(kFastPathRequestBytesMax);
  std::vector<uint8_t> wire_ = std::vector<uint8_t>(kTransactionV1BytesMax);
  Workspace workspace_;
  struct Held {
    Look look;
    Finding finding = Finding::nothing;
  };
  std::optional<Held> held_;  // in a simulation

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  bool is_stopped_ = false;
  std::shared_ptr<const TransactionInspector> inspector_;
  uint64_t minimum_tip_ = 0;
  RecentTexts recent_;
  std::vector<Connection> connections_;
  std::vector<uint32_t> free_connections_;
  std::vector<Key> keys_;
  std::array<Route, kFastPathRoutesMax> routes_;
  std::vector<Loan> loans_;
  std::vector<uint32_t> free_loans_;
  int offers_fd_ = -1;
  Offers offers_;
  FastPathCounts counts_;
};

}  // namespace shredway
