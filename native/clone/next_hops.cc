#include "clone/next_hops.h"

#include <algorithm>

namespace shredway {

NextHops::NextHops(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& left, const Entry& right) { return left.address < right.address; });
}

const NextHops::Entry* NextHops::find(const AddressBytes& address) const {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), address,
      [](const Entry& entry, const AddressBytes& wanted) { return entry.address < wanted; });
  return found != entries_.end() && found->address == address ? &*found : nullptr;
}

}  // namespace shredway
