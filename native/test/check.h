// The test framework of the native tests: named tests, checks that print both values, one exit
// code.
//
// A test file contains TEST(name) { … CHECK_EQ(a, b); … }. All files are linked into one program
// (main in check.cc), which runs all tests, or those whose name contains its first argument. Before
// that argument, "--skip-list FILE" names tests that this machine cannot run, with the reasons.
// SHREDWAY_TESTDATA is the folder of real captures. A test that needs it calls SKIP("reason") if it
// is missing; the summary lists skipped tests.
#pragma once

#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace shredway::test {

struct Registration {
  Registration(const char* name, const char* file, void (*body)());
};
void report_failure(const char* file, int line, const std::string& text);
void report_false(const char* file, int line, const char* condition);
void skip_test(const std::string& reason);
// Folder with shreds/…, or empty if there are no captures.
std::string testdata();
std::vector<uint8_t> read_file(const std::string& path);
// Packets of an .lpb file: repeated u16 little-endian length and bytes.
std::vector<std::vector<uint8_t>> read_lpb(const std::string& path);
std::string hex(const uint8_t* bytes, size_t count);

template <typename T>
std::string show(const T& value) {
  std::ostringstream out;
  if constexpr (requires { out << value; }) {
    if constexpr (sizeof(T) == 1) out << int(value);
    else out << value;
  } else if constexpr (requires { uint64_t(value); }) {
    out << uint64_t(value);
  } else {
    out << "(value)";
  }
  return out.str();
}

// Outside of the tests, which would otherwise contain this code at each check and compile for long.
template <typename Left, typename Right>
[[gnu::noinline, gnu::cold]] void report_difference(const char* file, int line,
                                                    const char* expression, const Left& left,
                                                    const Right& right) {
  report_failure(file, line, std::string(expression) + ": " + show(left) + " and " + show(right));
}

}  // namespace shredway::test

#define TEST(name)                                                                              \
  static void test_##name();                                                                    \
  static const shredway::test::Registration registration_##name(#name, __FILE__, &test_##name); \
  static void test_##name()
#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) shredway::test::report_false(__FILE__, __LINE__, #condition); \
  } while (0)
#define CHECK_EQ(left, right)                                                                \
  do {                                                                                       \
    const auto left_value = (left);                                                          \
    const auto right_value = (right);                                                        \
    if (!(left_value == right_value))                                                        \
      shredway::test::report_difference(__FILE__, __LINE__, #left " == " #right, left_value, \
                                        right_value);                                        \
  } while (0)
#define SKIP(reason)                   \
  do {                                 \
    shredway::test::skip_test(reason); \
    return;                            \
  } while (0)
