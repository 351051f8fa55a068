// The sends of the fast path: checks a transaction and writes it to connections that routes have
// lent.
//
// Used by the thread, and by JavaScript's thread, each with a workspace of its own.
#include <algorithm>
#include <charconv>

#include "submission/fast_path.h"
#include "system/base58.h"
#include "system/base64.h"

namespace shredway {
namespace {

// Other ids than those of JavaScript, which count from 1.
constexpr uint32_t kFirstId = 1'000'000'000;
constexpr uint32_t kIdsMax = 1'000'000'000;

// Appends to a buffer of fixed size; what does not fit sets `is_full`.
class Appender {
 public:
  explicit Appender(std::vector<char>& buffer) : buffer_(buffer) {}

  void add(std::string_view text) {
    if (char* place = take(text.size())) std::copy(text.begin(), text.end(), place);
  }
  void add_number(size_t number) {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    add({digits.data(), static_cast<size_t>(end - digits.data())});
  }
  // Space for `length` characters, or nullptr.
  char* take(size_t length) {
    is_full_ |= length > buffer_.size() - used_;
    if (is_full_) return nullptr;
    used_ += length;
    return buffer_.data() + used_ - length;
  }
  bool is_full() const { return is_full_; }
  size_t size() const { return used_; }

 private:
  std::vector<char>& buffer_;
  size_t used_ = 0;
  bool is_full_ = false;
};

size_t digits_of(size_t number) {
  size_t digits = 1;
  for (; number >= 10; number /= 10) digits++;
  return digits;
}

}  // namespace

std::optional<TakenRequest> FastPath::send_now(std::span<const uint8_t> wire) {
  Candidate candidate;
  candidate.wire = wire;
  {
    const std::scoped_lock lock(mutex_);
    if (!begin_candidate_locked(candidate)) return {};
  }
  if (!is_new_and_valid(candidate, callers_workspace_)) return {};
  {
    const std::scoped_lock lock(mutex_);
    if (!reserve_locked(candidate, callers_workspace_)) return {};
  }
  write_all(candidate, callers_workspace_);
  const std::scoped_lock lock(mutex_);
  TakenRequest taken = settle_locked(candidate, callers_workspace_);
  if (taken.send_count == 0) return {};
  counts_.direct++;
  return taken;
}

bool FastPath::begin_candidate_locked(Candidate& candidate) {
  if (is_stopped_ || !inspector_) return false;
  candidate.begun_ns = sockets_.now_ns();
  candidate.inspector = inspector_;
  candidate.minimum_tip = minimum_tip_;
  return has_free_loan_locked(candidate.begun_ns);
}

bool FastPath::has_free_loan_locked(uint64_t at_ns) const {
  for (const Route& route : routes_)
    for (const uint32_t loan : route.loans)
      if (loans_[loan].until_ns > at_ns) return true;
  return false;
}

bool FastPath::inspect(Candidate& candidate) {
  Transaction transaction;
  TransactionFacts facts;
  TransactionFault fault;
  const uint8_t* bytes = candidate.wire.data();
  const size_t length = candidate.wire.size();
  if (!candidate.inspector->inspect(bytes, length, transaction, facts, fault)) return false;
  candidate.tip = facts.tip_lamports;
  // JavaScript has more rules for those with a key that must be at the front.
  if (facts.tip_lamports < candidate.minimum_tip || facts.has_dont_front_key) return false;
  std::array<char, kBase58TextMax> signature;
  candidate.signature_length = base58_encode(bytes + transaction.signatures_begin,
                                             kTransactionSignatureBytes, signature.data());
  std::copy_n(signature.begin(), candidate.signature_length, candidate.signature.begin());
  return true;
}

bool FastPath::has_valid_signatures(const Candidate& candidate, Workspace& workspace) {
  return verify_signatures(candidate.wire.data(), candidate.wire.size(), workspace.verifying_keys);
}

bool FastPath::is_new_and_valid(Candidate& candidate, Workspace& workspace) {
  if (!inspect(candidate)) return false;
  {
    // Callers often repeat a transaction, and checking its signatures takes longest.
    const std::scoped_lock lock(mutex_);
    if (is_known_locked(candidate)) return false;
  }
  return has_valid_signatures(candidate, workspace);
}

bool FastPath::is_known_locked(const Candidate& candidate) const {
  return recent_.contains({candidate.signature.data(), candidate.signature_length});
}

bool FastPath::reserve_locked(const Candidate& candidate, Workspace& workspace) {
  auto& writings = workspace.writings;
  writings.clear();
  const bool is_current =
      !is_stopped_ && candidate.tip >= minimum_tip_ && inspector_ == candidate.inspector;
  if (!is_current || is_known_locked(candidate)) return false;
  for (uint32_t number = 0; number < kFastPathRoutesMax; number++) {
    Route& route = routes_[number];
    const auto& settings = route.settings;
    if (!settings || candidate.tip < settings->minimum_tip ||
        candidate.wire.size() > settings->bytes_max)
      continue;
    const auto loan = pop_loan_locked(route, candidate.begun_ns);
    if (!loan) continue;
    loans_[*loan].state = LoanState::writing;
    const uint32_t id = kFirstId + route.next_id++ % kIdsMax;
    writings.push_back({number, *loan, id, loans_[*loan].fd, settings, 0});
  }
  if (writings.empty()) return false;
  recent_.add({candidate.signature.data(), candidate.signature_length});
  return true;
}

std::optional<uint32_t> FastPath::pop_loan_locked(Route& route, uint64_t at_ns) {
  for (size_t i = route.loans.size(); i-- > 0;) {
    const uint32_t loan = route.loans[i];
    if (loans_[loan].until_ns <= at_ns) continue;
    route.loans.erase(route.loans.begin() + static_cast<std::ptrdiff_t>(i));
    return loan;
  }
  return {};
}

void FastPath::write_all(const Candidate& candidate, Workspace& workspace) {
  for (Writing& writing : workspace.writings) write_one(candidate, workspace.request, writing);
}

// `sent_ns` stays 0 if the kernel did not take the whole request: an idle connection always has
// space, so this one is broken, and its end is reported to JavaScript.
void FastPath::write_one(const Candidate& candidate, std::vector<char>& buffer, Writing& writing) {
  const FastRoute& route = *writing.settings;
  const size_t text_length = base64_text_length(candidate.wire.size());
  const size_t body_length = route.before_id.size() + digits_of(writing.id) +
                             route.before_text.size() + text_length + route.after_text.size();
  Appender request(buffer);
  request.add(route.head);
  request.add_number(body_length);
  request.add("\r\n\r\n");
  request.add(route.before_id);
  request.add_number(writing.id);
  request.add(route.before_text);
  if (char* text = request.take(text_length))
    base64_encode(candidate.wire.data(), candidate.wire.size(), text);
  request.add(route.after_text);
  if (!request.is_full()) {
    const ssize_t sent = sockets_.write(writing.fd, buffer.data(), request.size());
    if (sent == static_cast<ssize_t>(request.size())) writing.sent_ns = sockets_.now_ns();
  }
  if (writing.sent_ns == 0) sockets_.shut_down(writing.fd);
}

TakenRequest FastPath::settle_locked(const Candidate& candidate, const Workspace& workspace) {
  TakenRequest taken{};
  taken.taken_ns = candidate.begun_ns;
  taken.signature = candidate.signature;
  taken.signature_length = static_cast<uint32_t>(candidate.signature_length);
  for (const Writing& writing : workspace.writings) {
    Loan& loan = loans_[writing.loan];
    const bool is_sent = writing.sent_ns > 0;
    loan.state = is_sent ? LoanState::written : LoanState::kept;
    if (!is_sent) continue;
    taken.sends[taken.send_count++] = {writing.route, writing.loan, writing.id,
                                       static_cast<uint32_t>(candidate.wire.size()),
                                       writing.sent_ns};
  }
  if (taken.send_count > 0) taken.wire.assign(candidate.wire.begin(), candidate.wire.end());
  return taken;
}

}  // namespace shredway
