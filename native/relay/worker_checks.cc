// Worker: signature checks, the second pass over a batch.
//
// The first pass sends everything that needs no check. The unverified shreds of the batch form
// groups, one per Merkle root and signature; one check decides a whole group. Sources whose checks
// have not failed recently come first, then the signatures that most shreds have in common. All
// shreds that a check has verified are sent before the next check begins.
//
// A check takes about 20 to 50 us, so the number of failed checks is limited by batch and source:
//   - A source is `failing` after more than kFailuresTolerated failed checks in two seconds, and
//     every source is after as many in one batch.
//   - A signature of a failing source that came with one shred only is checked at most
//     `failed_checks_per_second` times a second.
//   - Signatures of failing sources that several shreds of a FEC set have in common, under one
//   root,
//     get kConfirmedChecksPerBatch checks. Genuine shreds share their signature; a forger who
//     repeats one causes a single check, because the result is cached.
//   - All other shreds wait as pending shreds.
#include <algorithm>
#include <cstring>
#include <span>

#include "relay/worker.h"

namespace shredway {
namespace {

constexpr uint32_t kFailuresTolerated = 8;
constexpr uint32_t kConfirmedChecksPerBatch = 4;
constexpr uint64_t kSecond_ns = 1'000'000'000;

}  // namespace

void Worker::check_unverified() {
  if (unverified_count_ == 0) return;
  group_unverified();
  failed_in_batch_ = confirmed_checks_in_batch_ = 0;
  for (size_t i = 0; i < check_group_count_; i++) check_group(check_groups_[i]);
  fan_out();
  feed_deshredder();  // before add() may overwrite a pending shred that it has to copy
  for (size_t i = 0; i < unverified_count_; i++)
    if (!unverified_[i].decided) keep_pending(unverified_[i]);
  unverified_count_ = 0;
}

void Worker::group_unverified() {
  check_group_count_ = 0;
  for (size_t i = 0; i < unverified_count_; i++) {
    Unverified& one = unverified_[i];
    size_t at = 0;
    while (at < check_group_count_ && !same_check(one, unverified_[check_groups_[at].first])) at++;
    if (at == check_group_count_)
      check_groups_[check_group_count_++] = {.first = static_cast<uint16_t>(i)};
    CheckGroup& group = check_groups_[at];
    one.group = static_cast<uint16_t>(at);
    group.number = one.group;
    group.members++;
    group.confirmed |= one.candidate.shred.leaf != unverified_[group.first].candidate.shred.leaf;
    group.failing &= is_failing(one.candidate.source.id, one.candidate.received_ns);
  }
  const std::span groups(check_groups_.data(), check_group_count_);
  for (CheckGroup& group : groups) {
    const Unverified& first = unverified_[group.first];
    const Candidate& candidate = first.candidate;
    if (!group.confirmed)
      group.confirmed = pending_.confirms(candidate.shred, first.root, candidate.packet);
    // Equal groups are checked in an order that changes with every batch.
    const uint32_t turn = (group.number + check_turn_) % kReceiveBatchMax;
    const uint32_t few = static_cast<uint32_t>(kReceiveBatchMax) - group.members;
    group.rank = uint32_t{group.failing} << 17 | uint32_t{!group.confirmed} << 16 | few << 8 | turn;
  }
  check_turn_ += 7;
  std::sort(groups.begin(), groups.end(),
            [](const CheckGroup& a, const CheckGroup& b) { return a.rank < b.rank; });
}

bool Worker::same_check(const Unverified& a, const Unverified& b) {
  return a.root == b.root && a.candidate.leader == b.candidate.leader &&
         std::memcmp(a.candidate.packet, b.candidate.packet, kSignatureBytes) == 0;
}

// An earlier group may have decided this one: it had the same root or the last place for a root.
void Worker::check_group(const CheckGroup& group) {
  Unverified& first = unverified_[group.first];
  if (!known_verdict(first.candidate, first.root)) {
    if (!may_check(group)) return;
    fan_out();
    check_signature(first);
  }
  for (size_t i = group.first; i < unverified_count_; i++) {
    Unverified& one = unverified_[i];
    if (one.group != group.number) continue;
    const std::optional<Verdict> verdict = known_verdict(one.candidate, one.root);
    if (!verdict) continue;
    one.decided = true;
    settle(one.candidate, one.root, *verdict);
  }
  release_pending(first);
}

bool Worker::may_check(const CheckGroup& group) {
  if (!group.failing && failed_in_batch_ < kFailuresTolerated) return true;
  if (group.confirmed) return confirmed_checks_in_batch_++ < kConfirmedChecksPerBatch;
  const Candidate& candidate = unverified_[group.first].candidate;
  FailedChecks& failed_checks = failed_checks_[candidate.source.id];
  const auto wait_ns = static_cast<int64_t>(failed_checks.next_single_ns - candidate.received_ns);
  const auto interval_ns = static_cast<int64_t>(kSecond_ns / options_.failed_checks_per_second);
  if (wait_ns > 0 && wait_ns <= interval_ns) return false;
  failed_checks.next_single_ns = candidate.received_ns + static_cast<uint64_t>(interval_ns);
  return true;
}

// Verifies the signature. LeaderAuth keeps the result, which known_verdict() returns afterwards.
void Worker::check_signature(const Unverified& one) {
  const Candidate& candidate = one.candidate;
  if (verify(*candidate.leader, candidate.packet, one.root)) return;
  failed_in_batch_++;
  FailedChecks& failed_checks = failed_checks_of(candidate.source.id, candidate.received_ns);
  failed_checks.count++;
}

bool Worker::verify(const VerifyingKey& leader, const uint8_t* signature, const Root& root) {
  const PreparedKey* prepared = tables_->prepared_keys->find(leader.bytes());
  (*counters_)[WorkerCounter::signature_checks].add(1);
  if (prepared) (*counters_)[WorkerCounter::prepared_checks].add(1);
  return leader_auth_.verify(leader, prepared, signature, root);
}

Worker::FailedChecks& Worker::failed_checks_of(uint16_t source, uint64_t now_ns) {
  FailedChecks& failed_checks = failed_checks_[source];
  const uint64_t second = now_ns / kSecond_ns;
  if (failed_checks.second != second) {
    failed_checks.previous = failed_checks.second + 1 == second ? failed_checks.count : 0;
    failed_checks.count = 0;
    failed_checks.second = second;
  }
  return failed_checks;
}

bool Worker::is_failing(uint16_t source, uint64_t now_ns) {
  const FailedChecks& failed_checks = failed_checks_of(source, now_ns);
  return failed_checks.count + failed_checks.previous > kFailuresTolerated;
}

void Worker::keep_pending(const Unverified& one) {
  const Candidate& candidate = one.candidate;
  pending_.add(candidate.source, candidate.shred, one.root, candidate.packet, candidate.received_ns,
               [&](uint16_t source) { count(source, Verdict::source_over_budget); });
}

// If the root was verified, its pending shreds are authentic, too.
void Worker::release_pending(const Unverified& verified) {
  const Shred& shred = verified.candidate.shred;
  if (pending_.empty() || !recent_->find_root(shred, verified.root)) return;
  pending_.take(shred, verified.root, [&](PendingShreds::Item& item) {
    Candidate candidate{item.packet.data(), item.received_ns, verified.candidate.leader,
                        item.source, item.shred};
    // Without a verdict, its signature is another one than the verified one, which came from
    // sources for own use only.
    const std::optional<Verdict> verdict = known_verdict(candidate, item.root);
    settle(candidate, item.root, verdict.value_or(Verdict::source_over_budget));
  });
}

void Worker::expire_pending(uint64_t now_ns) {
  pending_.expire(now_ns, [&](uint16_t source) { count(source, Verdict::source_over_budget); });
}

}  // namespace shredway
