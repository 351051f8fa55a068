// Common parts of the programs with ngtcp2 and GnuTLS: clock, chance, connection ids, callbacks,
// TLS sessions and their binding.
//
// Included by ngtcp2-client.cc, ngtcp2-leader.cc and programs of the bench.
#pragma once

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

inline constexpr size_t kConnectionIdBytes = 18;
inline constexpr size_t kPacketBytes = 1280;

inline uint64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * NGTCP2_SECONDS + static_cast<uint64_t>(now.tv_nsec);
}

inline void PrintHex(const uint8_t* bytes, size_t length) {
  for (size_t i = 0; i < length; i++) printf("%02x", bytes[i]);
  printf("\n");
}

inline void Random(uint8_t* bytes, size_t length, const ngtcp2_rand_ctx*) {
  gnutls_rnd(GNUTLS_RND_RANDOM, bytes, length);
}

inline ngtcp2_cid RandomConnectionId() {
  ngtcp2_cid id = {};
  id.datalen = kConnectionIdBytes;
  Random(id.data, id.datalen, nullptr);
  return id;
}

inline int NewConnectionId(ngtcp2_conn*, ngtcp2_cid* id, uint8_t* token, size_t length, void*) {
  gnutls_rnd(GNUTLS_RND_RANDOM, id->data, length);
  gnutls_rnd(GNUTLS_RND_RANDOM, token, NGTCP2_STATELESS_RESET_TOKENLEN);
  id->datalen = length;
  return 0;
}

/** The callbacks of either role. Each program adds its own. */
inline ngtcp2_callbacks CommonCallbacks() {
  ngtcp2_callbacks callbacks = {};
  callbacks.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb;
  callbacks.encrypt = ngtcp2_crypto_encrypt_cb;
  callbacks.decrypt = ngtcp2_crypto_decrypt_cb;
  callbacks.hp_mask = ngtcp2_crypto_hp_mask_cb;
  callbacks.update_key = ngtcp2_crypto_update_key_cb;
  callbacks.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb;
  callbacks.delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb;
  callbacks.get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb;
  callbacks.version_negotiation = ngtcp2_crypto_version_negotiation_cb;
  callbacks.rand = Random;
  callbacks.get_new_connection_id = NewConnectionId;
  return callbacks;
}

inline ngtcp2_settings CommonSettings() {
  ngtcp2_settings settings;
  ngtcp2_settings_default(&settings);
  settings.initial_ts = NowNs();
  settings.max_tx_udp_payload_size = kPacketBytes;
  return settings;
}

/** Opens the TLS session of a client. Returns false if GnuTLS rejects a setting. */
inline bool OpenClientSession(gnutls_session_t& session,
                              gnutls_certificate_credentials_t credentials, const char* priorities,
                              const char* protocol) {
  const gnutls_datum_t protocol_bytes = {
      reinterpret_cast<unsigned char*>(const_cast<char*>(protocol)),
      static_cast<unsigned>(strlen(protocol))};
  return gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NO_END_OF_EARLY_DATA) == 0 &&
         gnutls_priority_set_direct(session, priorities, nullptr) == 0 &&
         ngtcp2_crypto_gnutls_configure_client_session(session) == 0 &&
         gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials) == 0 &&
         gnutls_alpn_set_protocols(session, &protocol_bytes, 1, GNUTLS_ALPN_MANDATORY) == 0;
}

/** The TLS session of `peer` finds its QUIC connection; both are members `session` and `quic`. */
template <typename Peer>
void BindSession(Peer& peer) {
  peer.reference.get_conn = [](ngtcp2_crypto_conn_ref* reference) {
    return static_cast<Peer*>(reference->user_data)->quic;
  };
  peer.reference.user_data = &peer;
  gnutls_session_set_ptr(peer.session, &peer.reference);
}
