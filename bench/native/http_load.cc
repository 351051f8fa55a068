#include "http_load.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "clocks.h"
#include "http_message.h"

namespace shredway::bench {
namespace {

constexpr uint64_t kLastAnswers_ns = 2'000'000'000;
// Time for the server to accept a connection. It is not measured.
constexpr uint64_t kAcceptance_ns = 200'000;

struct Caller {
  int socket = -1;
  size_t sent = 0;
  const std::string* request = nullptr;  // nullptr: idle
  uint64_t begun_ns = 0;
  std::string received;
};

class Load {
 public:
  Load(const LoadPlan& plan, const std::vector<std::string>& requests);
  ~Load();
  LoadResult run();

 private:
  void connect_all();
  void begin(Caller& caller, uint64_t begun_ns);
  void send_rest(Caller& caller);
  void receive(Caller& caller);
  void finish(Caller& caller, std::string_view head, std::string_view body);
  void lose(Caller& caller);
  void start_due(uint64_t now_ns);
  int wait_ms() const;
  bool more() const { return next_ < requests_.size() && monotonic_ns() < end_ns_; }

  const LoadPlan& plan_;
  const std::vector<std::string>& requests_;
  LoadResult result_;
  std::vector<Caller> callers_;
  std::vector<Caller*> idle_;
  size_t next_ = 0;
  size_t under_way_ = 0;
  uint64_t begun_ns_ = 0;
  uint64_t end_ns_ = 0;
  int epoll_ = -1;
};

Load::Load(const LoadPlan& plan, const std::vector<std::string>& requests)
    : plan_(plan), requests_(requests), callers_(plan.connections) {
  result_.begun_ns.resize(requests.size());
  result_.written_ns.resize(requests.size());
  result_.latencies_ns.reserve(requests.size());
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  connect_all();
  sleep_ns(plan.connections * kAcceptance_ns);
}

Load::~Load() {
  for (const Caller& caller : callers_)
    if (caller.socket >= 0) close(caller.socket);
  close(epoll_);
}

void Load::connect_all() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(plan_.port);
  for (Caller& caller : callers_) {
    caller.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(caller.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      std::perror("the load cannot connect");
      std::exit(1);
    }
    const int yes = 1;
    setsockopt(caller.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &caller;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, caller.socket, &event);
    idle_.push_back(&caller);
  }
}

void Load::begin(Caller& caller, uint64_t begun_ns) {
  caller.request = &requests_[next_];
  caller.begun_ns = begun_ns;
  caller.sent = 0;
  result_.written_ns[next_] = monotonic_ns();
  result_.begun_ns[next_++] = begun_ns;
  under_way_++;
  send_rest(caller);
}

// Requests are small and the server reads: a blocking send is cheaper than waiting for writability.
void Load::send_rest(Caller& caller) {
  while (caller.sent < caller.request->size()) {
    const ssize_t count = send(caller.socket, caller.request->data() + caller.sent,
                               caller.request->size() - caller.sent, MSG_NOSIGNAL);
    if (count < 0) return lose(caller);
    caller.sent += static_cast<size_t>(count);
  }
}

void Load::lose(Caller& caller) {
  if (caller.socket < 0) return;
  result_.broken++;
  if (caller.request) under_way_--;
  caller.request = nullptr;
  close(caller.socket);
  caller.socket = -1;
}

void Load::receive(Caller& caller) {
  char bytes[16384];
  const ssize_t length = recv(caller.socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) return lose(caller);
  caller.received.append(bytes, static_cast<size_t>(length));
  HttpMessage message;
  const std::string_view text = caller.received;
  if (!read_http_message(text, message) || text.size() < message.bytes()) return;
  finish(caller, text.substr(0, message.head_bytes),
         text.substr(message.head_bytes, message.body_bytes));
  caller.received.erase(0, message.bytes());
}

void Load::finish(Caller& caller, std::string_view head, std::string_view body) {
  const uint64_t now_ns = monotonic_ns();
  result_.answered++;
  result_.latencies_ns.push_back(now_ns - caller.begun_ns);
  const int status = http_status(head);
  if (status == 429) result_.limited++;
  else if (status == 200 && body.find("\"result\"") != std::string_view::npos) result_.accepted++;
  else result_.refused++;
  caller.request = nullptr;
  under_way_--;
  if (plan_.rate_per_second == 0 && more()) begin(caller, now_ns);
  else idle_.push_back(&caller);
}

void Load::start_due(uint64_t now_ns) {
  while (!idle_.empty() && more()) {
    uint64_t due_ns = now_ns;
    if (plan_.rate_per_second > 0) {
      const double offset_ns = static_cast<double>(next_) * 1e9 / plan_.rate_per_second;
      due_ns = begun_ns_ + static_cast<uint64_t>(offset_ns);
      if (due_ns > now_ns) return;
    }
    Caller* caller = idle_.back();
    idle_.pop_back();
    if (caller->socket >= 0) begin(*caller, due_ns);
  }
}

int Load::wait_ms() const { return plan_.rate_per_second > 0 ? 0 : 100; }

LoadResult Load::run() {
  begun_ns_ = monotonic_ns();
  end_ns_ = begun_ns_ + static_cast<uint64_t>(plan_.seconds * 1e9);
  epoll_event events[256];
  while (true) {
    const uint64_t now_ns = monotonic_ns();
    if (now_ns > end_ns_ + kLastAnswers_ns) break;
    if (!more() && under_way_ == 0) break;
    start_due(now_ns);
    const int count = epoll_wait(epoll_, events, 256, wait_ms());
    for (int i = 0; i < count; i++) {
      Caller& caller = *static_cast<Caller*>(events[i].data.ptr);
      if (caller.socket >= 0) receive(caller);
    }
    if (count == 0 && plan_.rate_per_second > 0) sleep_ns(20'000);
  }
  result_.elapsed_ns = monotonic_ns() - begun_ns_;
  return result_;
}

}  // namespace

LoadResult run_load(const LoadPlan& plan, const std::vector<std::string>& requests) {
  return Load(plan, requests).run();
}

}  // namespace shredway::bench
