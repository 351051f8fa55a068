#include "check.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace shredway::test {
namespace {

struct Test {
  const char* name;
  const char* file;
  void (*body)();
};
std::vector<Test>& all_tests() {
  static std::vector<Test> tests;
  return tests;
}
size_t failures_in_test = 0;
std::string skip_reason;

}  // namespace

Registration::Registration(const char* name, const char* file, void (*body)()) {
  all_tests().push_back({name, file, body});
}

void report_failure(const char* file, int line, const std::string& text) {
  if (++failures_in_test <= 20) std::fprintf(stderr, "%s:%d: %s\n", file, line, text.c_str());
}

void report_false(const char* file, int line, const char* condition) {
  report_failure(file, line, condition);
}

void skip_test(const std::string& reason) { skip_reason = reason; }

std::string testdata() {
  const char* folder = std::getenv("SHREDWAY_TESTDATA");
  const std::string path = folder ? folder : "../shared/testdata";
  return std::ifstream(path + "/shreds/README.md") ? path : "";
}

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::vector<uint8_t>> read_lpb(const std::string& path) {
  const auto bytes = read_file(path);
  std::vector<std::vector<uint8_t>> packets;
  for (size_t at = 0; at + 2 <= bytes.size();) {
    const size_t length = bytes[at] | size_t{bytes[at + 1]} << 8;
    packets.emplace_back(bytes.begin() + long(at) + 2, bytes.begin() + long(at + 2 + length));
    at += 2 + length;
  }
  return packets;
}

std::string hex(const uint8_t* bytes, size_t count) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * count);
  for (size_t i = 0; i < count; i++) {
    out.push_back(digits[bytes[i] >> 4]);
    out.push_back(digits[bytes[i] & 15]);
  }
  return out;
}

namespace {

// Reads a list of tests to skip: lines "reason:", each followed by indented names. Exits if a name
// is not that of a test, so that no list mentions a test that does not exist.
std::map<std::string, std::string> read_skip_list(const char* path) {
  std::map<std::string, std::string> reasons;
  std::ifstream in(path);
  if (!in) {
    std::fprintf(stderr, "cannot read the skip list %s\n", path);
    std::exit(2);
  }
  std::string line, reason;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line.compare(0, 2, "  ") != 0) {
      reason = line.substr(0, line.size() - 1);
      continue;
    }
    const std::string name = line.substr(2);
    const auto& tests = all_tests();
    if (std::none_of(tests.begin(), tests.end(),
                     [&](const Test& test) { return name == test.name; })) {
      std::fprintf(stderr, "%s: \"%s\" is not a test\n", path, name.c_str());
      std::exit(2);
    }
    reasons[name] = reason;
  }
  return reasons;
}

int run_all(const char* filter, const std::map<std::string, std::string>& skip_list) {
  size_t passed = 0, skipped = 0;
  std::vector<const char*> failed;
  for (const Test& test : all_tests()) {
    if (filter && !std::strstr(test.name, filter)) continue;
    failures_in_test = 0;
    const auto listed = skip_list.find(test.name);
    skip_reason = listed == skip_list.end() ? "" : listed->second;
    const auto begin = std::chrono::steady_clock::now();
    if (listed == skip_list.end()) test.body();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - begin;
    if (failures_in_test) {
      failed.push_back(test.name);
      std::printf("FAILED  %s (%s)\n", test.name, test.file);
    } else if (!skip_reason.empty()) {
      skipped++;
      std::printf("skipped %s: %s\n", test.name, skip_reason.c_str());
    } else {
      passed++;
      std::printf("ok      %s (%.0f ms)\n", test.name, elapsed.count());
    }
    std::fflush(stdout);
  }
  for (const char* name : failed) std::printf("failed: %s\n", name);
  std::printf("%zu passed, %zu failed, %zu skipped\n", passed, failed.size(), skipped);
  return !failed.empty() || passed + skipped == 0 ? 1 : 0;
}

}  // namespace
}  // namespace shredway::test

int main(int argc, char** argv) {
  const bool has_list = argc > 2 && std::strcmp(argv[1], "--skip-list") == 0;
  const auto skip_list =
      has_list ? shredway::test::read_skip_list(argv[2]) : std::map<std::string, std::string>();
  const int first = has_list ? 3 : 1;
  return shredway::test::run_all(argc > first ? argv[first] : nullptr, skip_list);
}
