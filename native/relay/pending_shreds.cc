#include "relay/pending_shreds.h"

namespace shredway {

bool PendingShreds::confirms(const Shred& shred, const Root& root) const {
  if (empty()) return false;
  const uint64_t key = key_of(root);
  for (size_t place = 0; place < kPlaces; place++)
    if (keys_[place] == key && matches((*items_)[place], shred, root) &&
        (*items_)[place].shred.leaf != shred.leaf)
      return true;
  return false;
}

}  // namespace shredway
