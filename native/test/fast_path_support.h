// Support for tests of the fast path: connections over the loopback, signed transactions with a
// tip, and a lab that plays the caller, JavaScript and the partner.
//
// All waits are bounded by 30 s; none asserts a duration.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "check.h"
#include "crypto/ed25519.h"
#include "submission/fast_path.h"
#include "system/base58.h"
#include "system/base64.h"
#include "transaction_support.h"

namespace shredway::test {

inline constexpr uint64_t kForever = UINT64_MAX;
inline constexpr uint32_t kLabKey = 3;
inline constexpr uint64_t kLabTip = 5000;  // lamports
inline const std::string kLabOptions = R"({"encoding":"base64","skipPreflight":true})";

// Waits until the condition holds; false after 30 s.
template <typename Condition>
bool wait_until(Condition condition) {
  const uint64_t end = clock_ns(CLOCK_MONOTONIC) + 30'000'000'000;
  while (!condition()) {
    if (clock_ns(CLOCK_MONOTONIC) > end) return false;
    usleep(20);
  }
  return true;
}

// Both ends of a TCP connection over the loopback.
struct TcpPair {
  int near = -1, far = -1;

  TcpPair() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, generic, length) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, generic, &length) == 0);
    CHECK(connect(near, generic, length) == 0);
    far = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    CHECK(far >= 0);
    close(listener);
    const int on = 1;
    for (const int fd : {near, far}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~TcpPair() {
    for (const int fd : {near, far})
      if (fd >= 0) close(fd);
  }
  TcpPair(const TcpPair&) = delete;
  TcpPair& operator=(const TcpPair&) = delete;
};

inline void send_text(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t sent = send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    CHECK(sent > 0);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}
inline size_t waiting_bytes(int fd) {
  int waiting = 0;
  CHECK(ioctl(fd, FIONREAD, &waiting) == 0);
  return static_cast<size_t>(waiting);
}
inline std::string receive_now(int fd) {
  std::string text(65'536, '\0');
  const ssize_t length = recv(fd, text.data(), text.size(), MSG_DONTWAIT);
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  return text;
}
// Waits for exactly this number of bytes.
inline std::string receive_text(int fd, size_t bytes) {
  CHECK(wait_until([&] { return waiting_bytes(fd) >= bytes; }));
  std::string text(bytes, '\0');
  CHECK(recv(fd, text.data(), bytes, MSG_DONTWAIT) == static_cast<ssize_t>(bytes));
  return text;
}

inline const PublicKey kLabTipKey = key_of(0xa4), kLabDontFrontKey = key_of(0xb4);

// A signed transaction with one transfer to the tip address; `number` makes it unique.
inline Bytes tip_transaction(uint64_t number, uint64_t tip = kLabTip, bool has_dont_front = false,
                             TransactionVersion version = TransactionVersion::legacy) {
  static const SigningKey signer({0x5a});
  Bytes transfer;
  append(transfer, uint32_t{2});
  append(transfer, tip);
  Bytes unique;
  append(unique, number);
  TestTransaction parts;
  parts.version = version;
  parts.keys = 4;
  parts.readonly_unsigned = 2;
  parts.instructions = {{2, {0, 1}, transfer}, {3, {0}, unique}};
  auto [bytes, layout] = write_transaction(parts);
  const PublicKey keys[] = {signer.public_key(), kLabTipKey, key_of(0),
                            has_dont_front ? kLabDontFrontKey : key_of(0xc0)};
  std::memcpy(bytes.data() + layout.keys_begin, keys, sizeof keys);
  Signature signature;
  CHECK(signer.sign(bytes.data() + layout.message_begin,
                    size_t{layout.message_end} - layout.message_begin, signature));
  std::memcpy(bytes.data() + layout.signatures_begin, signature.data(), signature.size());
  return bytes;
}
inline std::string base64_of(const Bytes& bytes) {
  std::string text(base64_text_length(bytes.size()), '\0');
  base64_encode(bytes.data(), bytes.size(), text.data());
  return text;
}
inline std::string base58_of(const Bytes& bytes) {
  std::string text(kBase58TextMax, '\0');
  text.resize(base58_encode(bytes.data(), bytes.size(), text.data()));
  return text;
}
// The first signature of a legacy or v0 transaction with one signature.
inline std::string signature_of(const Bytes& bytes) {
  return base58_of(Bytes(bytes.begin() + 1, bytes.begin() + 65));
}

inline std::string lab_head(const std::string& length) {
  return "POST / HTTP/1.1\r\nHost: gateway\r\nContent-Length: " + length +
         "\r\nContent-Type: application/json";
}
inline std::string lab_body(const std::string& text, const std::string& id = "1",
                            const std::string& options = kLabOptions) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"sendTransaction","params":[")" + text +
         R"(",)" + options + "]}";
}
inline std::string lab_request(const std::string& body) {
  return lab_head(std::to_string(body.size())) + "\r\n\r\n" + body;
}
inline std::string lab_request(const Bytes& transaction) {
  return lab_request(lab_body(base64_of(transaction)));
}

inline FastRoute lab_route(const std::string& host = "partner") {
  FastRoute route;
  route.head = "POST /send HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: ";
  route.before_id = R"({"jsonrpc":"2.0","id":)";
  route.before_text = R"(,"method":"sendTransaction","params":[")";
  route.after_text = R"(",{"encoding":"base64"}]})";
  route.minimum_tip = 1000;
  route.bytes_max = 1232;
  return route;
}
inline std::string partner_request(const FastRoute& route, uint32_t id, const Bytes& transaction) {
  const std::string body = route.before_id + std::to_string(id) + route.before_text +
                           base64_of(transaction) + route.after_text;
  return route.head + std::to_string(body.size()) + "\r\n\r\n" + body;
}
inline std::shared_ptr<const TransactionInspector> lab_inspector() {
  static const PublicKey tips[] = {kLabTipKey};
  static const KeyRange ranges[] = {{kLabDontFrontKey, kLabDontFrontKey}};
  return std::make_shared<const TransactionInspector>(tips, ranges);
}

// One caller and one partner on route 0, with everything that a send requires but `arm`. A second
// connection shows when the thread has handled what came before.
class FastPathLab {
 public:
  FastPathLab() {
    std::string error;
    path = FastPath::open(error);
    CHECK_EQ(error, "");
    path->set_rules(lab_inspector(), 1000);
    path->allow(kLabKey, 1'000'000);
    CHECK(path->set_route(0, lab_route()));
    connection = *path->watch(caller.far);
    CHECK(learn(connection));
    loan = *path->lend(0, partner.near, kForever);
    witness_ = *path->watch(witness_pair_.far);
    CHECK(learn(witness_));
    // The route has no settings: nothing is sent on it, but the thread looks at requests.
    CHECK(path->lend(kFastPathRoutesMax - 1, spare_.near, kForever).has_value());
  }

  bool learn(uint32_t number, uint64_t until_ns = kForever) {
    return path->learn(number, lab_head("9"), lab_body("AQID"), TransactionTextEncoding::base64,
                       kLabKey, until_ns);
  }
  void arm() { path->arm(connection, begin = received); }
  std::optional<TakenRequest> claim() {
    auto claim = path->claim(connection, begin);
    if (!claim) return {};
    CHECK(claim->is_same);
    return std::move(claim->taken);
  }
  bool is_taken() { return path->is_taken(connection, begin); }
  // Writes as the caller, and waits until the bytes have arrived.
  void write(const std::string& text) {
    const size_t before = waiting_bytes(caller.far);
    send_text(caller.near, text);
    CHECK(wait_until([&] { return waiting_bytes(caller.far) >= before + text.size(); }));
  }
  // Reads as JavaScript.
  std::string read(size_t bytes) {
    received += static_cast<uint32_t>(bytes);
    return receive_text(caller.far, bytes);
  }
  // Waits until the thread has handled everything that arrived before. One request of the caller
  // may be counted as different meanwhile, so the witness sends twice.
  void wait_for_thread() {
    for (int round = 0; round < 2; round++) {
      const uint64_t before = path->counts().different;
      path->arm(witness_, witness_received_);
      send_text(witness_pair_.near, "x");
      CHECK(wait_until([&] { return path->counts().different > before; }));
      CHECK_EQ(receive_text(witness_pair_.far, 1), "x");
      CHECK(!path->claim(witness_, witness_received_++));
    }
  }
  // Writes a request, lets the thread look at it, and reads it.
  std::optional<TakenRequest> serve(const std::string& request) {
    write(request);
    wait_for_thread();
    CHECK_EQ(read(request.size()), request);
    return claim();
  }
  // The request is left to JavaScript.
  void check_left(const std::string& request) {
    arm();
    CHECK(!serve(request));
    CHECK_EQ(receive_now(partner.far), "");
  }
  // The request is sent once, by this loan.
  void check_sent(const Bytes& transaction) {
    arm();
    const auto taken = serve(lab_request(transaction));
    CHECK(taken && taken->send_count == 1 && taken->sends[0].loan == loan);
    if (!taken) return;
    CHECK_EQ(receive_now(partner.far),
             partner_request(lab_route(), taken->sends[0].id, transaction));
    path->lend_again(loan, kForever);
  }

  TcpPair caller, partner;  // caller: near; gateway: caller.far and partner.near
  uint32_t connection = 0, loan = 0;
  uint32_t received = 0;  // bytes of the caller that JavaScript has read
  uint32_t begin = 0;     // of the armed request
  std::unique_ptr<FastPath> path;

 private:
  TcpPair witness_pair_, spare_;
  uint32_t witness_ = 0, witness_received_ = 0;
};

}  // namespace shredway::test
