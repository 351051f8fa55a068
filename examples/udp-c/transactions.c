// Receives pushed transactions on a UDP port: prints one line for each, and a summary once a second.
//
//   cc -O2 -o transactions transactions.c && ./transactions 9001 [--bind ADDRESS] [--stream ID]
//   [--seconds S] [--count N] [--quiet]
//
// Answers the ownership challenges of the service, which verifies the address. Lines on stdout are
// "SLOT SHRED_INDEX BATCH_INDEX ORDINAL legacy|v0|v1 LENGTH SIGNATURE", with "vote", "resolved" or
// "unresolved" after them. Other lines begin with "withdrawal", "gap" or "end". The summary of each
// second is on stderr: "lost" counts missing numbers of the sequence that the service did not drop.
//
// Anyone can send datagrams to this port. With --stream, the streamId that startTransactionPush
// returned, only those of this push count. docs/transaction-push.md describes the datagrams.

#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
  kBatch = 64,
  kBuffer = 2048,  // a datagram has at most 1,296 bytes
  kHeaderBytes = 64,
  kSignatureBytes = 64,
  kChallengeBytes = 52,
  kAnswersPerSecond = 16,
  kReceiveBufferBytes = 8 << 20,
  kWaitUs = 100000,
  kSilenceSeconds = 10,  // a heartbeat arrives every two seconds
};

enum kind { kTransaction = 1, kWithdrawal, kGap, kHeartbeat, kEnd };
enum flag { kVote = 1, kVersion0 = 2, kVersion1 = 4, kResolved = 8, kUnresolved = 16 };

struct datagram {
  uint8_t kind;
  uint16_t flags;
  const uint8_t* stream_id;
  uint64_t sequence, slot;
  uint32_t shred_index, batch_index, ordinal, skipped, dropped;
  const uint8_t* payload;
  size_t payload_bytes;
};

struct counts {
  uint64_t transactions, withdrawals, gaps, bad, challenges;
  // Of the present push.
  bool has_stream;
  uint8_t stream_id[8];
  uint64_t next, missing;
  uint32_t first_dropped, dropped, skipped;
  double heard_us;
};

static volatile sig_atomic_t stopped;

static void stop(int signal_number) {
  (void)signal_number;
  stopped = 1;
}

// ---- the wire: little endian, no padding -------------------------------------------------------

static uint16_t u16_at(const uint8_t* p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t u32_at(const uint8_t* p) { return u16_at(p) | (uint32_t)u16_at(p + 2) << 16; }
static uint64_t u64_at(const uint8_t* p) { return u32_at(p) | (uint64_t)u32_at(p + 4) << 32; }

// 0 "SWTX"; 4 version; 5 kind; 6 flags; 8 stream id; 16 sequence; 24 slot; 32 time; 40 shred index;
// 44 batch index; 48 ordinal; 52 skipped; 56 dropped; 60 header bytes; 62 payload bytes.
static bool parse(const uint8_t* p, size_t length, struct datagram* out) {
  static const size_t payload_min[] = {0, 65, 40, 24, 8, 0};
  if (length < kHeaderBytes || memcmp(p, "SWTX\1", 5) != 0) return false;
  size_t header_bytes = u16_at(p + 60), payload_bytes = u16_at(p + 62);
  if (header_bytes < kHeaderBytes || header_bytes + payload_bytes != length) return false;
  if (p[5] < kTransaction || p[5] > kEnd || payload_bytes < payload_min[p[5]]) return false;
  *out = (struct datagram){.kind = p[5],
                           .flags = u16_at(p + 6),
                           .stream_id = p + 8,
                           .sequence = u64_at(p + 16),
                           .slot = u64_at(p + 24),
                           .shred_index = u32_at(p + 40),
                           .batch_index = u32_at(p + 44),
                           .ordinal = u32_at(p + 48),
                           .skipped = u32_at(p + 52),
                           .dropped = u32_at(p + 56),
                           .payload = p + header_bytes,
                           .payload_bytes = payload_bytes};
  return true;
}

// The first signature: after the number of signatures, or before the end in version 1.
static const uint8_t* signature_of(const struct datagram* one) {
  size_t signatures = one->payload[1] * (size_t)kSignatureBytes;
  if (!(one->flags & kVersion1)) return one->payload + 1;
  if (signatures == 0 || signatures > one->payload_bytes) return one->payload;
  return one->payload + one->payload_bytes - signatures;
}

// `out`: at least 89 bytes.
static void base58_of(const uint8_t signature[kSignatureBytes], char* out) {
  static const char digits[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  uint8_t number[88] = {0};
  size_t used = 0, zeros = 0;
  while (zeros < kSignatureBytes && signature[zeros] == 0) zeros++;
  for (size_t i = zeros; i < kSignatureBytes; i++) {
    uint32_t carry = signature[i];
    for (size_t j = 0; j < used || carry > 0; j++) {
      if (j == used) used++;
      carry += (uint32_t)number[j] << 8;
      number[j] = (uint8_t)(carry % 58);
      carry /= 58;
    }
  }
  size_t at = 0;
  for (; at < zeros; at++) out[at] = '1';
  while (used > 0) out[at++] = digits[number[--used]];
  out[at] = 0;
}

// ---- counting ----------------------------------------------------------------------------------

// Returns whether the datagram belongs to the present push. A new push begins after the end or the
// silence of the one before.
static bool is_ours(struct counts* counts, const struct datagram* one, double at_us, bool fixed) {
  bool same = counts->has_stream && memcmp(counts->stream_id, one->stream_id, 8) == 0;
  bool silent = at_us - counts->heard_us > kSilenceSeconds * 1e6;
  bool may_begin = fixed ? counts->heard_us == 0 : !counts->has_stream || silent;
  if (!same && (fixed || !may_begin)) return false;
  if (may_begin && (!same || fixed)) {
    counts->has_stream = true;
    memcpy(counts->stream_id, one->stream_id, 8);
    counts->next = one->sequence;
    counts->missing = 0;
    counts->first_dropped = one->dropped;
  }
  counts->heard_us = at_us;
  return true;
}

static void count(struct counts* counts, const struct datagram* one) {
  if (one->sequence >= counts->next) {
    counts->missing += one->sequence - counts->next;
    counts->next = one->sequence + 1;
    counts->skipped = one->skipped;
    counts->dropped = one->dropped - counts->first_dropped;
  } else if (counts->missing > 0) {
    counts->missing--;  // late, not lost
  }
  counts->transactions += one->kind == kTransaction;
  counts->withdrawals += one->kind == kWithdrawal;
  counts->gaps += one->kind == kGap;
}

static unsigned long long lost_of(const struct counts* counts) {
  return counts->missing > counts->dropped ? counts->missing - counts->dropped : 0;
}

static void report(const char* begin, const struct counts* counts) {
  fprintf(stderr,
          "%s  transactions %llu  lost %llu  dropped %u  too long %u  withdrawals %llu  bad %llu  "
          "challenges %llu\n",
          begin, (unsigned long long)counts->transactions, lost_of(counts), counts->dropped,
          counts->skipped, (unsigned long long)counts->withdrawals,
          (unsigned long long)counts->bad, (unsigned long long)counts->challenges);
}

static void print_datagram(const struct datagram* one) {
  unsigned long long slot = one->slot;
  if (one->kind == kTransaction) {
    char signature[kSignatureBytes * 2];
    base58_of(signature_of(one), signature);
    const char* version = one->flags & kVersion1 ? "v1" : one->flags & kVersion0 ? "v0" : "legacy";
    const char* lookups = one->flags & kResolved     ? " resolved"
                          : one->flags & kUnresolved ? " unresolved"
                                                     : "";
    printf("%llu %u %u %u %s %zu %s%s%s\n", slot, one->shred_index, one->batch_index, one->ordinal,
           version, one->payload_bytes, signature, one->flags & kVote ? " vote" : "", lookups);
  } else if (one->kind == kWithdrawal) {
    printf("withdrawal %llu before %u parent %llu\n", slot, one->batch_index,
           (unsigned long long)u64_at(one->payload));
  } else if (one->kind == kGap) {
    printf("gap %llu slots %llu to %llu\n", (unsigned long long)u64_at(one->payload),
           (unsigned long long)u64_at(one->payload + 8),
           (unsigned long long)u64_at(one->payload + 16));
  } else if (one->kind == kEnd) {
    printf("end %.*s\n", (int)one->payload_bytes, (const char*)one->payload);
  }
}

// ---- the socket --------------------------------------------------------------------------------

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static int open_socket(const char* bind_to, const char* port) {
  struct addrinfo hints = {.ai_socktype = SOCK_DGRAM,
                           .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
  struct addrinfo* found;
  int failure = getaddrinfo(bind_to, port, &hints, &found);
  if (failure) {
    fprintf(stderr, "expected an address and port, got %s %s: %s\n", bind_to, port,
            gai_strerror(failure));
    exit(2);
  }
  int fd = socket(found->ai_family, SOCK_DGRAM, 0);
  int bytes = kReceiveBufferBytes;
  struct timeval wait = {.tv_usec = kWaitUs};
  // The kernel grants at most net.core.rmem_max: `shredway doctor` recommends a value.
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0) {
    fprintf(stderr, "port %s of %s: %s\n", port, bind_to, strerror(errno));
    exit(1);
  }
  freeaddrinfo(found);
  return fd;
}

// Returns the datagram unchanged to its sender. True: it was a challenge.
static bool answer_challenge(int fd, const struct msghdr* message, size_t length,
                             int* answers_left) {
  const uint8_t* bytes = message->msg_iov->iov_base;
  if (length != kChallengeBytes || memcmp(bytes, "SWPROOF1", 8) != 0) return false;
  if (*answers_left > 0) {
    (*answers_left)--;
    sendto(fd, bytes, length, MSG_DONTWAIT, message->msg_name, message->msg_namelen);
  }
  return true;
}

struct options {
  const char *port, *bind_to;
  double seconds;
  uint64_t count;
  bool is_quiet, has_stream;
  uint8_t stream_id[8];
};

static void receive(int fd, const struct options* options) {
  static uint8_t buffers[kBatch][kBuffer];
  struct sockaddr_storage from[kBatch];
  struct iovec vectors[kBatch];
  struct mmsghdr messages[kBatch];
  struct counts counts = {.has_stream = options->has_stream};
  memcpy(counts.stream_id, options->stream_id, 8);
  int answers_left = kAnswersPerSecond;
  double begin_us = now_us(), second_us = begin_us;
  while (!stopped) {
    double at_us = now_us();
    if (at_us - second_us >= 1e6) {
      report("second:", &counts);
      second_us = at_us;
      answers_left = kAnswersPerSecond;
    }
    if (options->seconds > 0 && at_us - begin_us >= options->seconds * 1e6) break;
    if (options->count > 0 && counts.transactions >= options->count) break;
    for (int i = 0; i < kBatch; i++) {
      vectors[i] = (struct iovec){buffers[i], kBuffer};
      messages[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
                                            .msg_namelen = sizeof from[i],
                                            .msg_iov = &vectors[i],
                                            .msg_iovlen = 1};
    }
    int got = recvmmsg(fd, messages, kBatch, MSG_WAITFORONE, NULL);
    if (got < 0) continue;  // timeout, or a signal
    at_us = now_us();
    for (int i = 0; i < got; i++) {
      struct datagram one;
      if (parse(buffers[i], messages[i].msg_len, &one) &&
          is_ours(&counts, &one, at_us, options->has_stream)) {
        count(&counts, &one);
        if (!options->is_quiet) print_datagram(&one);
        if (one.kind == kEnd && !options->has_stream) counts.has_stream = false;
      } else if (answer_challenge(fd, &messages[i].msg_hdr, messages[i].msg_len, &answers_left)) {
        counts.challenges++;
      } else {
        counts.bad++;
      }
    }
    fflush(stdout);
  }
  report("total:", &counts);
}

static bool read_stream_id(const char* text, uint8_t out[8]) {
  for (int i = 0; i < 8; i++) {
    if (sscanf(text + 2 * i, "%2hhx", &out[i]) != 1) return false;
  }
  return strlen(text) == 16;
}

int main(int argc, char** argv) {
  struct options options = {.bind_to = "0.0.0.0"};
  for (int i = 1; i < argc; i++) {
    bool has_value = i + 1 < argc;
    if (strcmp(argv[i], "--quiet") == 0) {
      options.is_quiet = true;
    } else if (strcmp(argv[i], "--bind") == 0 && has_value) {
      options.bind_to = argv[++i];
    } else if (strcmp(argv[i], "--stream") == 0 && has_value && strlen(argv[i + 1]) == 16 &&
               read_stream_id(argv[i + 1], options.stream_id)) {
      options.has_stream = true;
      i++;
    } else if (strcmp(argv[i], "--seconds") == 0 && has_value) {
      options.seconds = strtod(argv[++i], NULL);
    } else if (strcmp(argv[i], "--count") == 0 && has_value) {
      options.count = strtoull(argv[++i], NULL, 10);
    } else if (!options.port && argv[i][0] != '-') {
      options.port = argv[i];
    } else {
      options.port = NULL;
      break;
    }
  }
  if (!options.port) {
    fprintf(stderr,
            "usage: %s PORT [--bind ADDRESS] [--stream ID] [--seconds S] [--count N] [--quiet]\n"
            "expected as ID: 16 hex digits, the streamId of startTransactionPush\n",
            argv[0]);
    return 2;
  }
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  int fd = open_socket(options.bind_to, options.port);
  fprintf(stderr, "receiving on %s port %s\n", options.bind_to, options.port);
  receive(fd, &options);
  close(fd);
  return 0;
}
