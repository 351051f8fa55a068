#include "quic_connection.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "../clocks.h"

namespace shredway::bench {
namespace {

constexpr char kProtocol[] = "shredway-tpu";
constexpr char kPriorities[] =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:+GROUP-X25519:"
    "%DISABLE_TLS13_COMPAT_MODE";
constexpr uint64_t kKeepAlive_ns = 25'000'000'000;
constexpr size_t kInFlightPerConnection = 64;
constexpr size_t kStatusAt = 2;
constexpr int kSocketBuffer = 4 << 20;

}  // namespace

void fail(const char* what) {
  std::fprintf(stderr, "quic_load: %s\n", what);
  std::exit(1);
}

Connection::Connection(Owner& owner, const Files& files, uint16_t port) : owner_(owner) {
  remote_.sin_family = AF_INET;
  remote_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  remote_.sin_port = htons(port);
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
  socklen_t length = sizeof local_;
  if (connect(socket_, reinterpret_cast<sockaddr*>(&remote_), sizeof remote_) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&local_), &length) != 0)
    fail("expected a UDP socket on loopback");
  open_session(files);
  open_connection();
  flush();
}

Connection::~Connection() {
  ngtcp2_conn_del(quic);
  gnutls_deinit(session);
  gnutls_certificate_free_credentials(credentials_);
  close(socket_);
}

ngtcp2_path Connection::path() {
  return {{reinterpret_cast<sockaddr*>(&local_), sizeof local_},
          {reinterpret_cast<sockaddr*>(&remote_), sizeof remote_},
          nullptr};
}

void Connection::open_session(const Files& files) {
  gnutls_certificate_allocate_credentials(&credentials_);
  if (gnutls_certificate_set_x509_key_file(credentials_, files.certificate, files.key,
                                           GNUTLS_X509_FMT_PEM) != 0 ||
      !OpenClientSession(session, credentials_, kPriorities, kProtocol))
    fail("expected settings that GnuTLS accepts");
  BindSession(*this);
}

void Connection::open_connection() {
  ngtcp2_settings settings = CommonSettings();
  ngtcp2_transport_params params;
  ngtcp2_transport_params_default(&params);
  params.initial_max_stream_data_bidi_local = 65536;
  params.initial_max_data = 1 << 30;
  params.max_idle_timeout = 120 * NGTCP2_SECONDS;
  ngtcp2_callbacks callbacks = CommonCallbacks();
  callbacks.client_initial = ngtcp2_crypto_client_initial_cb;
  callbacks.recv_retry = ngtcp2_crypto_recv_retry_cb;
  callbacks.handshake_completed = handshake_completed;
  callbacks.recv_stream_data = received;
  const ngtcp2_cid dcid = RandomConnectionId();
  const ngtcp2_cid scid = RandomConnectionId();
  const ngtcp2_path to = path();
  if (ngtcp2_conn_client_new(&quic, &dcid, &scid, &to, NGTCP2_PROTO_VER_V1, &callbacks, &settings,
                             &params, nullptr, this) != 0)
    fail("expected a connection");
  ngtcp2_conn_set_tls_native_handle(quic, session);
  ngtcp2_conn_set_keep_alive_timeout(quic, kKeepAlive_ns);
}

int Connection::handshake_completed(ngtcp2_conn*, void* self) {
  static_cast<Connection*>(self)->established_ = true;
  return 0;
}

int Connection::received(ngtcp2_conn* conn, uint32_t flags, int64_t id, uint64_t,
                         const uint8_t* data, size_t length, void* self, void*) {
  auto& connection = *static_cast<Connection*>(self);
  ngtcp2_conn_extend_max_offset(conn, length);
  const auto found = connection.streams_.find(id);
  if (found == connection.streams_.end()) return 0;
  Submission& submission = found->second;
  submission.answer.append(reinterpret_cast<const char*>(data), length);
  if ((flags & NGTCP2_STREAM_DATA_FLAG_FIN) == 0) return 0;
  const std::string& answer = submission.answer;
  const int status = answer.size() < kStatusAt + 2
                         ? 0
                         : static_cast<uint8_t>(answer[kStatusAt]) << 8 |
                               static_cast<uint8_t>(answer[kStatusAt + 1]);
  connection.owner_.answered(submission, status);
  connection.streams_.erase(found);
  return 0;
}

bool Connection::can_begin() const {
  return !broken_ && established_ && streams_.size() < kInFlightPerConnection &&
         ngtcp2_conn_get_streams_bidi_left(quic) > 0;
}

// flush() must follow.
void Connection::begin(size_t index, uint64_t begun_ns, const std::string& bytes) {
  int64_t id = -1;
  if (ngtcp2_conn_open_bidi_stream(quic, &id, nullptr) != 0) fail("expected a granted stream");
  streams_.emplace(id, Submission{.index = index, .begun_ns = begun_ns, .answer = {}});
  waiting_.push_back({id, &bytes});
}

void Connection::receive_all() {
  uint8_t packet[2048];
  while (!broken_) {
    const ssize_t length = recv(socket_, packet, sizeof packet, 0);
    if (length <= 0) return;
    const ngtcp2_path from = path();
    const ngtcp2_pkt_info info = {};
    if (ngtcp2_conn_read_pkt(quic, &from, &info, packet, static_cast<size_t>(length), NowNs()) != 0)
      broken_ = true;
  }
}

// Returns what ngtcp2 returns; `submission` null: nothing but control frames.
ngtcp2_ssize Connection::write(int64_t id, const std::string* bytes, Submission* submission,
                               uint8_t* packet) {
  ngtcp2_path_storage storage;
  ngtcp2_path_storage_zero(&storage);
  ngtcp2_pkt_info info;
  ngtcp2_ssize accepted = -1;
  ngtcp2_vec data = {};
  uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_NONE;
  if (submission != nullptr) {
    data.base = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes->data())) + submission->sent;
    data.len = bytes->size() - submission->sent;
    flags = NGTCP2_WRITE_STREAM_FLAG_FIN | NGTCP2_WRITE_STREAM_FLAG_MORE;
  }
  const ngtcp2_ssize length =
      ngtcp2_conn_writev_stream(quic, &storage.path, &info, packet, kPacketBytes, &accepted, flags,
                                id, &data, submission != nullptr ? 1 : 0, NowNs());
  if (submission != nullptr && accepted >= 0) submission->sent += static_cast<size_t>(accepted);
  return length;
}

// Several transactions share a packet where they fit.
void Connection::flush() {
  uint8_t packet[kPacketBytes];
  bool blocked = false;
  while (!broken_) {
    const bool has_stream = !blocked && !waiting_.empty();
    const Waiting next = has_stream ? waiting_.front() : Waiting{-1, nullptr};
    const auto found = streams_.find(next.id);
    Submission* submission = found == streams_.end() ? nullptr : &found->second;
    if (has_stream && submission == nullptr) {
      waiting_.pop_front();
      continue;
    }
    const ngtcp2_ssize length = write(next.id, next.bytes, submission, packet);
    if (has_stream && submission->sent == next.bytes->size()) {
      waiting_.pop_front();
      complete_.push_back(submission->index);
    }
    if (length == NGTCP2_ERR_WRITE_MORE) continue;
    if (length == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
      blocked = true;
      continue;
    }
    if (length < 0) broken_ = true;
    if (length <= 0) break;
    if (!complete_.empty()) owner_.sending(complete_);
    complete_.clear();
    if (send(socket_, packet, static_cast<size_t>(length), 0) < 0) continue;  // QUIC repeats it
  }
  if (!broken_) ngtcp2_conn_update_pkt_tx_time(quic, NowNs());
}

void Connection::expire() {
  if (ngtcp2_conn_handle_expiry(quic, NowNs()) != 0) broken_ = true;
  flush();
}

void Connection::leave() {
  if (broken_) return;
  ngtcp2_connection_close_error error;
  ngtcp2_connection_close_error_default(&error);
  ngtcp2_connection_close_error_set_application_error(&error, 0, nullptr, 0);
  uint8_t packet[kPacketBytes];
  ngtcp2_path_storage storage;
  ngtcp2_path_storage_zero(&storage);
  ngtcp2_pkt_info info;
  const ngtcp2_ssize length = ngtcp2_conn_write_connection_close(quic, &storage.path, &info, packet,
                                                                 sizeof packet, &error, NowNs());
  if (length > 0 && send(socket_, packet, static_cast<size_t>(length), 0) < 0) broken_ = true;
}

}  // namespace shredway::bench
