// Fuzz target: any bytes for the co-signing check. A second implementation, which uses lists
// instead of offsets, must give the same answer.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "transaction/co_signing.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

using Bytes = std::vector<uint8_t>;

// ---- second implementation ------------------------------------------------------------------

struct Mention {
  bool signs, writable;
  Bytes key;
};
struct Call {
  size_t program;
  Bytes accounts, data;
};
struct Reading {
  std::vector<Bytes> signatures;
  std::vector<Mention> keys;
  std::vector<Call> calls;
  std::vector<Bytes> tables;
  Bytes message, lifetime;
};

// Reads without bounds checks: only for bytes that the inspector accepted.
class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}

  size_t at() const { return at_; }
  uint8_t byte() {
    require(at_ < bytes_.size());
    return bytes_[at_++];
  }
  size_t count() {
    size_t value = 0;
    for (size_t shift = 0;; shift += 7) {
      const uint8_t next = byte();
      value += size_t{next & 127u} << shift;
      if (next < 128) return value;
    }
  }
  Bytes take(size_t length) {
    require(length <= bytes_.size() - at_);
    at_ += length;
    return Bytes(bytes_.begin() + long(at_ - length), bytes_.begin() + long(at_));
  }
  Bytes list() { return take(count()); }

 private:
  const Bytes& bytes_;
  size_t at_ = 0;
};

// Reads a legacy or v0 transaction.
Reading read(const Bytes& bytes) {
  Reader reader(bytes);
  Reading out;
  for (size_t left = reader.count(); left > 0; left--) out.signatures.push_back(reader.take(64));
  out.message = Bytes(bytes.begin() + long(reader.at()), bytes.end());
  size_t signers = reader.byte();
  const bool is_v0 = signers == 0x80;
  if (is_v0) signers = reader.byte();
  const size_t readonly_signers = reader.byte(), readonly_others = reader.byte();
  const size_t keys = reader.count();
  for (size_t left = keys; left > 0; left--) {
    const size_t place = keys - left;
    const bool signs = place < signers;
    // The read-only keys are the last of their kind.
    const bool readonly = signs ? signers - place <= readonly_signers : left <= readonly_others;
    out.keys.push_back({signs, !readonly, reader.take(32)});
  }
  out.lifetime = reader.take(32);
  for (size_t left = reader.count(); left > 0; left--) {
    Call call{reader.byte(), {}, {}};
    call.accounts = reader.list();
    call.data = reader.list();
    out.calls.push_back(call);
  }
  for (size_t left = is_v0 ? reader.count() : 0; left > 0; left--) {
    out.tables.push_back(reader.take(32));
    (void)reader.list();
    (void)reader.list();
  }
  require(reader.at() == bytes.size());
  return out;
}

const Bytes kSysvar{0x06, 0xa7, 0xd5, 0x17, 0x19, 0x2c, 0x56, 0x8e, 0xe0, 0x8a, 0x84,
                    0x5f, 0x73, 0xd2, 0x97, 0x88, 0xcf, 0x03, 0x5c, 0x31, 0x45, 0xb2,
                    0x1a, 0xb3, 0x44, 0xd8, 0x06, 0x2e, 0xa9, 0x40, 0x00, 0x00};

// Decides by every use of a key in an instruction: the advance of this nonce uses exactly three
// keys and its program, in this order, and the authority is not used again.
bool may_sign(const Reading& reading, const Bytes& nonce_account, const Bytes& authority) {
  if (reading.calls.empty()) return false;
  std::vector<Bytes> mentions;
  for (const Call& call : reading.calls) {
    Bytes places = call.accounts;
    places.push_back(static_cast<uint8_t>(call.program));
    for (const uint8_t place : places)
      mentions.push_back(place < reading.keys.size() ? reading.keys[place].key : Bytes());
  }
  const std::vector<Bytes> expected{nonce_account, kSysvar, authority, Bytes(32)};
  const Call& advance = reading.calls[0];
  if (advance.accounts.size() != 3 || advance.data != Bytes{4, 0, 0, 0}) return false;
  if (!std::equal(expected.begin(), expected.end(), mentions.begin())) return false;
  if (std::count(mentions.begin(), mentions.end(), authority) != 1) return false;
  if (std::count(reading.tables.begin(), reading.tables.end(), authority) != 0) return false;
  for (size_t place = 0; place < reading.keys.size(); place++) {
    const Mention& key = reading.keys[place];
    if (key.key == nonce_account && !key.writable) return false;
    const bool is_authority = key.key == authority;
    if (is_authority && (place == 0 || !key.signs || key.writable)) return false;
    if (key.signs && (reading.signatures[place] == Bytes(64)) != is_authority) return false;
  }
  return true;
}

// ---- comparison -----------------------------------------------------------------------------

const CoSigningCheck& check() {
  static const CoSigningCheck made;
  return made;
}

PublicKey key_of(const Bytes& bytes) {
  PublicKey key;
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

struct Answer {
  bool found;
  CoSigningPlace place;
  CoSigningFault fault;
};

// A copy of exactly the requested size, so that a read beyond it is detected.
Answer ask(const Bytes& bytes, const Bytes& nonce_account, const Bytes& authority) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  Answer answer{};
  answer.found = check().place(copy.get(), bytes.size(), key_of(nonce_account), key_of(authority),
                               answer.place, answer.fault);
  require(answer.found == (answer.fault.refusal == CoSigningRefusal::accepted));
  require(answer.fault.offset <= bytes.size());
  return answer;
}

void compare(const Bytes& bytes, const Reading& reading, const Bytes& nonce_account,
             const Bytes& authority) {
  const Answer answer = ask(bytes, nonce_account, authority);
  require(answer.found == may_sign(reading, nonce_account, authority));
  if (!answer.found) return;
  const CoSigningPlace& place = answer.place;
  require(Bytes(bytes.begin() + place.message_begin, bytes.begin() + place.message_end) ==
          reading.message);
  require(Bytes(bytes.begin() + place.lifetime_begin, bytes.begin() + place.lifetime_begin + 32) ==
          reading.lifetime);
  // Any bytes there become the signature of the authority's key, and nothing else changes.
  Bytes filled = bytes;
  std::fill_n(filled.begin() + place.signature_at, 64, 0x5a);
  const Reading again = read(filled);
  require(again.message == reading.message);
  for (size_t i = 0; i < again.signatures.size(); i++)
    require(again.signatures[i] ==
            (again.keys[i].key == authority ? Bytes(64, 0x5a) : reading.signatures[i]));
  require(ask(filled, nonce_account, authority).fault.refusal == CoSigningRefusal::nothing_missing);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t length) {
  static const TransactionInspector inspector({}, {});
  const Bytes bytes(input, input + length);
  const Bytes unrelated_key(32, 0xee);
  Transaction transaction;
  TransactionFacts facts;
  TransactionFault fault;
  if (!inspector.inspect(bytes.data(), length, transaction, facts, fault)) {
    const Answer answer = ask(bytes, unrelated_key, unrelated_key);
    require(answer.fault.refusal == CoSigningRefusal::transaction_refused);
    require(answer.fault.transaction.refusal == fault.refusal);
    return 0;
  }
  if (transaction.version == TransactionVersion::v1) {
    require(ask(bytes, unrelated_key, unrelated_key).fault.refusal == CoSigningRefusal::version_1);
    return 0;
  }
  const Reading reading = read(bytes);
  compare(bytes, reading, unrelated_key, unrelated_key);
  // The keys that the transaction names itself, and each other key as the authority.
  if (reading.calls.empty() || reading.calls[0].accounts.empty()) return 0;
  const uint8_t account = reading.calls[0].accounts[0];
  const Bytes nonce_account =
      account < reading.keys.size() ? reading.keys[account].key : unrelated_key;
  compare(bytes, reading, nonce_account, unrelated_key);
  for (const Mention& key : reading.keys) {
    compare(bytes, reading, nonce_account, key.key);
    compare(bytes, reading, unrelated_key, key.key);
  }
  return 0;
}
