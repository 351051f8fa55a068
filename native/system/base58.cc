#include "system/base58.h"

#include <array>
#include <bit>
#include <cstring>

namespace shredway {
namespace {

using Wide = unsigned __int128;

constexpr char kAlphabet[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
constexpr char kZeroDigit = '1';
constexpr uint8_t kNoDigit = 0xff;
constexpr size_t kLimbDigits = 10;
constexpr uint64_t power_of_58(size_t exponent) {
  return exponent == 0 ? 1 : 58 * power_of_58(exponent - 1);
}
constexpr uint64_t kLimbBase = power_of_58(kLimbDigits);  // below 2^59
constexpr uint64_t kHalfBase = power_of_58(kLimbDigits / 2);

constexpr size_t kEncodeLimbsMax = kBase58TextMax / kLimbDigits;
constexpr size_t kDecodeLimbsMax = 520;  // 5,600 digits are at most 4,101 bytes
static_assert(kDecodeLimbsMax * 8 * 1000 > kBase58TextMax * 733);  // log 58 / log 256 < 0.733

constexpr std::array<uint8_t, 256> kDigits = [] {
  std::array<uint8_t, 256> digits{};
  for (uint8_t& digit : digits) digit = kNoDigit;
  for (uint8_t i = 0; i < 58; i++) digits[static_cast<uint8_t>(kAlphabet[i])] = i;
  return digits;
}();

// ---- division by the constant base, without the processor's slow one ----
// Möller and Granlund, "Improved division by invariant integers" (2011), algorithm 4: divisor and
// dividend are shifted so that the divisor's highest bit is bit 63.

constexpr int kShift = std::countl_zero(kLimbBase);
constexpr uint64_t kDivisor = kLimbBase << kShift;
constexpr uint64_t kReciprocal = static_cast<uint64_t>(~Wide{0} / kDivisor);  // minus 2^64

// Computes limb x 2^64 + low = quotient x kLimbBase + remainder; the remainder is stored in limb.
// Precondition: limb < kLimbBase.
uint64_t divide(uint64_t& limb, uint64_t low) {
  const Wide shifted = ((Wide{limb} << 64) | low) << kShift;
  const auto high = static_cast<uint64_t>(shifted >> 64);
  const auto rest = static_cast<uint64_t>(shifted);
  const Wide estimate = Wide{kReciprocal} * high + shifted;
  auto quotient = static_cast<uint64_t>(estimate >> 64) + 1;
  uint64_t remainder = rest - quotient * kDivisor;
  if (remainder > static_cast<uint64_t>(estimate)) {
    quotient--;
    remainder += kDivisor;
  }
  if (remainder >= kDivisor) [[unlikely]] {
    quotient++;
    remainder -= kDivisor;
  }
  limb = remainder >> kShift;
  return quotient;
}

// ---------------------------------------------------------------------------------------------

uint64_t load_big_endian(const uint8_t* bytes, size_t length) {
  uint64_t word = 0;
  for (size_t i = 0; i < length; i++) word = word << 8 | bytes[i];
  return word;
}

// Writes ten digits, including leading zeros.
void write_limb(uint64_t limb, char* out) {
  const auto write_half = [](auto half, char* end) {
    for (size_t i = 0; i < kLimbDigits / 2; i++) {
      *--end = kAlphabet[half % 58];
      half /= 58;
    }
  };
  write_half(static_cast<uint32_t>(limb % kHalfBase), out + kLimbDigits);
  write_half(static_cast<uint32_t>(limb / kHalfBase), out + kLimbDigits / 2);
}

}  // namespace

size_t base58_encode(const uint8_t* bytes, size_t length, char* out) {
  size_t zeros = 0;
  while (zeros < length && bytes[zeros] == 0) zeros++;
  std::memset(out, kZeroDigit, zeros);
  char* const text = out + zeros;

  std::array<uint64_t, kEncodeLimbsMax> limbs;  // lowest first
  size_t count = 0;
  // The first word holds the bytes that do not fill a word, so that all others are whole.
  size_t word_bytes = (length - zeros) % sizeof(uint64_t);
  if (word_bytes == 0) word_bytes = sizeof(uint64_t);
  for (size_t at = zeros; at < length; at += word_bytes, word_bytes = sizeof(uint64_t)) {
    uint64_t carry = load_big_endian(bytes + at, word_bytes);
    for (size_t i = 0; i < count; i++) carry = divide(limbs[i], carry);
    for (; carry > 0; carry /= kLimbBase) limbs[count++] = carry % kLimbBase;
  }
  if (count == 0) return zeros;

  char first[kLimbDigits];
  write_limb(limbs[count - 1], first);
  size_t skipped = 0;
  while (first[skipped] == kZeroDigit) skipped++;  // the highest limb is not zero
  const size_t first_digits = kLimbDigits - skipped;
  std::memcpy(text, first + skipped, first_digits);
  for (size_t i = 1; i < count; i++)
    write_limb(limbs[count - 1 - i], text + first_digits + (i - 1) * kLimbDigits);
  return zeros + first_digits + (count - 1) * kLimbDigits;
}

bool base58_decode(const char* text, size_t length, uint8_t* out, size_t& out_bytes) {
  if (length > kBase58TextMax) return false;
  size_t zeros = 0;
  while (zeros < length && text[zeros] == kZeroDigit) zeros++;
  std::memset(out, 0, zeros);

  std::array<uint64_t, kDecodeLimbsMax> limbs;  // lowest first
  size_t count = 0;
  size_t group = (length - zeros) % kLimbDigits;
  if (group == 0) group = kLimbDigits;
  for (size_t at = zeros; at < length; at += group, group = kLimbDigits) {
    uint64_t carry = 0;
    for (size_t i = 0; i < group; i++) {
      const uint8_t digit = kDigits[static_cast<uint8_t>(text[at + i])];
      if (digit == kNoDigit) return false;
      carry = carry * 58 + digit;
    }
    for (size_t i = 0; i < count; i++) {
      const Wide product = Wide{limbs[i]} * kLimbBase + carry;
      limbs[i] = static_cast<uint64_t>(product);
      carry = static_cast<uint64_t>(product >> 64);
    }
    if (carry > 0) limbs[count++] = carry;
  }

  size_t at = zeros;
  for (size_t i = count; i-- > 0;) {
    for (int shift = 56; shift >= 0; shift -= 8) {
      const auto byte = static_cast<uint8_t>(limbs[i] >> shift);
      if (at > zeros || byte != 0) out[at++] = byte;
    }
  }
  out_bytes = at;
  return true;
}

}  // namespace shredway
