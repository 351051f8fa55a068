// Receives shreds on a UDP port: prints one line for each shred, and a summary once a second.
//
//   cc -O2 -o receive receive.c && ./receive 9001 [--bind ADDRESS] [--seconds S] [--count N]
//   [--quiet]
//
// Answers the ownership challenges of the service, which verifies the address. Lines on
// stdout are "SLOT INDEX data|code FEC_SET_INDEX VERSION" with "data_complete" and "last_in_slot"
// after them; the summary of each second is on stderr. Other packets are only counted.
// Signatures are not verified: that requires the leader schedule (`shredway listen --leaders`).
//
// Linux: up to 64 datagrams a system call, a large socket buffer, the kernel's receive times.

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
  kPacketMax = 1232,
  kBuffer = 2048,  // large enough to detect oversized packets
  kDataBytes = 1203,
  kCodeBytes = 1228,
  kFecSet = 32,
  kIndexMax = 32768,
  kChallengeBytes = 52,
  kAnswersPerSecond = 16,
  kSlots = 16,  // slots per second in memory; bounds it for forged shreds
  kReceiveBufferBytes = 8 << 20,
  kWaitUs = 100000,
};

struct shred {
  uint64_t slot;
  uint32_t index, fec_set_index;
  uint16_t version;
  bool is_data, data_complete, last_in_slot;
};

struct slot_count {
  uint64_t slot;
  uint64_t data, code;
};

struct counts {
  uint64_t shreds, bad, challenges, dropped_by_kernel;
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

// 83 data: u16 slot - parent slot; 85: flags; 86: u16 size of headers and ledger bytes.
static bool parse_data(const uint8_t* p, bool is_resigned, struct shred* out) {
  uint8_t flags = p[85];
  uint16_t parent_offset = u16_at(p + 83), size = u16_at(p + 86);
  out->data_complete = flags & 0x40;
  out->last_in_slot = (flags & 0xc0) == 0xc0;
  if ((flags & 0xc0) == 0x80) return false;
  if (out->data_complete && out->index % kFecSet != kFecSet - 1) return false;
  if (parent_offset > out->slot || (parent_offset == 0 && out->slot != 0)) return false;
  return size >= 88 && size <= (is_resigned ? 987 : 1051);
}

// 83 code: u16 number of data shreds; 85: u16 of code shreds; 87: u16 index among the code shreds.
static bool parse_code(const uint8_t* p, const struct shred* out) {
  if (u16_at(p + 83) != kFecSet || u16_at(p + 85) != kFecSet) return false;
  return u16_at(p + 87) == out->index - out->fec_set_index;
}

// 0 signature; 64 variant; 65 u64 slot; 73 u32 index; 77 u16 version; 79 u32 FEC set index. Bytes
// after the shred's own length are ignored. False: not a shred.
static bool parse_shred(const uint8_t* p, size_t length, struct shred* out) {
  if (length > kPacketMax || length < 65) return false;
  uint8_t variant = p[64];  // chained data and code, and the variants of a slot's last FEC set
  if (variant != 0x96 && variant != 0x66 && variant != 0xb6 && variant != 0x76) return false;
  out->is_data = variant & 0x80;
  if (length < (out->is_data ? kDataBytes : kCodeBytes)) return false;
  out->slot = u64_at(p + 65);
  out->index = u32_at(p + 73);
  out->version = u16_at(p + 77);
  out->fec_set_index = u32_at(p + 79);
  out->data_complete = out->last_in_slot = false;
  if (out->index >= kIndexMax || out->fec_set_index > kIndexMax - kFecSet) return false;
  if (out->fec_set_index % kFecSet != 0) return false;
  if (out->index < out->fec_set_index || out->index >= out->fec_set_index + kFecSet) return false;
  return out->is_data ? parse_data(p, variant == 0xb6, out) : parse_code(p, out);
}

// ---- counting ----------------------------------------------------------------------------------

// Returns the slot's entry; a new slot replaces the lowest one.
static void count_slot(struct slot_count slots[kSlots], const struct shred* shred) {
  struct slot_count* entry = &slots[0];
  for (int i = 0; i < kSlots; i++) {
    struct slot_count* one = &slots[i];
    bool is_free = one->data + one->code == 0;
    if (!is_free && one->slot == shred->slot) {
      entry = one;
      break;
    }
    bool entry_is_free = entry->data + entry->code == 0;
    if (!entry_is_free && (is_free || one->slot < entry->slot)) entry = one;
  }
  if (entry->slot != shred->slot) *entry = (struct slot_count){.slot = shred->slot};
  if (shred->is_data) {
    entry->data++;
  } else {
    entry->code++;
  }
}

static int by_slot(const void* a, const void* b) {
  uint64_t left = ((const struct slot_count*)a)->slot, right = ((const struct slot_count*)b)->slot;
  return (left > right) - (left < right);
}

static void report(struct slot_count slots[kSlots], const struct counts* counts, double rate,
                   double oldest_us) {
  fprintf(stderr, "%.0f/s  shreds %llu  bad %llu  challenges %llu  dropped by the kernel %llu",
          rate, (unsigned long long)counts->shreds, (unsigned long long)counts->bad,
          (unsigned long long)counts->challenges, (unsigned long long)counts->dropped_by_kernel);
  if (oldest_us > 0) fprintf(stderr, "  longest wait in the socket %.0f us", oldest_us);
  qsort(slots, kSlots, sizeof slots[0], by_slot);
  for (int i = 0; i < kSlots; i++) {
    if (slots[i].data + slots[i].code == 0) continue;
    fprintf(stderr, "  %llu: %llu data %llu code", (unsigned long long)slots[i].slot,
            (unsigned long long)slots[i].data, (unsigned long long)slots[i].code);
  }
  fputc('\n', stderr);
}

// ---- the socket --------------------------------------------------------------------------------

static double now_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
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
  int bytes = kReceiveBufferBytes, on = 1;
  struct timeval wait = {.tv_usec = kWaitUs};
  // The kernel grants at most net.core.rmem_max: `shredway doctor` recommends a value.
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
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

// Kernel receive time in microseconds since 1970; 0: unknown. Also reads the kernel's drops.
static double read_control(struct msghdr* message, struct counts* counts) {
  double received_us = 0;
  for (struct cmsghdr* c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    if (c->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec stamp;
      memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
      received_us = stamp.tv_sec * 1e6 + stamp.tv_nsec / 1e3;
    } else if (c->cmsg_type == SO_RXQ_OVFL) {
      uint32_t dropped;
      memcpy(&dropped, CMSG_DATA(c), sizeof dropped);
      counts->dropped_by_kernel = dropped;
    }
  }
  return received_us;
}

static void print_shred(const struct shred* shred) {
  printf("%llu %u %s %u %u%s%s\n", (unsigned long long)shred->slot, shred->index,
         shred->is_data ? "data" : "code", shred->fec_set_index, shred->version,
         shred->data_complete ? " data_complete" : "", shred->last_in_slot ? " last_in_slot" : "");
}

struct options {
  const char *port, *bind_to;
  double seconds;
  uint64_t count;
  bool is_quiet;
};

static void receive(int fd, const struct options* options) {
  static uint8_t buffers[kBatch][kBuffer];
  static uint8_t control[kBatch][256];
  struct sockaddr_storage from[kBatch];
  struct iovec vectors[kBatch];
  struct mmsghdr messages[kBatch];
  struct counts counts = {0};
  struct slot_count slots[kSlots] = {0};
  int answers_left = kAnswersPerSecond;
  double begin_us = now_us(CLOCK_MONOTONIC), second_us = begin_us, oldest_us = 0;
  uint64_t packets_before = 0;
  while (!stopped) {
    double at_us = now_us(CLOCK_MONOTONIC);
    uint64_t packets = counts.shreds + counts.bad;
    if (at_us - second_us >= 1e6) {
      report(slots, &counts, (packets - packets_before) / ((at_us - second_us) / 1e6), oldest_us);
      memset(slots, 0, sizeof slots);
      packets_before = packets;
      second_us = at_us;
      oldest_us = 0;
      answers_left = kAnswersPerSecond;
    }
    if (options->seconds > 0 && at_us - begin_us >= options->seconds * 1e6) break;
    if (options->count > 0 && packets >= options->count) break;
    for (int i = 0; i < kBatch; i++) {
      vectors[i] = (struct iovec){buffers[i], kBuffer};
      messages[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
                                            .msg_namelen = sizeof from[i],
                                            .msg_iov = &vectors[i],
                                            .msg_iovlen = 1,
                                            .msg_control = control[i],
                                            .msg_controllen = sizeof control[i]};
    }
    int got = recvmmsg(fd, messages, kBatch, MSG_WAITFORONE, NULL);
    if (got < 0) continue;  // timeout, or a signal
    double wall_us = now_us(CLOCK_REALTIME);
    for (int i = 0; i < got; i++) {
      double received_us = read_control(&messages[i].msg_hdr, &counts);
      if (received_us > 0 && wall_us - received_us > oldest_us) oldest_us = wall_us - received_us;
      struct shred shred;
      if (parse_shred(buffers[i], messages[i].msg_len, &shred)) {
        counts.shreds++;
        count_slot(slots, &shred);
        if (!options->is_quiet) print_shred(&shred);
      } else if (answer_challenge(fd, &messages[i].msg_hdr, messages[i].msg_len, &answers_left)) {
        counts.challenges++;
      } else {
        counts.bad++;
      }
    }
    fflush(stdout);
  }
  report(slots, &counts, 0, oldest_us);
  fprintf(stderr, "total: shreds %llu, bad %llu, challenges %llu\n",
          (unsigned long long)counts.shreds, (unsigned long long)counts.bad,
          (unsigned long long)counts.challenges);
}

int main(int argc, char** argv) {
  struct options options = {.bind_to = "0.0.0.0"};
  for (int i = 1; i < argc; i++) {
    bool has_value = i + 1 < argc;
    if (strcmp(argv[i], "--quiet") == 0) {
      options.is_quiet = true;
    } else if (strcmp(argv[i], "--bind") == 0 && has_value) {
      options.bind_to = argv[++i];
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
    fprintf(stderr, "usage: %s PORT [--bind ADDRESS] [--seconds S] [--count N] [--quiet]\n",
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
