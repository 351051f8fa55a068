// One connection of the QUIC load generator: ngtcp2 and GnuTLS, and its submissions.
//
// Used by quic_load.cc. Several transactions share a packet where they fit.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "../../../test/support/quic/interop/ngtcp2-peer.h"

namespace shredway::bench {

[[noreturn]] void fail(const char* what);

struct Files {
  const char* key;
  const char* certificate;
};

struct Submission {
  size_t index;
  uint64_t begun_ns;
  size_t sent = 0;
  std::string answer;
};

// Notified of complete answers.
struct Owner {
  virtual void answered(const Submission& submission, int status) = 0;
  // A packet with the last bytes of these submissions is passed to the kernel next.
  virtual void sending(const std::vector<size_t>& indexes) = 0;
  virtual ~Owner() = default;
};

class Connection {
 public:
  Connection(Owner& owner, const Files& files, uint16_t port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  bool established() const { return established_; }
  bool broken() const { return broken_; }
  size_t in_flight() const { return streams_.size(); }
  bool can_begin() const;
  void begin(size_t index, uint64_t begun_ns, const std::string& bytes);
  void receive_all();
  void flush();
  uint64_t expiry_ns() const { return broken_ ? UINT64_MAX : ngtcp2_conn_get_expiry(quic); }
  void expire();
  void leave();

  // Members that ngtcp2-peer.h uses.
  ngtcp2_conn* quic = nullptr;
  gnutls_session_t session = nullptr;
  ngtcp2_crypto_conn_ref reference = {};

 private:
  static int handshake_completed(ngtcp2_conn* conn, void* self);
  static int received(ngtcp2_conn* conn, uint32_t flags, int64_t id, uint64_t offset,
                      const uint8_t* data, size_t length, void* self, void* stream);
  void open_session(const Files& files);
  void open_connection();
  ngtcp2_path path();
  ngtcp2_ssize write(int64_t id, const std::string* bytes, Submission* submission, uint8_t* packet);

  Owner& owner_;
  int socket_ = -1;
  sockaddr_in local_ = {};
  sockaddr_in remote_ = {};
  gnutls_certificate_credentials_t credentials_ = nullptr;
  bool established_ = false;
  bool broken_ = false;
  std::unordered_map<int64_t, Submission> streams_;
  struct Waiting {
    int64_t id;
    const std::string* bytes;
  };
  std::deque<Waiting> waiting_;   // streams that are not completely sent
  std::vector<size_t> complete_;  // submissions whose last bytes are in the packet being filled
};

}  // namespace shredway::bench
