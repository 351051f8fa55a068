#include "route_support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "check.h"
#include "net/thread.h"

namespace shredway::test {
namespace {

constexpr auto kPatience = std::chrono::seconds(3);  // less than the interval of the full refresh
constexpr const char* kOwnNamespace = "/proc/thread-self/ns/net";

// Creates a namespace for this thread; returns -1 on failure.
int new_namespace() {
  return unshare(CLONE_NEWNET) == 0 ? open(kOwnNamespace, O_RDONLY | O_CLOEXEC) : -1;
}

void run_ip(const std::string& lines) {
  FILE* pipe = popen("ip -batch -", "w");
  CHECK(pipe != nullptr);
  if (!pipe) return;
  std::fwrite(lines.data(), 1, lines.size(), pipe);
  if (pclose(pipe) != 0)
    report_failure(__FILE__, __LINE__, "ip(8) refused one of these lines:\n" + lines);
}

std::string pair_of_digits(int number) {
  char text[8];
  std::snprintf(text, sizeof text, "%02x", static_cast<unsigned>(number) & 0xff);
  return text;
}

}  // namespace

// ---- the lab --------------------------------------------------------------------------------

bool Lab::run(const std::function<void(Lab&)>& body) {
  bool ran = false;
  std::thread thread([&] {
    const int theirs = new_namespace();
    const int ours = theirs >= 0 ? new_namespace() : -1;
    if (ours >= 0 && std::system("ip link set lo up 2>/dev/null && "
                                 "ip link add shw0 type veth peer name shw1 2>/dev/null && "
                                 "ip link del shw0 2>/dev/null") == 0) {
      ran = true;
      Lab lab(ours, theirs);
      lab.ip_theirs("link set lo up\n");
      body(lab);
    }
    if (ours >= 0) close(ours);
    if (theirs >= 0) close(theirs);
  });
  thread.join();
  return ran;
}

void Lab::in_theirs(const std::function<void()>& body) const {
  CHECK_EQ(setns(theirs_, CLONE_NEWNET), 0);
  body();
  CHECK_EQ(setns(ours_, CLONE_NEWNET), 0);
}

void Lab::ip(const std::string& lines) const { run_ip(lines); }
void Lab::ip_theirs(const std::string& lines) const {
  in_theirs([&] { run_ip(lines); });
}

void Lab::set(const std::string& path, const std::string& value) const {
  const int fd = ::open(("/proc/sys/net/" + path).c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && write(fd, value.data(), value.size()) == ssize_t(value.size());
  if (fd >= 0) close(fd);
  CHECK(written);
}

void Lab::cable(const std::string& name, int number) const {
  const std::string digits = pair_of_digits(number);
  const auto quick = [&] {  // without duplicate address detection, which takes a second
    set("ipv6/conf/" + name + "/accept_dad", "0");
    run_ip("link set " + name + " up\n");
  };
  // ip(8) takes a path for a namespace; use this process's descriptor.
  run_ip("link add " + name + " address 02:00:00:00:00:" + digits + " type veth peer name " + name +
         " address 02:00:00:00:01:" + digits + " netns /proc/" + std::to_string(getpid()) + "/fd/" +
         std::to_string(theirs_) + "\n");
  in_theirs(quick);
  quick();
}

uint32_t Lab::interface(const std::string& name) const { return if_nametoindex(name.c_str()); }

// ---- addresses ------------------------------------------------------------------------------

AddressBytes address_of(const std::string& text) {
  AddressBytes bytes{};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  bytes[10] = bytes[11] = 0xff;
  CHECK_EQ(inet_pton(AF_INET, text.c_str(), bytes.data() + 12), 1);
  return bytes;
}

MacAddress mac_of(const std::string& text) {
  MacAddress mac{};
  for (size_t i = 0; i < mac.size(); i++)
    mac[i] = static_cast<uint8_t>(std::strtoul(text.substr(i * 3, 2).c_str(), nullptr, 16));
  return mac;
}

std::string text_of(const MacAddress& mac) {
  std::string text;
  for (const uint8_t byte : mac) text += (text.empty() ? "" : ":") + pair_of_digits(byte);
  return text;
}

// ---- the watch ------------------------------------------------------------------------------

WatchedHops::WatchedHops(NextHopWatchOptions options) {
  options.publish = [this](std::shared_ptr<const NextHops> table) { publish(std::move(table)); };
  std::string error;
  watch_ = NextHopWatch::start(std::move(options), error);
  CHECK_EQ(error, std::string());
}

WatchedHops::~WatchedHops() {
  unblock();
  watch_.reset();
}

void WatchedHops::publish(std::shared_ptr<const NextHops> table) {
  std::unique_lock lock(mutex_);
  if (table_ && table_->entries() == table->entries())
    report_failure(__FILE__, __LINE__, "the same table was published twice");
  table_ = std::move(table);
  tables_published_++;
  last_published_ns_ = clock_ns(CLOCK_MONOTONIC);
  blocked_ = block_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !block_; });
  blocked_ = false;
}

void WatchedHops::set_addresses(const std::vector<std::string>& addresses) {
  std::vector<AddressBytes> wanted;
  for (const std::string& address : addresses) wanted.push_back(address_of(address));
  watch_->set_addresses(std::move(wanted));
}

bool WatchedHops::wait(const std::function<bool(const NextHops&)>& holds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return table_ && holds(*table_); });
}

std::string WatchedHops::wait_for(const std::string& address, NextHopState state) {
  const AddressBytes bytes = address_of(address);
  const bool has_state = wait([&](const NextHops& table) {
    const NextHops::Entry* entry = table.find(bytes);
    return entry && entry->state == state;
  });
  if (has_state) return "";
  const auto last = table();
  const NextHops::Entry* entry = last ? last->find(bytes) : nullptr;
  return address + " should be " + next_hop_state_name(state) + ", is " +
         (entry ? next_hop_state_name(entry->state) : "not there");
}

std::string WatchedHops::wait_for_hop(const std::string& address, uint32_t interface,
                                      const std::string& mac) {
  const AddressBytes bytes = address_of(address);
  const MacAddress to = mac_of(mac);
  const bool has_state = wait([&](const NextHops& table) {
    const NextHops::Entry* entry = table.find(bytes);
    return entry && entry->state == NextHopState::resolved && entry->hop.interface == interface &&
           entry->hop.to == to;
  });
  if (has_state) return "";
  const auto last = table();
  const NextHops::Entry* entry = last ? last->find(bytes) : nullptr;
  if (!entry) return address + " is not there";
  return address + " should go to " + mac + " through interface " + std::to_string(interface) +
         ", is " + next_hop_state_name(entry->state) + " to " + text_of(entry->hop.to) +
         " through " + std::to_string(entry->hop.interface);
}

std::shared_ptr<const NextHops> WatchedHops::table() {
  const std::lock_guard lock(mutex_);
  return table_;
}
uint64_t WatchedHops::tables_published() {
  const std::lock_guard lock(mutex_);
  return tables_published_;
}
uint64_t WatchedHops::last_published_ns() {
  const std::lock_guard lock(mutex_);
  return last_published_ns_;
}

void WatchedHops::block() {
  const std::lock_guard lock(mutex_);
  block_ = true;
}
void WatchedHops::unblock() {
  const std::lock_guard lock(mutex_);
  block_ = false;
  changed_.notify_all();
}
bool WatchedHops::blocked_now() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return blocked_; });
}

}  // namespace shredway::test
