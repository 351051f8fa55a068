#include "check.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

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
  std::string out;
  char pair[3];
  for (size_t i = 0; i < count; i++) {
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    out += pair;
  }
  return out;
}

namespace {

int run_all(const char* filter) {
  size_t passed = 0, failed = 0, skipped = 0;
  for (const Test& test : all_tests()) {
    if (filter && !std::strstr(test.name, filter)) continue;
    failures_in_test = 0;
    skip_reason.clear();
    test.body();
    if (failures_in_test) {
      failed++;
      std::printf("FAILED  %s (%s)\n", test.name, test.file);
    } else if (!skip_reason.empty()) {
      skipped++;
      std::printf("skipped %s: %s\n", test.name, skip_reason.c_str());
    } else {
      passed++;
      std::printf("ok      %s\n", test.name);
    }
    std::fflush(stdout);
  }
  std::printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
  return failed || passed + skipped == 0 ? 1 : 0;
}

}  // namespace
}  // namespace shredway::test

int main(int argc, char** argv) { return shredway::test::run_all(argc > 1 ? argv[1] : nullptr); }
