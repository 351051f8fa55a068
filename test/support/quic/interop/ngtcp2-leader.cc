// An independent TPU port of a leader, built with ngtcp2 and GnuTLS, for interoperability tests.
//
// Built and run by test/support/quic/interop/ngtcp2-leader.ts; only for tests. Stricter than the
// sandbox's own leaders where its libraries allow it: x25519, TLS_AES_128_GCM_SHA256 and Ed25519
// alone, streams of at most 4,096 bytes, and no stream before the certificate was seen.
//
// Usage: ngtcp2-leader KEY.pem CERTIFICATE.pem STREAMS (retry|direct) ADDRESS
// Writes one line for each event: "port N", "identity HEX", "transaction HEX",
// "end NAME". Reads lines: "close CODE REASON" closes every connection; the end of the input ends
// it.

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ngtcp2-peer.h"

namespace {

constexpr size_t kTransactionBytesMax = 4096;
constexpr char kProtocol[] = "solana-tpu";
constexpr char kPriorities[] =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:+GROUP-X25519:"
    "-SIGN-ALL:+SIGN-EDDSA-ED25519:%DISABLE_TLS13_COMPAT_MODE";

struct Server {
  int socket = -1;
  sockaddr_in local = {};
  gnutls_certificate_credentials_t credentials = nullptr;
  gnutls_priority_t priorities = nullptr;
  uint8_t secret[32] = {};
  uint64_t streams = 0;
  bool has_retry = false;
};

struct Connection {
  ngtcp2_conn* quic = nullptr;
  gnutls_session_t session = nullptr;
  ngtcp2_crypto_conn_ref reference = {};
  Server* server = nullptr;
  sockaddr_in remote = {};
  std::map<int64_t, std::string> streams;
  std::vector<std::string> ids;

  ~Connection() {
    ngtcp2_conn_del(quic);
    if (session != nullptr) gnutls_deinit(session);
  }
};

void Say(const char* what, const uint8_t* bytes, size_t length) {
  printf("%s ", what);
  PrintHex(bytes, length);
}

std::string IdOf(const uint8_t* bytes, size_t length) {
  return {reinterpret_cast<const char*>(bytes), length};
}

Connection& Of(void* user_data) { return *static_cast<Connection*>(user_data); }

int NewKnownConnectionId(ngtcp2_conn* quic, ngtcp2_cid* id, uint8_t* token, size_t length,
                         void* user_data) {
  NewConnectionId(quic, id, token, length, user_data);
  Of(user_data).ids.push_back(IdOf(id->data, length));
  return 0;
}

/** Grants streams after the identity is known, like validators. */
int HandshakeCompleted(ngtcp2_conn* quic, void* user_data) {
  Connection& connection = Of(user_data);
  unsigned count = 0;
  const gnutls_datum_t* chain = gnutls_certificate_get_peers(connection.session, &count);
  if (chain == nullptr || count == 0) return NGTCP2_ERR_CALLBACK_FAILURE;
  gnutls_x509_crt_t certificate = nullptr;
  gnutls_x509_crt_init(&certificate);
  gnutls_ecc_curve_t curve = GNUTLS_ECC_CURVE_INVALID;
  gnutls_datum_t key = {};
  const bool is_ed25519 = gnutls_x509_crt_import(certificate, chain, GNUTLS_X509_FMT_DER) == 0 &&
                          gnutls_x509_crt_get_pk_ecc_raw(certificate, &curve, &key, nullptr) == 0 &&
                          curve == GNUTLS_ECC_CURVE_ED25519;
  if (is_ed25519) Say("identity", key.data, key.size);
  gnutls_free(key.data);
  gnutls_x509_crt_deinit(certificate);
  if (!is_ed25519) return NGTCP2_ERR_CALLBACK_FAILURE;
  ngtcp2_conn_extend_max_streams_uni(quic, connection.server->streams);
  return 0;
}

int ReceiveStreamData(ngtcp2_conn* quic, uint32_t flags, int64_t id, uint64_t, const uint8_t* data,
                      size_t length, void* user_data, void*) {
  Connection& connection = Of(user_data);
  std::string& stream = connection.streams[id];
  stream.append(reinterpret_cast<const char*>(data), length);
  ngtcp2_conn_extend_max_offset(quic, length);
  if ((flags & NGTCP2_STREAM_DATA_FLAG_FIN) == 0) return 0;
  Say("transaction", reinterpret_cast<const uint8_t*>(stream.data()), stream.size());
  connection.streams.erase(id);
  // The credit is returned here: ngtcp2 0.12 does not call stream_close for streams of one
  // direction.
  ngtcp2_conn_extend_max_streams_uni(quic, 1);
  return 0;
}

ngtcp2_callbacks MakeCallbacks() {
  ngtcp2_callbacks callbacks = CommonCallbacks();
  callbacks.recv_client_initial = ngtcp2_crypto_recv_client_initial_cb;
  callbacks.get_new_connection_id = NewKnownConnectionId;
  callbacks.handshake_completed = HandshakeCompleted;
  callbacks.recv_stream_data = ReceiveStreamData;
  return callbacks;
}

bool MakeSession(Server& server, Connection& connection) {
  const gnutls_datum_t protocol = {reinterpret_cast<unsigned char*>(const_cast<char*>(kProtocol)),
                                   sizeof kProtocol - 1};
  constexpr unsigned kFlags = GNUTLS_SERVER | GNUTLS_NO_TICKETS | GNUTLS_NO_END_OF_EARLY_DATA;
  gnutls_session_t& session = connection.session;
  if (gnutls_init(&session, kFlags) != 0 || gnutls_priority_set(session, server.priorities) != 0 ||
      ngtcp2_crypto_gnutls_configure_server_session(session) != 0 ||
      gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, server.credentials) != 0 ||
      gnutls_alpn_set_protocols(session, &protocol, 1, GNUTLS_ALPN_MANDATORY) != 0) {
    return false;
  }
  gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
  BindSession(connection);
  return true;
}

ngtcp2_path PathOf(Server& server, sockaddr_in& remote) {
  return {{reinterpret_cast<sockaddr*>(&server.local), sizeof server.local},
          {reinterpret_cast<sockaddr*>(&remote), sizeof remote},
          nullptr};
}

void Transmit(const Server& server, const sockaddr_in& to, const uint8_t* packet, size_t length) {
  sendto(server.socket, packet, length, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

std::unique_ptr<Connection> Accept(Server& server, const ngtcp2_pkt_hd& header,
                                   const ngtcp2_cid* original, const sockaddr_in& remote) {
  auto connection = std::make_unique<Connection>();
  connection->server = &server;
  connection->remote = remote;
  ngtcp2_settings settings = CommonSettings();
  settings.token = header.token;
  ngtcp2_transport_params params;
  ngtcp2_transport_params_default(&params);
  params.original_dcid = original != nullptr ? *original : header.dcid;
  params.retry_scid_present = original != nullptr ? 1 : 0;
  params.retry_scid = header.dcid;
  params.initial_max_stream_data_uni = kTransactionBytesMax;
  params.initial_max_data = kTransactionBytesMax * server.streams;
  params.initial_max_streams_uni = 0;
  params.max_idle_timeout = 10 * NGTCP2_SECONDS;
  const ngtcp2_cid scid = RandomConnectionId();
  const ngtcp2_callbacks callbacks = MakeCallbacks();
  const ngtcp2_path path = PathOf(server, connection->remote);
  if (!MakeSession(server, *connection) ||
      ngtcp2_conn_server_new(&connection->quic, &header.scid, &scid, &path, header.version,
                             &callbacks, &settings, &params, nullptr, connection.get()) != 0) {
    return nullptr;
  }
  ngtcp2_conn_set_tls_native_handle(connection->quic, connection->session);
  connection->ids = {IdOf(scid.data, scid.datalen), IdOf(header.dcid.data, header.dcid.datalen)};
  return connection;
}

void SendRetry(const Server& server, const ngtcp2_pkt_hd& header, const sockaddr_in& to) {
  const ngtcp2_cid scid = RandomConnectionId();
  uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN];
  const ngtcp2_ssize token_length = ngtcp2_crypto_generate_retry_token(
      token, server.secret, sizeof server.secret, header.version,
      reinterpret_cast<const sockaddr*>(&to), sizeof to, &scid, &header.dcid, NowNs());
  if (token_length < 0) return;
  uint8_t packet[kPacketBytes];
  const ngtcp2_ssize length =
      ngtcp2_crypto_write_retry(packet, sizeof packet, header.version, &header.scid, &scid,
                                &header.dcid, token, static_cast<size_t>(token_length));
  if (length > 0) Transmit(server, to, packet, static_cast<size_t>(length));
}

class Leader {
 public:
  explicit Leader(Server& server) : server_(server) {}

  void Receive(const uint8_t* packet, size_t length, sockaddr_in from) {
    ngtcp2_version_cid ids;
    if (ngtcp2_pkt_decode_version_cid(&ids, packet, length, kConnectionIdBytes) != 0) return;
    Connection* connection = Find(IdOf(ids.dcid, ids.dcidlen));
    if (connection == nullptr) connection = Begin(packet, length, from);
    if (connection == nullptr) return;
    const ngtcp2_path path = PathOf(server_, from);
    const ngtcp2_pkt_info info = {};
    const int error = ngtcp2_conn_read_pkt(connection->quic, &path, &info, packet, length, NowNs());
    if (error == 0) {
      Send(*connection);
    } else if (error == NGTCP2_ERR_DRAINING) {
      Remove(*connection, "by_peer");
    } else {
      ngtcp2_connection_close_error close;
      ngtcp2_connection_close_error_default(&close);
      if (error == NGTCP2_ERR_CRYPTO) {
        const uint8_t alert = ngtcp2_conn_get_tls_alert(connection->quic);
        ngtcp2_connection_close_error_set_transport_error_tls_alert(&close, alert, nullptr, 0);
      } else {
        ngtcp2_connection_close_error_set_transport_error_liberr(&close, error, nullptr, 0);
      }
      Close(*connection, close, ngtcp2_strerror(error));
    }
  }

  void CloseAll(uint64_t code, const std::string& reason) {
    ngtcp2_connection_close_error close;
    ngtcp2_connection_close_error_default(&close);
    ngtcp2_connection_close_error_set_application_error(
        &close, code, reinterpret_cast<const uint8_t*>(reason.data()), reason.size());
    while (!connections_.empty()) Close(*connections_.back(), close, "closed");
  }

  void Tick() {
    std::vector<Connection*> over;
    for (const auto& connection : connections_) {
      if (ngtcp2_conn_get_expiry(connection->quic) > NowNs()) continue;
      if (ngtcp2_conn_handle_expiry(connection->quic, NowNs()) != 0) {
        over.push_back(connection.get());
      } else {
        Send(*connection);
      }
    }
    for (Connection* connection : over) Remove(*connection, "by_time");
  }

 private:
  Connection* Find(const std::string& id) {
    for (const auto& connection : connections_) {
      for (const std::string& own : connection->ids) {
        if (own == id) return connection.get();
      }
    }
    return nullptr;
  }

  Connection* Begin(const uint8_t* packet, size_t length, const sockaddr_in& from) {
    ngtcp2_pkt_hd header;
    if (ngtcp2_accept(&header, packet, length) != 0) return nullptr;
    ngtcp2_cid original = {};
    if (server_.has_retry) {
      if (header.token.len == 0) {
        SendRetry(server_, header, from);
        return nullptr;
      }
      if (ngtcp2_crypto_verify_retry_token(&original, header.token.base, header.token.len,
                                           server_.secret, sizeof server_.secret, header.version,
                                           reinterpret_cast<const sockaddr*>(&from), sizeof from,
                                           &header.dcid, 10 * NGTCP2_SECONDS, NowNs()) != 0) {
        return nullptr;
      }
    }
    auto connection = Accept(server_, header, server_.has_retry ? &original : nullptr, from);
    if (!connection) return nullptr;
    connections_.push_back(std::move(connection));
    return connections_.back().get();
  }

  void Send(Connection& connection) {
    uint8_t packet[kPacketBytes];
    for (;;) {
      ngtcp2_path_storage path;
      ngtcp2_path_storage_zero(&path);
      ngtcp2_pkt_info info;
      const ngtcp2_ssize length = ngtcp2_conn_writev_stream(
          connection.quic, &path.path, &info, packet, sizeof packet, nullptr,
          NGTCP2_WRITE_STREAM_FLAG_NONE, -1, nullptr, 0, NowNs());
      if (length <= 0) break;
      Transmit(server_, connection.remote, packet, static_cast<size_t>(length));
    }
    ngtcp2_conn_update_pkt_tx_time(connection.quic, NowNs());
  }

  void Close(Connection& connection, const ngtcp2_connection_close_error& close, const char* name) {
    uint8_t packet[kPacketBytes];
    ngtcp2_path_storage path;
    ngtcp2_path_storage_zero(&path);
    ngtcp2_pkt_info info;
    const ngtcp2_ssize length = ngtcp2_conn_write_connection_close(
        connection.quic, &path.path, &info, packet, sizeof packet, &close, NowNs());
    if (length > 0) Transmit(server_, connection.remote, packet, static_cast<size_t>(length));
    Remove(connection, name);
  }

  void Remove(const Connection& connection, const char* name) {
    printf("end %s\n", name);
    std::erase_if(connections_, [&](const auto& one) { return one.get() == &connection; });
  }

  Server& server_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

[[noreturn]] void Fail(const char* what) {
  fprintf(stderr, "ngtcp2-leader: %s\n", what);
  exit(1);
}

void Open(Server& server, char** arguments) {
  gnutls_rnd(GNUTLS_RND_RANDOM, server.secret, sizeof server.secret);
  if (gnutls_certificate_allocate_credentials(&server.credentials) != 0 ||
      gnutls_certificate_set_x509_key_file(server.credentials, arguments[2], arguments[1],
                                           GNUTLS_X509_FMT_PEM) != 0 ||
      gnutls_priority_init(&server.priorities, kPriorities, nullptr) != 0) {
    Fail("expected a key, a certificate and priorities that GnuTLS knows");
  }
  server.streams = strtoull(arguments[3], nullptr, 10);
  server.has_retry = strcmp(arguments[4], "retry") == 0;
  server.socket = socket(AF_INET, SOCK_DGRAM, 0);
  server.local.sin_family = AF_INET;
  socklen_t length = sizeof server.local;
  auto* address = reinterpret_cast<sockaddr*>(&server.local);
  if (inet_pton(AF_INET, arguments[5], &server.local.sin_addr) != 1 ||
      bind(server.socket, address, length) != 0 ||
      getsockname(server.socket, address, &length) != 0) {
    Fail("expected an address of this machine");
  }
  printf("port %d\n", ntohs(server.local.sin_port));
}

/** Returns false at the end of the input. */
bool ReadCommand(Leader& leader) {
  char line[256];
  const ssize_t length = read(STDIN_FILENO, line, sizeof line - 1);
  if (length <= 0) return false;
  line[length] = '\0';
  unsigned long long code = 0;
  char reason[128] = "";
  if (sscanf(line, "close %llu %127s", &code, reason) == 2) leader.CloseAll(code, reason);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) Fail("expected KEY.pem CERTIFICATE.pem STREAMS (retry|direct) ADDRESS");
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Server server;
  Open(server, arguments);
  Leader leader(server);
  pollfd ready[] = {{server.socket, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  for (;;) {
    constexpr int kTickMs = 5;
    if (poll(ready, 2, kTickMs) < 0) Fail("poll");
    leader.Tick();
    if ((ready[0].revents & POLLIN) != 0) {
      uint8_t packet[2048];
      sockaddr_in from = {};
      socklen_t length = sizeof from;
      const ssize_t received = recvfrom(server.socket, packet, sizeof packet, 0,
                                        reinterpret_cast<sockaddr*>(&from), &length);
      if (received > 0) leader.Receive(packet, static_cast<size_t>(received), from);
    }
    if (ready[1].revents != 0 && !ReadCommand(leader)) return 0;
  }
}
