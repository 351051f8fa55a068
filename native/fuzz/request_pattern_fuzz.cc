// Fuzz target of the fast path's readers: the request pattern and base64.
//
// The input is split at its first 0 byte. The first part is a head and, behind an empty line, the
// body of the request to learn; the second is what was received. Invariants: no read beyond either;
// parts that were found lie inside of the body; only one whole request repeats the learned one,
// never a part of it or a longer text; only the canonical text of bytes is decoded.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "submission/request_pattern.h"
#include "system/base64.h"

using namespace shredway;

namespace {

using Match = RequestPattern::Match;

void require(bool holds) {
  if (!holds) std::abort();
}

// A copy of exactly the requested size, so that a read beyond it is detected.
struct ExactText {
  std::unique_ptr<char[]> bytes;
  size_t length;

  explicit ExactText(std::string_view text) : bytes(new char[text.size()]), length(text.size()) {
    std::copy(text.begin(), text.end(), bytes.get());
  }
  std::string_view view() const { return {bytes.get(), length}; }
};

bool is_inside(std::string_view part, std::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

void check_call(std::string_view text) {
  const ExactText body(text);
  const auto call = read_send_transaction_call(body.view());
  if (!call) return;
  require(is_inside(call->transaction, body.view()) && is_inside(call->options, body.view()));
  require(!call->transaction.empty());
  require(call->transaction.find_first_of("\"\\") == std::string_view::npos);
  require(call->options.front() == '{' && call->options.back() == '}');
  require(call->transaction.end() <= call->options.begin());
  // It ends with the brace; space may follow.
  const size_t end = body.view().rfind('}');
  require(read_send_transaction_call(ExactText(text.substr(0, end + 1)).view()).has_value());
  require(!read_send_transaction_call(ExactText(text.substr(0, end)).view()));
  require(!read_send_transaction_call(ExactText(std::string(text) + "x").view()));
}

Match match_of(const RequestPattern& pattern, std::string_view text) {
  const ExactText received(text);
  std::string_view transaction;
  const Match match = pattern.match(received.view(), transaction);
  require(match == Match::repeated || transaction.empty());
  if (match == Match::repeated) {
    require(!transaction.empty() && is_inside(transaction, received.view()));
    const size_t head_end = text.find("\r\n\r\n");
    require(head_end != std::string_view::npos);
    require(is_inside(transaction, received.view().substr(head_end + 4)));
  }
  return match;
}

void check_match(const RequestPattern& pattern, std::string_view text) {
  const Match match = match_of(pattern, text);
  if (match == Match::different) return;
  // Every part of a repetition may become one; none is one already.
  const size_t step = 1 + text.size() / 256;
  for (size_t missing = 1; missing <= text.size(); missing += step) {
    const Match part = match_of(pattern, text.substr(0, text.size() - missing));
    require(part != Match::repeated);
    if (part == Match::different) break;
  }
  if (match == Match::repeated)
    for (const char* more : {"P", " ", "\r\n"})
      require(match_of(pattern, std::string(text) + more) == Match::different);
}

void check_base64(std::string_view text) {
  const ExactText exact(text);
  const std::unique_ptr<uint8_t[]> decoded(new uint8_t[text.size()]);
  size_t count = 0;
  if (base64_decode(exact.view(), decoded.get(), text.size(), count)) {
    require(base64_text_length(count) == text.size());
    const std::unique_ptr<char[]> again(new char[text.size()]);
    base64_encode(decoded.get(), count, again.get());
    require(std::string_view(again.get(), text.size()) == text);
    if (count > 0) {
      const std::unique_ptr<uint8_t[]> shorter(new uint8_t[count - 1]);
      size_t other = 0;
      require(!base64_decode(exact.view(), shorter.get(), count - 1, other));
    }
  }
  const std::string encoded(base64_text_length(text.size()), '\0');
  const ExactText written(encoded);
  base64_encode(reinterpret_cast<const uint8_t*>(exact.bytes.get()), text.size(),
                written.bytes.get());
  const std::unique_ptr<uint8_t[]> back(new uint8_t[text.size()]);
  require(base64_decode(written.view(), back.get(), text.size(), count));
  require(count == text.size() && std::memcmp(back.get(), exact.bytes.get(), count) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), length);
  const size_t split = std::min(input.find('\0'), length);
  const std::string_view lesson = input.substr(0, split);
  const std::string_view received = input.substr(std::min(split + 1, length));
  for (const std::string_view part : {input, lesson, received}) {
    check_call(part);
    check_base64(part);
  }
  const size_t head_end = std::min(lesson.find("\r\n\r\n"), lesson.size());
  const ExactText head(lesson.substr(0, head_end));
  const ExactText body(lesson.substr(std::min(head_end + 4, lesson.size())));
  check_call(body.view());
  const auto pattern =
      RequestPattern::learn(head.view(), body.view(), TransactionTextEncoding::base64);
  if (!pattern) return 0;
  require(read_send_transaction_call(body.view()).has_value());
  check_match(*pattern, received);
  check_match(*pattern, lesson);
  return 0;
}
