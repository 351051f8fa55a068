#include "http_sink.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "clocks.h"
#include "http_message.h"
#include "system_failure.h"

namespace shredway::bench {
namespace {

constexpr std::string_view kParams = "\"params\":[\"";
constexpr std::string_view kId = "\"id\":";

void watch(int epoll, int socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) != 0) fail("epoll_ctl");
}

std::string_view digits_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') end++;
  return text.substr(at, end - at);
}

}  // namespace

HttpSink::HttpSink() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, 512) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    fail("the sink cannot listen");
  port_ = ntohs(address.sin_port);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC);
  watch(epoll_, listener_);
  watch(epoll_, wake_);
  thread_ = std::thread([this] { run(); });
}

HttpSink::~HttpSink() {
  const uint64_t one = 1;
  if (write(wake_, &one, sizeof one) < 0) fail("the sink cannot be woken");
  thread_.join();
  for (const Connection& connection : connections_)
    if (connection.socket >= 0) close(connection.socket);
  for (const int descriptor : {listener_, epoll_, wake_}) close(descriptor);
}

std::unordered_map<std::string, uint64_t> HttpSink::take_arrivals() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(arrivals_, {});
}

size_t HttpSink::arrived_of(const std::unordered_set<std::string>& names) const {
  const std::scoped_lock lock(mutex_);
  const auto is_wanted = [&](const auto& arrival) { return names.contains(arrival.first); };
  return static_cast<size_t>(std::count_if(arrivals_.begin(), arrivals_.end(), is_wanted));
}

void HttpSink::run() {
  epoll_event events[64];
  while (true) {
    const int count = epoll_wait(epoll_, events, 64, -1);
    for (int i = 0; i < count; i++) {
      const int socket = events[i].data.fd;
      if (socket == wake_) return;
      if (socket == listener_) {
        accept_one();
      } else if (!receive(connections_[static_cast<size_t>(socket)])) {
        close(socket);
        connections_[static_cast<size_t>(socket)] = {};
      }
    }
  }
}

void HttpSink::accept_one() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) return;
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connections_.size() <= static_cast<size_t>(socket))
    connections_.resize(static_cast<size_t>(socket) + 1);
  connections_[static_cast<size_t>(socket)].socket = socket;
  watch(epoll_, socket);
}

bool HttpSink::receive(Connection& connection) {
  char bytes[65536];
  const ssize_t length = recv(connection.socket, bytes, sizeof bytes, 0);
  if (length <= 0) return false;
  const uint64_t now_ns = monotonic_ns();
  if (connection.received.empty()) connection.first_byte_ns = now_ns;
  connection.received.append(bytes, static_cast<size_t>(length));
  HttpMessage message;
  while (read_http_message(connection.received, message) &&
         connection.received.size() >= message.bytes()) {
    answer(connection,
           std::string_view(connection.received).substr(message.head_bytes, message.body_bytes));
    connection.received.erase(0, message.bytes());
    connection.first_byte_ns = now_ns;  // the next request begins in the bytes just read
  }
  return true;
}

void HttpSink::answer(Connection& connection, std::string_view body) {
  const bool is_array = !body.empty() && body.front() == '[';
  std::string text = is_array ? "[" : "";
  uint64_t calls = 0;
  {
    const std::scoped_lock lock(mutex_);
    for (size_t at = body.find(kParams); at != std::string_view::npos;
         at = body.find(kParams, at + kParams.size()))
      arrivals_.emplace(body.substr(at + kParams.size(), kTransactionNameLength),
                        connection.first_byte_ns);
  }
  for (size_t at = body.find(kId); at != std::string_view::npos; at = body.find(kId, at + 1)) {
    if (calls++ > 0) text += ',';
    text += R"({"jsonrpc":"2.0","result":"taken","id":)";
    text += digits_at(body, at + kId.size());
    text += '}';
  }
  if (is_array) text += ']';
  calls_.fetch_add(calls, std::memory_order_relaxed);
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(text.size()) + "\r\n\r\n" + text;
  if (send(connection.socket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
}

}  // namespace shredway::bench
