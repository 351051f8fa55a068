#include "relay/pending_shreds.h"

namespace shredway {

bool PendingShreds::confirms(const Shred& shred, const Root& root, const uint8_t* signature) const {
  if (empty()) return false;
  const uint64_t key = key_of(root);
  for (size_t place = 0; place < kPlaces; place++) {
    if (keys_[place] != key) continue;
    const Item& item = (*items_)[place];
    if (matches(item, shred, root) && item.shred.leaf != shred.leaf &&
        std::memcmp(item.packet.data(), signature, kSignatureBytes) == 0)
      return true;
  }
  return false;
}

}  // namespace shredway
