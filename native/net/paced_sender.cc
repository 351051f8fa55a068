#include "net/paced_sender.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "net/udp_batch.h"

namespace shredway {
namespace {

// Shorter waits sleep without a wake-up; longer ones can be interrupted.
constexpr uint64_t kShortWait_ns = 2'000'000;
constexpr uint64_t kLongWaitMax_ns = 1'000'000'000;
constexpr int kFullBufferWait_ms = 50;
constexpr uint32_t kAttemptsPerDatagramMax = 16;

uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

bool is_unspecified(const Endpoint& endpoint) {
  return endpoint == any_endpoint(true) || endpoint == any_endpoint(false);
}

// Checks that all offsets and times are consistent.
bool is_well_formed(const PacedPackets& packets) {
  return packets.offsets.size() == packets.times_ns.size() + 1 &&
         std::is_sorted(packets.offsets.begin(), packets.offsets.end()) &&
         packets.offsets.back() <= packets.bytes.size();
}

// The due packets of a list as messages of one call. The socket is connected, so they need no
// address.
struct Burst {
  std::array<iovec, kSendBatchMax> parts;
  std::array<mmsghdr, kSendBatchMax> headers;
  unsigned count = 0;

  void fill(const PacedPackets& packets, size_t begin, size_t end) {
    count = static_cast<unsigned>(end - begin);
    for (size_t i = 0; i < count; i++) {
      const uint32_t at = packets.offsets[begin + i];
      // The kernel only reads it.
      parts[i] = {const_cast<uint8_t*>(packets.bytes.data()) + at,
                  packets.offsets[begin + i + 1] - at};
      headers[i] = {};
      headers[i].msg_hdr.msg_iov = &parts[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
  }
};

}  // namespace

std::unique_ptr<PacedSender> PacedSender::open(const PacedSenderOptions& options,
                                               std::string& error, const SocketCalls& calls) {
  const bool chosen = !is_unspecified(options.from);
  if (options.to.port == 0) {
    error = "expected an address with a port to send to, got " + to_string(options.to);
    return nullptr;
  }
  if (chosen && options.from.is_ipv4() != options.to.is_ipv4()) {
    error = "expected source and destination of the same address family, got " +
            to_string(options.from) + " and " + to_string(options.to);
    return nullptr;
  }
  SocketResult result = open_send_socket(
      {chosen ? options.from : any_endpoint(options.to.is_ipv4()), options.buffer_bytes});
  error = result.error;
  if (error.empty()) error = connect_socket(result.socket.fd(), options.to);
  if (!error.empty()) return nullptr;
  std::unique_ptr<PacedSender> sender(new PacedSender(std::move(result.socket), calls));
  error = sender->thread_.start<&PacedSender::run>(sender.get(), "shredway-paced");
  if (!error.empty()) return nullptr;
  return sender;
}

PacedSender::PacedSender(UdpSocket socket, const SocketCalls& calls)
    : socket_(std::move(socket)), calls_(calls) {}

PacedSender::~PacedSender() { stop(); }

void PacedSender::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool PacedSender::enqueue(PacedPackets packets) {
  if (!is_well_formed(packets)) return false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    queued_ += packets.times_ns.size();
    lists_.push_back(std::move(packets));
  }
  wake_.notify_all();
  return true;
}

PacedSenderCounts PacedSender::counts() const {
  // No send follows the last datagrams, so read the error that they caused here.
  if (may_come_from_icmp(take_pending_error(socket_.fd()))) refused_++;
  return {sent_.load(), failed_.load(), refused_.load(), late_max_ns_.load(), queued_.load()};
}

Endpoint PacedSender::local() const { return local_endpoint(socket_.fd()); }

void PacedSender::run() {
  prctl(PR_SET_TIMERSLACK, 1);  // the default slack would let it sleep 50 us longer
  PacedPackets packets;
  while (next_list(packets)) play(packets);
  queued_ = 0;
}

bool PacedSender::next_list(PacedPackets& packets) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_ || !lists_.empty(); });
  if (stopping_) return false;
  packets = std::move(lists_.front());
  lists_.pop_front();
  return true;
}

void PacedSender::play(const PacedPackets& packets) {
  const uint64_t start_ns = now_ns();
  const std::vector<uint64_t>& times_ns = packets.times_ns;
  for (size_t position = 0; position < times_ns.size() && !stopping_;) {
    const uint64_t elapsed_ns = now_ns() - start_ns;
    if (elapsed_ns < times_ns[position]) {
      wait(start_ns + elapsed_ns, times_ns[position] - elapsed_ns);
      continue;
    }
    late_max_ns_ = std::max(late_max_ns_.load(), elapsed_ns - times_ns[position]);
    size_t end = position + 1;
    while (end < times_ns.size() && end - position < kSendBatchMax && times_ns[end] <= elapsed_ns)
      end++;
    send(packets, position, end);
    position = end;
  }
}

// Sleeps for `wait_ns` after `from_ns`, or less.
void PacedSender::wait(uint64_t from_ns, uint64_t wait_ns) {
  if (wait_ns <= kShortWait_ns) {
    const uint64_t until_ns = from_ns + wait_ns;
    const timespec until = {static_cast<time_t>(until_ns / 1'000'000'000u),
                            static_cast<long>(until_ns % 1'000'000'000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    return;
  }
  const uint64_t most_ns = std::min(wait_ns - kShortWait_ns / 2, kLongWaitMax_ns);
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::nanoseconds(most_ns), [this] { return stopping_.load(); });
}

void PacedSender::send(const PacedPackets& packets, size_t begin, size_t end) {
  Burst burst;
  burst.fill(packets, begin, end);
  uint32_t attempts = 0;
  for (unsigned position = 0; position < burst.count && !stopping_;) {
    const int result = calls_.sendmmsg(socket_.fd(), &burst.headers[position],
                                       burst.count - position, MSG_DONTWAIT);
    const int error_number = result < 0 ? errno : 0;
    if (result > 0) {
      const unsigned sent = std::min(static_cast<unsigned>(result), burst.count - position);
      sent_ += sent;
      queued_ -= sent;
      position += sent;
      attempts = 0;
      continue;
    }
    if (attempts == 0 && may_come_from_icmp(error_number)) refused_++;
    if (++attempts >= kAttemptsPerDatagramMax || !may_try_again(error_number)) {
      failed_++;
      queued_--;
      position++;
      attempts = 0;
    }
  }
}

// Waits for space if the send buffer is full; returns false for any other error.
bool PacedSender::may_try_again(int error_number) {
  if (error_number != EAGAIN) return error_number == EINTR || may_come_from_icmp(error_number);
  pollfd entry = {socket_.fd(), POLLOUT, 0};
  const int ready = calls_.poll(&entry, 1, kFullBufferWait_ms);
  return ready > 0 || (ready < 0 && errno == EINTR);
}

}  // namespace shredway
