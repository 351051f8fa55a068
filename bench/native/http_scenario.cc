// HTTP load generator and partner for the gateway's bench, driven by commands on standard input.
//
//   make COUNT TIP_HEX LIFETIME_HEX PADDING   signs so many new transfers to the tip address
//   load NAME PORT PATH CONNECTIONS SECONDS RATE PID [CREDENTIAL]
//                             sends the next of them; RATE 0: as fast as answers come; PID: whose
//                             processor time
//   export COUNT FILE         writes the next of them in base64, for a load generator in another
//                             process
//   arrivals FILE EXPECTED    writes which transactions reached the partner, and when. Waits until
//                             so many of the last export have, or until all submissions have ended
//   begun FILE                writes when the requests of the last load began: a line "BASE64 NS"
//                             each, with the beginning of the transaction
//   checks COUNT THREADS      verifies so many of them, nothing else
//   quit
//
// Each command is answered with one line. Prints the sink's port first.
#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <thread>
#include <unordered_set>

#include "crypto/ed25519.h"
#include "http_load.h"
#include "http_sink.h"
#include "options.h"
#include "report_line.h"
#include "timing.h"

namespace shredway::bench {
namespace {

using Key = std::array<uint8_t, 32>;
using Bytes = std::vector<uint8_t>;

constexpr Key kSystemProgram{};
// The content does not matter: a program that accepts any data.
constexpr Key kMemoProgram{5, 74, 83, 90, 153, 41, 33, 6, 77, 36, 232};

std::optional<Key> key_of_hex(const std::string& text) {
  if (text.size() != 64) return std::nullopt;
  Key key;
  for (size_t i = 0; i < key.size(); i++)
    key[i] = static_cast<uint8_t>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return key;
}

std::string base64(const Bytes& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; k++) group = group << 8 | (k < left ? bytes[i + k] : 0U);
    for (size_t k = 0; k < 4; k++) text += k <= left ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

struct Signed {
  Bytes message;
  Signature signature;
};

class HttpScenario {
 public:
  void run();

 private:
  void make(std::istringstream& words);
  void load(std::istringstream& words);
  void export_next(std::istringstream& words);
  void arrivals(std::istringstream& words);
  void begun(std::istringstream& words) const;
  void checks(std::istringstream& words);
  // Waits until nothing reaches the sink any more, or for five seconds, and until `expected` of the
  // last export have arrived, or for 100 s: longer than a submission lives.
  std::unordered_map<std::string, uint64_t> last_arrivals(size_t expected);
  Bytes message_of(const Key& tip, const Key& lifetime, size_t padding);

  HttpSink sink_;
  SigningKey payer_{{7, 1, 7}};
  uint64_t made_ = 0;
  std::vector<Signed> signed_;
  std::vector<std::string> texts_;                       // base64, not sent yet
  std::unordered_set<std::string> exported_;             // names of the last export
  std::vector<std::pair<std::string, uint64_t>> begun_;  // names of the last load's transactions
};

Bytes HttpScenario::message_of(const Key& tip, const Key& lifetime, size_t padding) {
  Bytes message{1, 0, 2, 4};  // one signature, two read-only programs, four keys
  for (const Key& key : {payer_.public_key(), tip, kSystemProgram, kMemoProgram})
    message.insert(message.end(), key.begin(), key.end());
  message.insert(message.end(), lifetime.begin(), lifetime.end());
  message.insert(message.end(), {2, 2, 2, 0, 1, 12, 2, 0, 0, 0});  // transfer from 0 to 1
  const uint64_t lamports = 1'000'000 + made_++;
  for (size_t i = 0; i < 8; i++) message.push_back(static_cast<uint8_t>(lamports >> (8 * i)));
  message.insert(message.end(), {3, 0, static_cast<uint8_t>((padding & 0x7f) | 0x80),
                                 static_cast<uint8_t>(padding >> 7)});
  message.insert(message.end(), padding, 'x');
  return message;
}

void HttpScenario::make(std::istringstream& words) {
  size_t count = 0;
  size_t padding = 0;
  std::string tip_text;
  std::string lifetime_text;
  words >> count >> tip_text >> lifetime_text >> padding;
  const auto tip = key_of_hex(tip_text);
  const auto lifetime = key_of_hex(lifetime_text);
  signed_.clear();
  texts_.clear();
  for (size_t i = 0; tip && lifetime && i < count; i++) {
    Signed one{message_of(*tip, *lifetime, std::max<size_t>(padding, 128)), {}};
    if (!payer_.sign(one.message.data(), one.message.size(), one.signature)) break;
    Bytes wire{1};
    wire.insert(wire.end(), one.signature.begin(), one.signature.end());
    wire.insert(wire.end(), one.message.begin(), one.message.end());
    texts_.push_back(base64(wire));
    signed_.push_back(std::move(one));
  }
  ReportLine("made").count("count", texts_.size()).print();
}

std::string request_of(const std::string& path, const std::string& credential, size_t id,
                       const std::string& text) {
  const std::string body = R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                           R"(,"method":"sendTransaction","params":[")" + text +
                           R"(",{"encoding":"base64","skipPreflight":true,"maxRetries":0}]})";
  return "POST " + path + " HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n" +
         (credential.empty() ? "" : "api-key: " + credential + "\r\n") +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

uint64_t percentile(std::vector<uint64_t>& values, double part) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<long>(rank), values.end());
  return values[rank];
}

void HttpScenario::load(std::istringstream& words) {
  std::string name;
  std::string path;
  std::string credential;
  LoadPlan plan{};
  pid_t process = 0;
  words >> name >> plan.port >> path >> plan.connections >> plan.seconds >> plan.rate_per_second >>
      process >> credential;
  std::vector<std::string> requests;
  for (size_t i = 0; i < texts_.size(); i++)
    requests.push_back(request_of(path, credential, i, texts_[i]));
  sink_.take_arrivals();
  const uint64_t cpu_before_ns = process_cpu_ns(process);
  LoadResult result = run_load(plan, requests);
  const uint64_t cpu_ns = process_cpu_ns(process) - cpu_before_ns;
  const auto arrivals = last_arrivals(0);
  std::vector<uint64_t> to_route_ns;
  std::vector<uint64_t> written_to_route_ns;
  size_t sent = 0;
  begun_.clear();
  for (size_t i = 0; i < texts_.size() && result.begun_ns[i] > 0; i++, sent++) {
    begun_.emplace_back(texts_[i].substr(0, kTransactionNameLength), result.begun_ns[i]);
    const auto found = arrivals.find(begun_.back().first);
    if (found == arrivals.end()) continue;
    to_route_ns.push_back(found->second - result.begun_ns[i]);
    written_to_route_ns.push_back(found->second - result.written_ns[i]);
  }
  texts_.erase(texts_.begin(), texts_.begin() + static_cast<long>(sent));
  ReportLine line("load");
  line.text("name", name).count("answered", result.answered).count("accepted", result.accepted);
  line.count("limited", result.limited).count("refused", result.refused);
  line.count("broken", result.broken).count("elapsed_ns", result.elapsed_ns);
  line.count("cpu_ns", cpu_ns).count("arrived", to_route_ns.size());
  line.count("p50_ns", percentile(result.latencies_ns, 0.5));
  line.count("p99_ns", percentile(result.latencies_ns, 0.99));
  line.count("route_p50_ns", percentile(to_route_ns, 0.5));
  line.count("route_p99_ns", percentile(to_route_ns, 0.99));
  line.count("written_to_route_p50_ns", percentile(written_to_route_ns, 0.5));
  line.count("written_to_route_p99_ns", percentile(written_to_route_ns, 0.99)).print();
}

std::unordered_map<std::string, uint64_t> HttpScenario::last_arrivals(size_t expected) {
  // A gateway without processor time may not have finished.
  constexpr int kQuietTurns = 4;
  constexpr int kTurnsMax = 20;
  constexpr int kExpectedTurnsMax = 400;
  uint64_t calls = sink_.calls();
  for (int i = 0, quiet = 0; i < kExpectedTurnsMax; i++) {
    const bool is_complete = expected == 0 || sink_.arrived_of(exported_) >= expected;
    if (is_complete && (quiet >= kQuietTurns || i >= kTurnsMax)) break;
    sleep_ns(250'000'000);
    quiet = calls == sink_.calls() ? quiet + 1 : 0;
    calls = sink_.calls();
  }
  return sink_.take_arrivals();
}

void HttpScenario::export_next(std::istringstream& words) {
  size_t count = 0;
  std::string path;
  words >> count >> path;
  count = std::min(count, texts_.size());
  std::ofstream file(path);
  exported_.clear();
  for (size_t i = 0; i < count; i++) {
    file << texts_[i] << '\n';
    exported_.insert(texts_[i].substr(0, kTransactionNameLength));
  }
  file.close();
  texts_.erase(texts_.begin(), texts_.begin() + static_cast<long>(count));
  sink_.take_arrivals();
  ReportLine("exported").count("count", count).print();
}

void HttpScenario::arrivals(std::istringstream& words) {
  std::string path;
  size_t expected = 0;
  words >> path >> expected;
  std::ofstream file(path);
  const auto found = last_arrivals(expected);
  for (const auto& [name, at_ns] : found) file << name << ' ' << at_ns << '\n';
  file.close();
  ReportLine("arrivals").count("count", found.size()).print();
}

void HttpScenario::begun(std::istringstream& words) const {
  std::string path;
  words >> path;
  std::ofstream file(path);
  for (const auto& [name, begun_ns] : begun_) file << name << ' ' << begun_ns << '\n';
  file.close();
  ReportLine("begun").count("count", file ? begun_.size() : 0).print();
}

void HttpScenario::checks(std::istringstream& words) {
  size_t count = 0;
  size_t threads = 1;
  words >> count >> threads;
  count = std::min(count, signed_.size());
  const VerifyingKey key(payer_.public_key());
  std::atomic<size_t> valid{0};
  const uint64_t begin_ns = monotonic_ns();
  std::vector<std::thread> workers;
  for (size_t worker = 0; worker < threads; worker++) {
    workers.emplace_back([&, worker] {
      for (size_t i = worker; i < count; i += threads) {
        const Signed& one = signed_[i];
        valid += key.verify(one.signature.data(), one.message.data(), one.message.size());
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  const uint64_t elapsed_ns = monotonic_ns() - begin_ns;
  ReportLine("checks").count("count", valid).count("elapsed_ns", elapsed_ns).print();
}

void HttpScenario::run() {
  ReportLine("sink").count("port", sink_.port()).print();
  std::string text;
  while (std::getline(std::cin, text)) {
    std::istringstream words(text);
    std::string command;
    words >> command;
    if (command == "make") make(words);
    else if (command == "load") load(words);
    else if (command == "export") export_next(words);
    else if (command == "arrivals") arrivals(words);
    else if (command == "begun") begun(words);
    else if (command == "checks") checks(words);
    else break;
  }
}

}  // namespace

void run_http(const Bench&) { HttpScenario().run(); }

}  // namespace shredway::bench
