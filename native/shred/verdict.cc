#include "shred/verdict.h"

namespace shredway {
namespace {

constexpr const char* kMeanings[kVerdictCount] = {
#define X(name, passed_on, meaning) meaning,
    SHREDWAY_VERDICTS(X)
#undef X
};

}  // namespace

const char* verdict_meaning(Verdict verdict) { return kMeanings[static_cast<size_t>(verdict)]; }

}  // namespace shredway
