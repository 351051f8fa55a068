// An independent client of the QUIC ingress, built with ngtcp2 and GnuTLS, for interoperability
// tests.
//
// Built and run by test/support/quic/interop/ngtcp2-client.ts; only for tests. GnuTLS presents the
// certificate and does not verify the server's, like the clients that customers use.
//
// Usage: ngtcp2-client ADDRESS PORT KEY.pem|- CERTIFICATE.pem|- PROTOCOL NAME
// Reads lines: "uni HEX" and "bidi HEX" send one complete stream, "begin HEX" starts a
// unidirectional stream without its end, "finish HEX" ends the oldest of them, "reset HEX" starts
// one and resets it, "close CODE" closes the connection. Writes one line for each event:
// "established", "response ID HEX", "end app|transport CODE REASON", "end reset", "end time", "end
// here".

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>

#include "ngtcp2-peer.h"

namespace {

constexpr char kPriorities[] =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+CHACHA20-POLY1305:"
    "-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:%DISABLE_TLS13_COMPAT_MODE";

/** One stream to send; its bytes stay until the end, because packets may be repeated. */
struct Stream {
  int64_t id = -1;
  bool is_bidi = false;
  bool has_end = true;
  bool is_reset = false;
  bool is_done = false;
  std::string bytes;
  size_t sent = 0;
};

struct Client {
  int socket = -1;
  sockaddr_storage local = {};
  sockaddr_storage remote = {};
  socklen_t address_length = 0;
  ngtcp2_conn* quic = nullptr;
  gnutls_session_t session = nullptr;
  gnutls_certificate_credentials_t credentials = nullptr;
  ngtcp2_crypto_conn_ref reference = {};
  std::deque<Stream> streams;
  std::map<int64_t, std::string> responses;
  std::string input;
  bool is_over = false;
};

[[noreturn]] void Fail(const char* what) {
  fprintf(stderr, "ngtcp2-client: %s\n", what);
  exit(1);
}

void End(Client& client, const std::string& how) {
  if (!client.is_over) printf("end %s\n", how.c_str());
  client.is_over = true;
}

Client& Of(void* user_data) { return *static_cast<Client*>(user_data); }

int HandshakeCompleted(ngtcp2_conn*, void*) {
  printf("established\n");
  return 0;
}

int ReceiveStreamData(ngtcp2_conn* quic, uint32_t flags, int64_t id, uint64_t, const uint8_t* data,
                      size_t length, void* user_data, void*) {
  Client& client = Of(user_data);
  std::string& response = client.responses[id];
  response.append(reinterpret_cast<const char*>(data), length);
  ngtcp2_conn_extend_max_offset(quic, length);
  ngtcp2_conn_extend_max_stream_offset(quic, id, length);
  if ((flags & NGTCP2_STREAM_DATA_FLAG_FIN) == 0) return 0;
  printf("response %lld ", static_cast<long long>(id));
  PrintHex(reinterpret_cast<const uint8_t*>(response.data()), response.size());
  client.responses.erase(id);
  return 0;
}

int StatelessReset(ngtcp2_conn*, const ngtcp2_pkt_stateless_reset*, void* user_data) {
  End(Of(user_data), "reset");
  return 0;
}

ngtcp2_callbacks MakeCallbacks() {
  ngtcp2_callbacks callbacks = CommonCallbacks();
  callbacks.client_initial = ngtcp2_crypto_client_initial_cb;
  callbacks.recv_retry = ngtcp2_crypto_recv_retry_cb;
  callbacks.handshake_completed = HandshakeCompleted;
  callbacks.recv_stream_data = ReceiveStreamData;
  callbacks.recv_stateless_reset = StatelessReset;
  return callbacks;
}

void OpenSocket(Client& client, const char* address, const char* port) {
  const bool is_ipv6 = strchr(address, ':') != nullptr;
  client.remote.ss_family = is_ipv6 ? AF_INET6 : AF_INET;
  client.address_length = is_ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&client.remote);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&client.remote);
  const auto number = htons(static_cast<uint16_t>(atoi(port)));
  if (is_ipv6) {
    v6->sin6_port = number;
  } else {
    v4->sin_port = number;
  }
  void* bytes = is_ipv6 ? static_cast<void*>(&v6->sin6_addr) : static_cast<void*>(&v4->sin_addr);
  client.socket = socket(client.remote.ss_family, SOCK_DGRAM, 0);
  socklen_t length = sizeof client.local;
  if (inet_pton(client.remote.ss_family, address, bytes) != 1 ||
      connect(client.socket, reinterpret_cast<sockaddr*>(&client.remote), client.address_length) !=
          0 ||
      getsockname(client.socket, reinterpret_cast<sockaddr*>(&client.local), &length) != 0) {
    Fail("expected an address that this machine reaches");
  }
}

ngtcp2_path PathOf(Client& client) {
  return {{reinterpret_cast<sockaddr*>(&client.local), client.address_length},
          {reinterpret_cast<sockaddr*>(&client.remote), client.address_length},
          nullptr};
}

void OpenSession(Client& client, char** arguments) {
  const std::string key = arguments[3];
  gnutls_certificate_allocate_credentials(&client.credentials);
  if (key != "-" && gnutls_certificate_set_x509_key_file(client.credentials, arguments[4],
                                                         arguments[3], GNUTLS_X509_FMT_PEM) != 0) {
    Fail("expected a certificate and its key");
  }
  if (!OpenClientSession(client.session, client.credentials, kPriorities, arguments[5]) ||
      gnutls_server_name_set(client.session, GNUTLS_NAME_DNS, arguments[6], strlen(arguments[6])) !=
          0) {
    Fail("expected settings that GnuTLS accepts");
  }
  BindSession(client);
}

void OpenConnection(Client& client) {
  const ngtcp2_settings settings = CommonSettings();
  ngtcp2_transport_params params;
  ngtcp2_transport_params_default(&params);
  params.initial_max_stream_data_bidi_local = 65536;
  params.initial_max_data = 1 << 20;
  params.max_idle_timeout = 60 * NGTCP2_SECONDS;
  const ngtcp2_cid dcid = RandomConnectionId();
  const ngtcp2_cid scid = RandomConnectionId();
  const ngtcp2_callbacks callbacks = MakeCallbacks();
  const ngtcp2_path path = PathOf(client);
  if (ngtcp2_conn_client_new(&client.quic, &dcid, &scid, &path, NGTCP2_PROTO_VER_V1, &callbacks,
                             &settings, &params, nullptr, &client) != 0) {
    Fail("expected a connection");
  }
  ngtcp2_conn_set_tls_native_handle(client.quic, client.session);
}

void Transmit(const Client& client, const uint8_t* packet, size_t length) {
  send(client.socket, packet, length, 0);
}

/** Names the error of the other side, or this side's own. */
void EndByClose(Client& client) {
  ngtcp2_connection_close_error close;
  ngtcp2_conn_get_connection_close_error(client.quic, &close);
  const bool is_app = close.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION;
  const std::string reason(reinterpret_cast<const char*>(close.reason), close.reasonlen);
  End(client, std::string(is_app ? "app " : "transport ") + std::to_string(close.error_code) + " " +
                  reason);
}

/** Opens the stream if the server grants it. */
bool IsOpen(Client& client, Stream& stream) {
  if (stream.id >= 0) return true;
  const int error = stream.is_bidi ? ngtcp2_conn_open_bidi_stream(client.quic, &stream.id, nullptr)
                                   : ngtcp2_conn_open_uni_stream(client.quic, &stream.id, nullptr);
  if (error != 0) stream.id = -1;
  return error == 0;
}

Stream* NextToSend(Client& client) {
  for (Stream& stream : client.streams) {
    if (!stream.is_done && IsOpen(client, stream)) return &stream;
  }
  return nullptr;
}

void Send(Client& client) {
  uint8_t packet[kPacketBytes];
  bool is_blocked = false;
  for (;;) {
    Stream* stream = is_blocked ? nullptr : NextToSend(client);
    ngtcp2_path_storage path;
    ngtcp2_path_storage_zero(&path);
    ngtcp2_pkt_info info;
    ngtcp2_ssize accepted = -1;
    ngtcp2_vec data = {};
    uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_NONE;
    if (stream != nullptr) {
      data.base = reinterpret_cast<uint8_t*>(stream->bytes.data()) + stream->sent;
      data.len = stream->bytes.size() - stream->sent;
      if (stream->has_end) flags |= NGTCP2_WRITE_STREAM_FLAG_FIN;
    }
    const ngtcp2_ssize length = ngtcp2_conn_writev_stream(
        client.quic, &path.path, &info, packet, sizeof packet, &accepted, flags,
        stream != nullptr ? stream->id : -1, &data, stream != nullptr ? 1 : 0, NowNs());
    if (stream != nullptr && accepted >= 0) {
      stream->sent += static_cast<size_t>(accepted);
      stream->is_done = stream->sent == stream->bytes.size();
      if (stream->is_done && stream->is_reset) {
        ngtcp2_conn_shutdown_stream(client.quic, stream->id, 7);
      }
    } else if (stream != nullptr && length < 0) {
      // Blocked by flow control, or stopped by the server.
      is_blocked = length == NGTCP2_ERR_STREAM_DATA_BLOCKED;
      stream->is_done = !is_blocked;
      continue;
    }
    if (length <= 0) break;
    Transmit(client, packet, static_cast<size_t>(length));
  }
  ngtcp2_conn_update_pkt_tx_time(client.quic, NowNs());
}

void Receive(Client& client) {
  uint8_t packet[2048];
  const ssize_t received = recv(client.socket, packet, sizeof packet, MSG_DONTWAIT);
  if (received <= 0) return;
  const ngtcp2_path path = PathOf(client);
  const ngtcp2_pkt_info info = {};
  const int error = ngtcp2_conn_read_pkt(client.quic, &path, &info, packet,
                                         static_cast<size_t>(received), NowNs());
  if (error == NGTCP2_ERR_DRAINING || ngtcp2_conn_is_in_draining_period(client.quic) != 0) {
    EndByClose(client);
  } else if (error != 0) {
    End(client, std::string("here ") + ngtcp2_strerror(error));
  }
}

void Close(Client& client, uint64_t code) {
  ngtcp2_connection_close_error close;
  ngtcp2_connection_close_error_default(&close);
  ngtcp2_connection_close_error_set_application_error(&close, code, nullptr, 0);
  uint8_t packet[kPacketBytes];
  ngtcp2_path_storage path;
  ngtcp2_path_storage_zero(&path);
  ngtcp2_pkt_info info;
  const ngtcp2_ssize length = ngtcp2_conn_write_connection_close(
      client.quic, &path.path, &info, packet, sizeof packet, &close, NowNs());
  if (length > 0) Transmit(client, packet, static_cast<size_t>(length));
  End(client, "here");
}

std::string BytesOf(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(strtol(hex.substr(i, 2).c_str(), nullptr, 16)));
  }
  return bytes;
}

void Finish(Client& client, const std::string& bytes) {
  for (Stream& stream : client.streams) {
    if (stream.has_end || stream.is_reset) continue;
    stream.bytes += bytes;
    stream.has_end = true;
    stream.is_done = false;
    return;
  }
}

void Execute(Client& client, const std::string& line) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
  if (name == "close") {
    Close(client, strtoull(value.c_str(), nullptr, 10));
  } else if (name == "finish") {
    Finish(client, BytesOf(value));
  } else {
    Stream stream;
    stream.is_bidi = name == "bidi";
    stream.has_end = name == "uni" || name == "bidi";
    stream.is_reset = name == "reset";
    stream.bytes = BytesOf(value);
    client.streams.push_back(stream);
  }
}

/** Returns false at the end of the input. */
bool ReadCommands(Client& client) {
  char bytes[65536];
  const ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
  if (length <= 0) return false;
  client.input.append(bytes, static_cast<size_t>(length));
  for (size_t end = client.input.find('\n'); end != std::string::npos && !client.is_over;
       end = client.input.find('\n')) {
    Execute(client, client.input.substr(0, end));
    client.input.erase(0, end + 1);
  }
  return true;
}

void Run(Client& client) {
  pollfd ready[] = {{client.socket, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  while (!client.is_over) {
    Send(client);
    constexpr int kTickMs = 5;
    if (poll(ready, 2, kTickMs) < 0) Fail("poll");
    if ((ready[0].revents & POLLIN) != 0) Receive(client);
    if (ready[1].revents != 0 && !ReadCommands(client)) return;
    if (client.is_over || ngtcp2_conn_get_expiry(client.quic) > NowNs()) continue;
    if (ngtcp2_conn_handle_expiry(client.quic, NowNs()) != 0) End(client, "time");
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 7) Fail("expected ADDRESS PORT KEY.pem CERTIFICATE.pem PROTOCOL NAME");
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Client client;
  OpenSocket(client, arguments[1], arguments[2]);
  OpenSession(client, arguments);
  OpenConnection(client);
  Run(client);
  return 0;
}
