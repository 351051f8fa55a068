#include "transaction/refusal.h"

namespace shredway {
namespace {

constexpr RefusalText kTexts[kTransactionRefusalCount] = {
#define X(name, expected, got) {expected, got},
    SHREDWAY_TRANSACTION_REFUSALS(X)
#undef X
};

const RefusalText& text_of(TransactionRefusal refusal) {
  return kTexts[static_cast<size_t>(refusal)];
}

}  // namespace

const char* transaction_refusal_expected(TransactionRefusal refusal) {
  return text_of(refusal).expected;
}
const char* transaction_refusal_got(TransactionRefusal refusal) { return text_of(refusal).got; }

}  // namespace shredway
