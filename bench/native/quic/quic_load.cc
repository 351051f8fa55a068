// QUIC load generator for the bench of the QUIC ingress: ngtcp2 and GnuTLS, one thread.
//
// Built by bench/load/quic-load.ts, apart from shredway_bench, because it needs Debian's
// libngtcp2-dev and libngtcp2-crypto-gnutls-dev.
//
// Usage: quic_load KEY.pem CERTIFICATE.pem. Commands on standard input, one line of answer each:
//
//   load PORT CONNECTIONS SECONDS RATE FILE PID…
//       submits the transactions of FILE (base64, one for each line) on bidirectional streams;
//       RATE 0: as fast as the server grants streams
//   statuses FILE
//       writes the status of every transaction of the last load, one for each line; 0: no answer
//   arrivals FILE
//       reports when the transactions of the last load reached a route ("NAME NS" lines)
//   idle PORT CONNECTIONS SECONDS PID…
//       opens connections and only keeps them alive
//
// PID…: processes whose processor time and memory are measured. With a rate, the time of a
// submission begins when it was due, so that a stalling server cannot hide its delay.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "../clocks.h"
#include "../report_line.h"
#include "quic_connection.h"

namespace shredway::bench {
namespace {

constexpr uint64_t kHandshakes_ns = 60'000'000'000;
constexpr uint64_t kLastAnswers_ns = 2'000'000'000;
constexpr uint64_t kSettle_ns = 2'000'000'000;
// Clients pace the packets of a new connection by an assumed round-trip time, 26 ms apart.
constexpr uint64_t kHandshakesEnd_ns = 200'000'000;
constexpr size_t kNameLength = 24;  // as in http_sink.h
constexpr size_t kHandshakesAtOnce = 32;

// The connections of one command, and their events.
class Connections {
 public:
  Connections(Owner& owner, const Files& files, uint16_t port, size_t count);
  ~Connections();
  std::vector<std::unique_ptr<Connection>>& all() { return all_; }
  size_t established() const;
  size_t broken() const;
  // Waits for packets until a timer is due, `max_ms` at most. Returns the number of events.
  int work(int max_ms);
  void work_until(uint64_t end_ns);

 private:
  std::vector<std::unique_ptr<Connection>> all_;
  int epoll_ = -1;
};

Connections::Connections(Owner& owner, const Files& files, uint16_t port, size_t count) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  const uint64_t end_ns = NowNs() + kHandshakes_ns;
  while (all_.size() < count || established() < count) {
    if (all_.size() < count && all_.size() - established() < kHandshakesAtOnce) {
      all_.push_back(std::make_unique<Connection>(owner, files, port));
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = all_.back().get();
      epoll_ctl(epoll_, EPOLL_CTL_ADD, all_.back()->socket(), &event);
      if (all_.size() - established() < kHandshakesAtOnce && all_.size() < count) continue;
    }
    work(5);
    if (broken() > 0 || NowNs() > end_ns) fail("expected connections, but the server closed one");
  }
}

Connections::~Connections() {
  for (auto& connection : all_) connection->leave();
  close(epoll_);
}

size_t Connections::established() const {
  return static_cast<size_t>(std::count_if(all_.begin(), all_.end(),
                                           [](const auto& each) { return each->established(); }));
}

size_t Connections::broken() const {
  return static_cast<size_t>(
      std::count_if(all_.begin(), all_.end(), [](const auto& each) { return each->broken(); }));
}

int Connections::work(int max_ms) {
  uint64_t due_ns = UINT64_MAX;
  for (const auto& connection : all_) due_ns = std::min(due_ns, connection->expiry_ns());
  const uint64_t now_ns = NowNs();
  const uint64_t rest_ms = due_ns <= now_ns ? 0 : (due_ns - now_ns) / 1'000'000 + 1;
  epoll_event events[256];
  const int count =
      epoll_wait(epoll_, events, 256,
                 static_cast<int>(std::min<uint64_t>(rest_ms, static_cast<uint64_t>(max_ms))));
  for (int i = 0; i < count; i++) {
    auto& connection = *static_cast<Connection*>(events[i].data.ptr);
    connection.receive_all();
    connection.flush();
  }
  if (due_ns > NowNs()) return count;
  for (const auto& connection : all_)
    if (connection->expiry_ns() <= NowNs()) connection->expire();
  return count;
}

void Connections::work_until(uint64_t end_ns) {
  while (NowNs() < end_ns) work(50);
}

std::vector<pid_t> pids_in(std::istringstream& words) {
  std::vector<pid_t> pids;
  for (pid_t pid = 0; words >> pid;) pids.push_back(pid);
  return pids;
}

uint64_t cpu_ns_of(const std::vector<pid_t>& pids) {
  uint64_t sum = 0;
  for (const pid_t pid : pids) sum += process_cpu_ns(pid);
  return sum;
}

uint64_t resident_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string decoded(const std::string& text) {
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) break;
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>(bits >> held & 0xff));
  }
  return bytes;
}

uint64_t percentile_of(std::vector<uint64_t> values, double part) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<long>(rank), values.end());
  return values[rank];
}

class Load : public Owner {
 public:
  Load(const Files& files, std::istringstream& words);
  void run();
  void print_arrivals(const std::string& file) const;
  void write_statuses(const std::string& file) const;
  void answered(const Submission& submission, int status) override;
  void sending(const std::vector<size_t>& indexes) override;

 private:
  void start_due(uint64_t now_ns);
  bool more(uint64_t now_ns) const { return next_ < wires_.size() && now_ns < end_ns_; }
  size_t in_flight() const;

  const Files& files_;
  uint16_t port_ = 0;
  size_t connections_ = 0;
  double seconds_ = 0;
  double rate_ = 0;
  std::vector<pid_t> pids_;
  std::vector<std::string> names_;
  std::vector<std::string> wires_;
  std::vector<uint64_t> begun_ns_;
  std::vector<uint64_t> sent_ns_;
  std::vector<int> statuses_;
  std::vector<uint64_t> latencies_ns_;
  Connections* group_ = nullptr;
  size_t next_ = 0;
  size_t turn_ = 0;
  uint64_t start_ns_ = 0;
  uint64_t end_ns_ = 0;
  uint64_t accepted_ = 0, limited_ = 0, refused_ = 0;
};

Load::Load(const Files& files, std::istringstream& words) : files_(files) {
  std::string path;
  words >> port_ >> connections_ >> seconds_ >> rate_ >> path;
  pids_ = pids_in(words);
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    names_.push_back(text.substr(0, kNameLength));
    wires_.push_back(decoded(text));
  }
  begun_ns_.resize(wires_.size());
  sent_ns_.resize(wires_.size());
  statuses_.resize(wires_.size());
}

void Load::answered(const Submission& submission, int status) {
  latencies_ns_.push_back(monotonic_ns() - submission.begun_ns);
  statuses_[submission.index] = status;
  if (status == 200) accepted_++;
  else if (status == 429) limited_++;
  else refused_++;
}

void Load::sending(const std::vector<size_t>& indexes) {
  const uint64_t now_ns = monotonic_ns();
  for (const size_t index : indexes) sent_ns_[index] = now_ns;
}

size_t Load::in_flight() const {
  size_t sum = 0;
  for (const auto& connection : group_->all())
    if (!connection->broken()) sum += connection->in_flight();
  return sum;
}

// Gives the next transactions to the connections in turn.
void Load::start_due(uint64_t now_ns) {
  const auto& all = group_->all();
  std::vector<bool> touched(all.size());
  for (size_t idle = 0; idle < all.size() && more(now_ns);) {
    uint64_t due_ns = now_ns;
    if (rate_ > 0) {
      due_ns = start_ns_ + static_cast<uint64_t>(static_cast<double>(next_) * 1e9 / rate_);
      if (due_ns > now_ns) break;
    }
    const size_t at = turn_++ % all.size();
    if (!all[at]->can_begin()) {
      idle++;
      continue;
    }
    idle = 0;
    begun_ns_[next_] = due_ns;
    all[at]->begin(next_, due_ns, wires_[next_]);
    touched[at] = true;
    next_++;
  }
  for (size_t i = 0; i < all.size(); i++)
    if (touched[i]) all[i]->flush();
}

void Load::run() {
  Connections group(*this, files_, port_, connections_);
  group_ = &group;
  group.work_until(NowNs() + kHandshakesEnd_ns);
  const uint64_t cpu_before_ns = cpu_ns_of(pids_);
  start_ns_ = monotonic_ns();
  end_ns_ = start_ns_ + static_cast<uint64_t>(seconds_ * 1e9);
  while (true) {
    const uint64_t now_ns = monotonic_ns();
    if (now_ns > end_ns_ + kLastAnswers_ns) break;
    if (!more(now_ns) && in_flight() == 0) break;
    start_due(now_ns);
    const int count = group.work(rate_ > 0 ? 0 : 100);
    if (count == 0 && rate_ > 0) sleep_ns(20'000);
  }
  const uint64_t elapsed_ns = monotonic_ns() - start_ns_;
  const uint64_t cpu_ns = cpu_ns_of(pids_) - cpu_before_ns;
  ReportLine line("load");
  line.count("answered", latencies_ns_.size()).count("accepted", accepted_);
  line.count("limited", limited_).count("refused", refused_);
  line.count("unanswered", next_ - latencies_ns_.size()).count("broken", group.broken());
  line.count("elapsed_ns", elapsed_ns).count("cpu_ns", cpu_ns);
  line.count("p50_ns", percentile_of(latencies_ns_, 0.5));
  line.count("p99_ns", percentile_of(latencies_ns_, 0.99)).print();
  group_ = nullptr;
}

void Load::print_arrivals(const std::string& path) const {
  std::unordered_map<std::string, uint64_t> arrivals;
  std::ifstream file(path);
  std::string name;
  for (uint64_t at_ns = 0; file >> name >> at_ns;) arrivals.emplace(name, at_ns);
  std::vector<uint64_t> to_route_ns;
  std::vector<uint64_t> sent_to_route_ns;
  for (size_t i = 0; i < next_; i++) {
    const auto found = arrivals.find(names_[i]);
    if (found == arrivals.end()) continue;
    to_route_ns.push_back(found->second - begun_ns_[i]);
    sent_to_route_ns.push_back(found->second - sent_ns_[i]);
  }
  ReportLine line("arrivals");
  line.count("arrived", to_route_ns.size());
  line.count("route_p50_ns", percentile_of(to_route_ns, 0.5));
  line.count("route_p99_ns", percentile_of(to_route_ns, 0.99));
  line.count("sent_to_route_p50_ns", percentile_of(sent_to_route_ns, 0.5));
  line.count("sent_to_route_p99_ns", percentile_of(sent_to_route_ns, 0.99)).print();
}

void Load::write_statuses(const std::string& path) const {
  std::ofstream file(path);
  for (const int status : statuses_) file << status << '\n';
  file.close();
  ReportLine("statuses").count("count", statuses_.size()).print();
}

struct Idle : Owner {
  void answered(const Submission&, int) override {}
  void sending(const std::vector<size_t>&) override {}
};

void run_idle(const Files& files, std::istringstream& words) {
  uint16_t port = 0;
  size_t count = 0;
  double seconds = 0;
  words >> port >> count >> seconds;
  const std::vector<pid_t> pids = pids_in(words);
  const pid_t first = pids.empty() ? 0 : pids[0];
  const uint64_t empty_bytes = resident_bytes(first);
  Idle owner;
  Connections group(owner, files, port, count);
  group.work_until(NowNs() + kSettle_ns);
  const uint64_t before_bytes = resident_bytes(first);
  const uint64_t cpu_before_ns = cpu_ns_of(pids);
  const uint64_t begin_ns = NowNs();
  group.work_until(begin_ns + static_cast<uint64_t>(seconds * 1e9));
  ReportLine line("idle");
  line.count("connections", group.established() - group.broken());
  line.count("empty_bytes", empty_bytes).count("before_bytes", before_bytes);
  line.count("after_bytes", resident_bytes(first));
  line.count("cpu_ns", cpu_ns_of(pids) - cpu_before_ns).count("elapsed_ns", NowNs() - begin_ns);
  line.print();
}

void serve(const Files& files) {
  std::unique_ptr<Load> load;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream words(text);
    std::string command;
    words >> command;
    if (command == "load") {
      load = std::make_unique<Load>(files, words);
      load->run();
    } else if (command == "arrivals" && load) {
      std::string path;
      words >> path;
      load->print_arrivals(path);
    } else if (command == "statuses" && load) {
      std::string path;
      words >> path;
      load->write_statuses(path);
    } else if (command == "idle") {
      run_idle(files, words);
    } else {
      break;
    }
  }
}

}  // namespace
}  // namespace shredway::bench

int main(int count, char** arguments) {
  if (count != 3) shredway::bench::fail("expected KEY.pem CERTIFICATE.pem");
  shredway::bench::precise_sleep_setup();
  shredway::bench::serve({arguments[1], arguments[2]});
  return 0;
}
