// The lower bound for any sender over QUIC: reads HTTP, copies the transaction to a leader,
// responds.
//
// One thread, epoll, ngtcp2 with GnuTLS. It finds the base64 text in the body, checks nothing and
// keeps nothing. It follows the contract of SHREDWAY_PEER_SENDER in docs/benchmarks.md; it presents
// no certificate, so it does not read the identity. bench/load/peer-process.ts builds it.
#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../../test/support/quic/interop/ngtcp2-peer.h"
#include "../native/http_message.h"

namespace {

constexpr char kPriorities[] =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:+GROUP-X25519:"
    "%DISABLE_TLS13_COMPAT_MODE";
constexpr char kProtocol[] = "solana-tpu";
constexpr char kAnswer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 38\r\n\r\n"
    R"({"jsonrpc":"2.0","result":"1","id":1} )";

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "quic_proxy: %s\n", what);
  std::exit(1);
}

sockaddr_in AddressOf(const char* variable) {
  const char* value = std::getenv(variable);
  const std::string text = value == nullptr ? "" : value;
  const size_t colon = text.rfind(':');
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  if (colon == std::string::npos ||
      inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    Fail("expected an IPv4 address with a port in SHREDWAY_PEER_LISTEN and SHREDWAY_PEER_LEADER");
  }
  address.sin_port =
      htons(static_cast<uint16_t>(std::strtoul(text.c_str() + colon + 1, nullptr, 10)));
  return address;
}

std::array<int8_t, 256> MakeDigits() {
  std::array<int8_t, 256> digits{};
  digits.fill(-1);
  constexpr std::string_view kText =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kText.size(); i++) {
    digits[static_cast<uint8_t>(kText[i])] = static_cast<int8_t>(i);
  }
  return digits;
}

std::string BytesOfBase64(std::string_view text) {
  static const std::array<int8_t, 256> kDigits = MakeDigits();
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t group = 0;
  int bits = 0;
  for (const char each : text) {
    const int8_t digit = kDigits[static_cast<uint8_t>(each)];
    if (digit < 0) break;
    group = group << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(group >> bits & 0xff));
  }
  return bytes;
}

/** The connection to the leader. */
struct Leader {
  int socket = -1;
  sockaddr_in local = {};
  sockaddr_in remote = {};
  ngtcp2_conn* quic = nullptr;
  gnutls_session_t session = nullptr;
  gnutls_certificate_credentials_t credentials = nullptr;
  ngtcp2_crypto_conn_ref reference = {};
  bool is_established = false;
  /** The stream whose bytes are not all in packets yet, and how many are; -1: none. */
  int64_t stream = -1;
  size_t sent = 0;
  /** Without a stream yet. */
  std::deque<std::string> waiting;
  /** Bytes of each stream, which the library reads until they are acknowledged. */
  std::map<int64_t, std::string> in_flight;
};

int HandshakeCompleted(ngtcp2_conn*, void* user_data) {
  static_cast<Leader*>(user_data)->is_established = true;
  return 0;
}

int StreamClosed(ngtcp2_conn*, uint32_t, int64_t id, uint64_t, void* user_data, void*) {
  static_cast<Leader*>(user_data)->in_flight.erase(id);
  return 0;
}

/** A self-signed certificate with a new Ed25519 key, as leaders request it. */
void AddCertificate(gnutls_certificate_credentials_t credentials) {
  gnutls_x509_privkey_t key = nullptr;
  gnutls_x509_crt_t certificate = nullptr;
  constexpr char kName[] = "proxy";
  constexpr uint8_t kSerial = 1;
  constexpr time_t kSeconds = 86'400;
  const time_t now = time(nullptr);
  if (gnutls_x509_privkey_init(&key) != 0 || gnutls_x509_crt_init(&certificate) != 0 ||
      gnutls_x509_privkey_generate(key, GNUTLS_PK_EDDSA_ED25519,
                                   GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519), 0) != 0 ||
      gnutls_x509_crt_set_version(certificate, 3) != 0 ||
      gnutls_x509_crt_set_serial(certificate, &kSerial, sizeof kSerial) != 0 ||
      gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, kName,
                                    sizeof kName - 1) != 0 ||
      gnutls_x509_crt_set_activation_time(certificate, now - kSeconds) != 0 ||
      gnutls_x509_crt_set_expiration_time(certificate, now + kSeconds) != 0 ||
      gnutls_x509_crt_set_key(certificate, key) != 0 ||
      gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA512, 0) != 0 ||
      gnutls_certificate_set_x509_key(credentials, &certificate, 1, key) != 0) {
    Fail("expected a certificate");
  }
}

ngtcp2_path PathOf(Leader& leader) {
  return {{reinterpret_cast<sockaddr*>(&leader.local), sizeof leader.local},
          {reinterpret_cast<sockaddr*>(&leader.remote), sizeof leader.remote},
          nullptr};
}

void OpenLeader(Leader& leader) {
  leader.remote = AddressOf("SHREDWAY_PEER_LEADER");
  leader.socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  socklen_t length = sizeof leader.local;
  if (connect(leader.socket, reinterpret_cast<sockaddr*>(&leader.remote), sizeof leader.remote) !=
          0 ||
      getsockname(leader.socket, reinterpret_cast<sockaddr*>(&leader.local), &length) != 0) {
    Fail("expected a leader that this machine reaches");
  }
  if (gnutls_certificate_allocate_credentials(&leader.credentials) != 0 ||
      !OpenClientSession(leader.session, leader.credentials, kPriorities, kProtocol)) {
    Fail("expected settings that GnuTLS accepts");
  }
  AddCertificate(leader.credentials);
  BindSession(leader);
  ngtcp2_callbacks callbacks = CommonCallbacks();
  callbacks.client_initial = ngtcp2_crypto_client_initial_cb;
  callbacks.recv_retry = ngtcp2_crypto_recv_retry_cb;
  callbacks.handshake_completed = HandshakeCompleted;
  callbacks.stream_close = StreamClosed;
  const ngtcp2_settings settings = CommonSettings();
  ngtcp2_transport_params params;
  ngtcp2_transport_params_default(&params);
  params.max_idle_timeout = 60 * NGTCP2_SECONDS;
  const ngtcp2_cid dcid = RandomConnectionId();
  const ngtcp2_cid scid = RandomConnectionId();
  const ngtcp2_path path = PathOf(leader);
  if (ngtcp2_conn_client_new(&leader.quic, &dcid, &scid, &path, NGTCP2_PROTO_VER_V1, &callbacks,
                             &settings, &params, nullptr, &leader) != 0) {
    Fail("expected a connection");
  }
  ngtcp2_conn_set_tls_native_handle(leader.quic, leader.session);
  ngtcp2_conn_set_keep_alive_timeout(leader.quic, NGTCP2_SECONDS);
}

/** Writes one packet, with bytes of the current stream if there is one. Returns false without a
 * packet. */
bool WritePacket(Leader& leader) {
  std::array<uint8_t, kPacketBytes> packet;
  ngtcp2_path_storage path;
  ngtcp2_path_storage_zero(&path);
  ngtcp2_pkt_info info;
  ngtcp2_ssize accepted = -1;
  ngtcp2_vec data = {};
  const bool has_stream = leader.stream >= 0;
  if (has_stream) {
    std::string& bytes = leader.in_flight[leader.stream];
    data.base = reinterpret_cast<uint8_t*>(bytes.data()) + leader.sent;
    data.len = bytes.size() - leader.sent;
  }
  const ngtcp2_ssize length = ngtcp2_conn_writev_stream(
      leader.quic, &path.path, &info, packet.data(), packet.size(), &accepted,
      has_stream ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE, leader.stream,
      &data, has_stream ? 1 : 0, NowNs());
  if (has_stream && accepted >= 0) {
    leader.sent += static_cast<size_t>(accepted);
    if (static_cast<size_t>(accepted) == data.len) leader.stream = -1;
  }
  if (length <= 0) return false;
  (void)!send(leader.socket, packet.data(), static_cast<size_t>(length), 0);
  return true;
}

/** Makes the oldest waiting transaction the current stream, if the leader allows another one. */
bool NextStream(Leader& leader) {
  if (leader.stream >= 0) return true;
  int64_t stream = -1;
  if (!leader.is_established || leader.waiting.empty() ||
      ngtcp2_conn_open_uni_stream(leader.quic, &stream, nullptr) != 0) {
    return false;
  }
  leader.in_flight[stream] = std::move(leader.waiting.front());
  leader.waiting.pop_front();
  leader.stream = stream;
  leader.sent = 0;
  return true;
}

void Flush(Leader& leader) {
  while (NextStream(leader) && WritePacket(leader)) {
  }
  // A current stream waits for the congestion window, and so does every other packet with data.
  while (leader.stream < 0 && WritePacket(leader)) {
  }
  ngtcp2_conn_update_pkt_tx_time(leader.quic, NowNs());
}

void Receive(Leader& leader) {
  std::array<uint8_t, 2048> packet;
  const ngtcp2_path path = PathOf(leader);
  const ngtcp2_pkt_info info = {};
  for (;;) {
    const ssize_t received = recv(leader.socket, packet.data(), packet.size(), 0);
    if (received <= 0) return;
    const int error = ngtcp2_conn_read_pkt(leader.quic, &path, &info, packet.data(),
                                           static_cast<size_t>(received), NowNs());
    if (error != 0) Fail((std::string("the connection ended: ") + ngtcp2_strerror(error)).c_str());
  }
}

class Proxy {
 public:
  Proxy();
  [[noreturn]] void Run();

 private:
  void Watch(int descriptor) const;
  void Accept();
  bool ReceiveRequests(int client);
  void Queue(std::string_view body);

  int epoll_ = -1, listener_ = -1;
  Leader leader_;
  std::vector<std::string> received_;  // by client
};

Proxy::Proxy() {
  OpenLeader(leader_);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const sockaddr_in own = AddressOf("SHREDWAY_PEER_LISTEN");
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      listen(listener_, 512) != 0) {
    Fail("cannot listen");
  }
  Watch(listener_);
  Watch(leader_.socket);
}

void Proxy::Watch(int descriptor) const {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) Fail("epoll_ctl");
}

void Proxy::Run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    Flush(leader_);
    const uint64_t now_ns = NowNs();
    const uint64_t due_ns = ngtcp2_conn_get_expiry(leader_.quic);
    constexpr uint64_t kWaitMsMax = 100;
    const uint64_t rest_ms =
        due_ns <= now_ns ? 0 : std::min((due_ns - now_ns) / 1'000'000 + 1, kWaitMsMax);
    const int count = epoll_wait(epoll_, events.data(), events.size(), static_cast<int>(rest_ms));
    for (int i = 0; i < count; i++) {
      const int descriptor = events[static_cast<size_t>(i)].data.fd;
      if (descriptor == listener_) Accept();
      else if (descriptor == leader_.socket) Receive(leader_);
      else if (!ReceiveRequests(descriptor)) close(descriptor);
    }
    if (ngtcp2_conn_get_expiry(leader_.quic) > NowNs()) continue;
    if (ngtcp2_conn_handle_expiry(leader_.quic, NowNs()) != 0) Fail("the leader is silent");
  }
}

void Proxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) return;
  const int yes = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (received_.size() <= static_cast<size_t>(client))
    received_.resize(static_cast<size_t>(client) + 1);
  received_[static_cast<size_t>(client)].clear();
  Watch(client);
}

bool Proxy::ReceiveRequests(int client) {
  std::array<char, 65536> bytes;
  const ssize_t length = recv(client, bytes.data(), bytes.size(), 0);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (length <= 0) return false;
  std::string& received = received_[static_cast<size_t>(client)];
  received.append(bytes.data(), static_cast<size_t>(length));
  shredway::bench::HttpMessage message{};
  while (shredway::bench::read_http_message(received, message) &&
         received.size() >= message.bytes()) {
    Queue(std::string_view(received).substr(message.head_bytes, message.body_bytes));
    // The leader's packet is sent before the response.
    Flush(leader_);
    if (send(client, kAnswer, sizeof kAnswer - 1, MSG_NOSIGNAL) < 0) return false;
    received.erase(0, message.bytes());
  }
  return true;
}

void Proxy::Queue(std::string_view body) {
  constexpr std::string_view kBefore = R"("params":[")";
  const size_t found = body.find(kBefore);
  if (found == std::string_view::npos) return;
  const std::string_view text = body.substr(found + kBefore.size());
  leader_.waiting.push_back(BytesOfBase64(text.substr(0, text.find('"'))));
}

}  // namespace

int main() { Proxy().Run(); }
