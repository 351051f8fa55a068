// The lower bound for any proxy: reads HTTP, copies the body to the partner, responds.
//
// One thread and epoll. It parses no JSON, checks nothing and keeps nothing. Its standard input
// names the partner's port; it prints its own port and process id, and ends with its standard
// input.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <vector>

#include "http_message.h"
#include "options.h"
#include "report_line.h"
#include "system_failure.h"

namespace shredway::bench {
namespace {

constexpr size_t kPartnerConnections = 8;
constexpr char kAnswer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 38\r\n\r\n"
    R"({"jsonrpc":"2.0","result":"1","id":1} )";

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void set_no_delay(int descriptor) {
  const int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

class Proxy {
 public:
  explicit Proxy(uint16_t partner_port);
  uint16_t port() const { return port_; }
  void run();  // until the end of the standard input

 private:
  void watch(int descriptor) const;
  void accept_one();
  bool receive(int client);
  void forward(std::string_view body);

  int epoll_ = -1, listener_ = -1;
  uint16_t port_ = 0;
  std::array<int, kPartnerConnections> partners_{};
  size_t next_partner_ = 0;
  std::vector<std::string> received_;  // by client
};

Proxy::Proxy(uint16_t partner_port) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in own = loopback(0);
  socklen_t length = sizeof own;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&own), length) != 0 ||
      listen(listener_, 512) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &length) != 0)
    fail("the proxy cannot listen");
  port_ = ntohs(own.sin_port);
  const sockaddr_in partner = loopback(partner_port);
  for (int& descriptor : partners_) {
    descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(descriptor, reinterpret_cast<const sockaddr*>(&partner), sizeof partner) != 0)
      fail("the proxy cannot connect");
    set_no_delay(descriptor);
    watch(descriptor);
  }
  watch(listener_);
  watch(STDIN_FILENO);
}

void Proxy::watch(int descriptor) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
}

void Proxy::run() {
  std::array<epoll_event, 64> events;
  std::array<char, 65536> discarded;
  while (true) {
    const int count = epoll_wait(epoll_, events.data(), events.size(), -1);
    for (int i = 0; i < count; i++) {
      const int descriptor = events[static_cast<size_t>(i)].data.fd;
      const bool is_partner =
          std::find(partners_.begin(), partners_.end(), descriptor) != partners_.end();
      if (descriptor == STDIN_FILENO) return;
      if (descriptor == listener_) accept_one();
      else if (is_partner) (void)!recv(descriptor, discarded.data(), discarded.size(), 0);
      else if (!receive(descriptor)) close(descriptor);
    }
  }
}

void Proxy::accept_one() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) return;
  set_no_delay(client);
  if (received_.size() <= static_cast<size_t>(client))
    received_.resize(static_cast<size_t>(client) + 1);
  received_[static_cast<size_t>(client)].clear();
  watch(client);
}

bool Proxy::receive(int client) {
  std::array<char, 65536> bytes;
  const ssize_t length = recv(client, bytes.data(), bytes.size(), 0);
  if (length <= 0) return false;
  std::string& received = received_[static_cast<size_t>(client)];
  received.append(bytes.data(), static_cast<size_t>(length));
  HttpMessage message{};
  while (read_http_message(received, message) && received.size() >= message.bytes()) {
    forward(std::string_view(received).substr(message.head_bytes, message.body_bytes));
    if (send(client, kAnswer, sizeof kAnswer - 1, MSG_NOSIGNAL) < 0) return false;
    received.erase(0, message.bytes());
  }
  return true;
}

void Proxy::forward(std::string_view body) {
  std::string request = "POST / HTTP/1.1\r\nhost: partner\r\ncontent-type: application/json\r\n";
  request += "content-length: " + std::to_string(body.size()) + "\r\n\r\n";
  request += body;
  const int partner = partners_[next_partner_++ % partners_.size()];
  if (send(partner, request.data(), request.size(), MSG_NOSIGNAL) < 0) fail("send to the partner");
}

}  // namespace

void run_http_proxy(const Bench&) {
  std::string line;
  if (!std::getline(std::cin, line)) return;
  Proxy proxy(static_cast<uint16_t>(std::strtoul(line.c_str(), nullptr, 10)));
  ReportLine("ready").count("port", proxy.port()).count("pid", getpid()).print();
  proxy.run();
}

}  // namespace shredway::bench
