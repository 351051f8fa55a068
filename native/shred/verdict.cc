#include "shred/verdict.h"

namespace shredway {
namespace {

struct Text {
  const char* name;
  const char* meaning;
};
constexpr Text kTexts[kVerdictCount] = {
#define X(name, passed_on, meaning) {#name, meaning},
    SHREDWAY_VERDICTS(X)
#undef X
};

}  // namespace

const char* verdict_name(Verdict verdict) { return kTexts[static_cast<size_t>(verdict)].name; }
const char* verdict_meaning(Verdict verdict) {
  return kTexts[static_cast<size_t>(verdict)].meaning;
}

}  // namespace shredway
