#include "sink.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "clocks.h"
#include "drivers.h"

namespace shredway::bench {

Sink::Sink(const ShredStream& stream, int cpu)
    : Sink(stream, open_loopback_socket({.times = true, .any_address = true}), cpu) {}

Sink::Sink(const ShredStream& stream, int fd, int cpu)
    : stream_(stream), fd_(fd), port_(local_port(fd_)), thread_([this, cpu] {
        pin(0, cpu);
        let_batches_form(0);
        while (!stopping_) {
          take_all();
          sleep_ns(1'000'000);
        }
      }) {}

Sink::~Sink() {
  stopping_ = true;
  thread_.join();
  close(fd_);
}

void Sink::expect(uint64_t begin, size_t count) {
  const std::lock_guard lock(mutex_);
  begin_ = begin;
  arrivals_.assign(count, SinkArrival{});
}

std::vector<SinkArrival> Sink::wait_for_arrivals(uint32_t destinations) {
  for (int i = 0; i < 40; i++) {
    sleep_ns(5'000'000);
    take_all();
    const std::lock_guard lock(mutex_);
    if (std::all_of(arrivals_.begin(), arrivals_.end(),
                    [&](const SinkArrival& arrival) { return arrival.copies >= destinations; }))
      break;
  }
  const std::lock_guard lock(mutex_);
  return arrivals_;
}

void Sink::take_all() {
  const std::lock_guard lock(mutex_);
  while (true) {
    for (size_t i = 0; i < kAtOnce; i++) {
      parts_[i] = {heads_[i].data(), kHeadBytes};
      messages_[i].msg_hdr = {nullptr, 0, &parts_[i], 1, controls_[i].data(), kControlBytes, 0};
    }
    const int received = recvmmsg(fd_, messages_.data(), kAtOnce, MSG_DONTWAIT, nullptr);
    if (received <= 0) return;
    for (size_t i = 0; i < static_cast<size_t>(received); i++) note(i);
  }
}

void Sink::note(size_t i) {
  const cmsghdr* control = CMSG_FIRSTHDR(&messages_[i].msg_hdr);
  if (!control || control->cmsg_type != SCM_TIMESTAMPNS) return;
  timespec time;
  std::memcpy(&time, CMSG_DATA(control), sizeof time);
  const uint64_t now_ns =
      static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
  const uint64_t place = stream_.number_of(heads_[i].data()) - begin_;
  if (place >= arrivals_.size()) return;
  SinkArrival& arrival = arrivals_[place];
  if (arrival.copies++ == 0) arrival.first_ns = now_ns;
  arrival.first_ns = std::min(arrival.first_ns, now_ns);
  arrival.last_ns = std::max(arrival.last_ns, now_ns);
}

}  // namespace shredway::bench
