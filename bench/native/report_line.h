// Report lines: the results of the native half of the bench, one JSON object per line.
//
// Scenarios write them to standard output; bench/run.ts reads them, computes the statistics and
// prints the report. The lines contain raw values of every round, never a mean.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace shredway::bench {

class ReportLine {
 public:
  explicit ReportLine(const char* kind) : text_(std::string("{\"kind\":\"") + kind + '"') {}
  ReportLine& text(const char* key, const std::string& value) {
    begin(key);
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') text_ += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) text_ += c;
    }
    text_ += '"';
    return *this;
  }
  ReportLine& number(const char* key, double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.3f", value);
    begin(key);
    text_ += digits;
    return *this;
  }
  ReportLine& count(const char* key, uint64_t value) {
    begin(key);
    text_ += std::to_string(value);
    return *this;
  }
  ReportLine& truth(const char* key, bool value) {
    begin(key);
    text_ += value ? "true" : "false";
    return *this;
  }
  void print() {
    std::printf("%s}\n", text_.c_str());
    std::fflush(stdout);
  }

 private:
  void begin(const char* key) {
    text_ += ",\"";
    text_ += key;
    text_ += "\":";
  }
  std::string text_;
};

}  // namespace shredway::bench
