#include "submission/recent_texts.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shredway {

RecentTexts::RecentTexts() : key_(random_hash_key()) { newer_.places.resize(kPlaces); }

// Pads the text with zeros to a multiple of eight; longer texts than a signature's are cut.
uint64_t RecentTexts::fingerprint_of(std::string_view text) const {
  std::array<uint8_t, 96> padded{};
  const size_t length = std::min(text.size(), padded.size());
  std::copy_n(text.begin(), length, padded.begin());
  return std::max<uint64_t>(sip_hash(padded.data(), padded.size(), key_), 1);
}

bool RecentTexts::contains(const Generation& generation, uint64_t fingerprint) {
  if (generation.places.empty()) return false;
  for (size_t at = fingerprint % kPlaces; generation.places[at] != 0; at = (at + 1) % kPlaces)
    if (generation.places[at] == fingerprint) return true;
  return false;
}

void RecentTexts::insert(Generation& generation, uint64_t fingerprint) {
  size_t at = fingerprint % kPlaces;
  while (generation.places[at] != 0) at = (at + 1) % kPlaces;
  generation.places[at] = fingerprint;
  generation.count++;
}

bool RecentTexts::contains(std::string_view text) const {
  const uint64_t fingerprint = fingerprint_of(text);
  return contains(newer_, fingerprint) || contains(older_, fingerprint);
}

bool RecentTexts::add(std::string_view text) {
  const uint64_t fingerprint = fingerprint_of(text);
  if (contains(newer_, fingerprint)) return false;
  const bool is_new = !contains(older_, fingerprint);
  if (newer_.count == kGenerationMax) {
    std::swap(newer_, older_);
    newer_.places.assign(kPlaces, 0);
    newer_.count = 0;
  }
  insert(newer_, fingerprint);
  return is_new;
}

}  // namespace shredway
