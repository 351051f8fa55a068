#include "submission/request_pattern.h"

#include <algorithm>

namespace shredway {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLengthName = "\r\ncontent-length:";
// More digits than any request of a transaction has.
constexpr size_t kLengthDigitsMax = 5;
// A pattern is kept for each connection.
constexpr size_t kHeadBytesMax = 4096;
constexpr size_t kOptionsBytesMax = 1024;
constexpr size_t kIdDigitsMax = 15;
constexpr size_t kIdTextMax = 64;

bool is_digit(char character) { return character >= '0' && character <= '9'; }
bool is_space(char character) {
  return character == ' ' || character == '\t' || character == '\n' || character == '\r';
}
char lower(char character) {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character + 32) : character;
}

// Reads JSON from the front of a text. A step that does not find what it expects leaves the reader
// failed; later steps then do nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool failed() const { return failed_; }
  bool at_end() {
    skip_spaces();
    return !failed_ && at_ == text_.size();
  }
  // Whether the next character is this one; it is consumed then.
  bool skip(char wanted) {
    skip_spaces();
    if (failed_ || at_ == text_.size() || text_[at_] != wanted) return false;
    at_++;
    return true;
  }
  void expect(char wanted) { failed_ |= !skip(wanted); }
  // A text of ASCII characters without escapes, without its quotation marks.
  std::string_view text() {
    expect('"');
    const size_t begin = at_;
    while (!failed_ && at_ < text_.size() && text_[at_] != '"') {
      const auto character = static_cast<unsigned char>(text_[at_++]);
      failed_ |= character == '\\' || character < 0x20 || character > 0x7e;
    }
    const std::string_view found = text_.substr(begin, at_ - begin);
    expect('"');
    return found;
  }
  void expect_text(std::string_view wanted) { failed_ |= text() != wanted; }
  // A text, or a whole number that is exact in JavaScript.
  void skip_id() {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '"') {
      failed_ |= text().size() > kIdTextMax;
      return;
    }
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) at_++;
    const bool has_zeros = at_ - begin > 1 && text_[begin] == '0';
    failed_ |= at_ == begin || at_ - begin > kIdDigitsMax || has_zeros;
  }
  // An object without objects, arrays or escapes in it, with its braces.
  std::string_view flat_object() {
    skip_spaces();
    const size_t begin = at_;
    expect('{');
    bool is_quoted = false;
    while (!failed_ && at_ < text_.size() && (is_quoted || text_[at_] != '}')) {
      const char character = text_[at_++];
      if (character == '"') is_quoted = !is_quoted;
      const bool is_nested = !is_quoted && (character == '{' || character == '[');
      failed_ |= character == '\\' || is_nested;
    }
    expect('}');
    return text_.substr(begin, at_ - begin);
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) at_++;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
};

// One bit for each member that was read.
enum Member : unsigned { kVersion = 1, kId = 2, kMethod = 4, kParams = 8, kAll = 15 };

unsigned read_member(Reader& reader, SendTransactionCall& call) {
  const std::string_view name = reader.text();
  reader.expect(':');
  if (name == "jsonrpc") {
    reader.expect_text("2.0");
    return kVersion;
  }
  if (name == "id") {
    reader.skip_id();
    return kId;
  }
  if (name == "method") {
    reader.expect_text("sendTransaction");
    return kMethod;
  }
  if (name != "params") return 0;
  reader.expect('[');
  call.transaction = reader.text();
  reader.expect(',');
  call.options = reader.flat_object();
  reader.expect(']');
  return kParams;
}

}  // namespace

std::optional<SendTransactionCall> read_send_transaction_call(std::string_view body) {
  Reader reader(body);
  SendTransactionCall call;
  unsigned members = 0;
  reader.expect('{');
  do {
    const unsigned member = read_member(reader, call);
    if (reader.failed() || member == 0 || (members & member) != 0) return {};
    members |= member;
  } while (reader.skip(','));
  reader.expect('}');
  if (!reader.at_end() || members != kAll || call.transaction.empty()) return {};
  return call;
}

std::optional<RequestPattern> RequestPattern::learn(std::string_view head, std::string_view body,
                                                    TransactionTextEncoding encoding) {
  if (head.size() > kHeadBytesMax) return {};
  const auto is_same = [](char a, char b) { return lower(a) == b; };
  const auto name =
      std::search(head.begin(), head.end(), kLengthName.begin(), kLengthName.end(), is_same);
  if (name == head.end()) return {};
  auto begin = name + static_cast<std::ptrdiff_t>(kLengthName.size());
  if (std::search(begin, head.end(), kLengthName.begin(), kLengthName.end(), is_same) != head.end())
    return {};
  while (begin != head.end() && (*begin == ' ' || *begin == '\t')) begin++;
  const auto end = std::find_if_not(begin, head.end(), is_digit);
  if (begin == end) return {};
  const auto call = read_send_transaction_call(body);
  if (!call || call->options.size() > kOptionsBytesMax) return {};
  RequestPattern pattern;
  pattern.head_before_.assign(head.begin(), begin);
  pattern.head_after_.assign(end, head.end());
  pattern.head_after_ += kHeadEnd;
  pattern.options_ = call->options;
  pattern.encoding_ = encoding;
  return pattern;
}

RequestPattern::Match RequestPattern::match(std::string_view bytes,
                                            std::string_view& transaction) const {
  if (!bytes.starts_with(head_before_)) return Match::different;
  std::string_view rest = bytes.substr(head_before_.size());
  size_t length = 0;
  size_t digits = 0;
  while (digits < std::min(rest.size(), kLengthDigitsMax) && is_digit(rest[digits]))
    length = 10 * length + static_cast<size_t>(rest[digits++] - '0');
  if (digits == 0) return Match::different;
  rest.remove_prefix(digits);
  if (!rest.starts_with(head_after_)) return Match::different;
  rest.remove_prefix(head_after_.size());
  if (rest.size() < length) return Match::incomplete;
  if (rest.size() > length) return Match::different;
  const auto call = read_send_transaction_call(rest);
  if (!call || call->options != options_) return Match::different;
  transaction = call->transaction;
  return Match::repeated;
}

}  // namespace shredway
