#include "submission/offers.h"

#include <algorithm>
#include <utility>

namespace shredway {

void Offers::forget(uint64_t connection) {
  sources_.erase(connection);
  if (connection_ == connection) cancel();
}

void Offers::forget_all() {
  sources_.clear();
  cancel();
}

void Offers::cancel() {
  if (is_checking()) stage_ = Stage::none;
}

const OfferSource* Offers::find(uint64_t connection) const {
  const auto found = sources_.find(connection);
  return found == sources_.end() ? nullptr : &found->second;
}

bool Offers::begin(uint64_t sequence, uint64_t connection) {
  if (sequence <= last_) return false;
  last_ = sequence;
  if (early_.erase(sequence) > 0) return false;
  current_ = sequence;
  connection_ = connection;
  stage_ = Stage::checking;
  return true;
}

void Offers::end_sent(uint32_t key, TakenRequest request) {
  stage_ = Stage::none;
  taken_.push_back({current_, key, std::move(request)});
}

Offers::Claim Offers::claim(uint64_t sequence) {
  if (sequence > last_) {
    claim_early(sequence);
    return {};
  }
  if (sequence == current_ && is_checking()) {
    cancel();
    return {.taken = {}, .was_checked = true};
  }
  for (size_t i = 0; i < taken_.size(); i++)
    if (taken_[i].sequence == sequence) return {.taken = remove(i)};
  return {};
}

void Offers::claim_early(uint64_t sequence) {
  early_.insert(sequence);
  if (early_.size() <= kEarlyMax) return;
  for (const uint64_t each : early_) last_ = std::max(last_, each);
  early_.clear();
}

bool Offers::is_taken(uint64_t sequence) const {
  return is_sending(sequence) || std::any_of(taken_.begin(), taken_.end(), [&](const Taken& each) {
           return each.sequence == sequence;
         });
}

std::optional<Offers::Taken> Offers::take_left() {
  forget_all();
  if (!taken_.empty()) return remove(taken_.size() - 1);
  early_.clear();
  last_ = 0;
  current_ = 0;
  return {};
}

Offers::Taken Offers::remove(size_t place) {
  std::swap(taken_[place], taken_.back());
  Taken taken = std::move(taken_.back());
  taken_.pop_back();
  return taken;
}

}  // namespace shredway
