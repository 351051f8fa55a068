#include "submission/request_pattern.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"

namespace {

using namespace shredway;
using Match = RequestPattern::Match;

constexpr auto kPatternBase64 = TransactionTextEncoding::base64;
const std::string kCallOptions = R"({"encoding":"base64","skipPreflight":true})";

std::string call_body(const std::string& id = "1", const std::string& text = "AQID",
                      const std::string& options = kCallOptions) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"sendTransaction","params":[")" + text +
         R"(",)" + options + "]}";
}

// Reads a copy of exactly this size, so that the sanitizer detects a read beyond it. "refused", or
// the transaction and the options.
std::string read_call(const std::string& body) {
  const std::unique_ptr<char[]> copy(new char[body.size()]);
  std::copy(body.begin(), body.end(), copy.get());
  const auto call = read_send_transaction_call({copy.get(), body.size()});
  if (!call) return "refused";
  return std::string(call->transaction) + " " + std::string(call->options);
}
const std::string kCallRead = "AQID " + kCallOptions;

std::string call_head(const std::string& length, const std::string& host = "relay") {
  return "POST /?api-key=k HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: " + length +
         "\r\nContent-Type: application/json";
}
std::string call_request(const std::string& body, const std::string& host = "relay") {
  return call_head(std::to_string(body.size()), host) + "\r\n\r\n" + body;
}
RequestPattern learned_pattern() {
  return *RequestPattern::learn(call_head("120"), call_body(), kPatternBase64);
}
bool can_learn(const std::string& head, const std::string& body = call_body()) {
  return RequestPattern::learn(head, body, kPatternBase64).has_value();
}

Match match_of(const RequestPattern& pattern, const std::string& bytes,
               std::string* transaction = nullptr) {
  const std::unique_ptr<char[]> copy(new char[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  std::string_view found;
  const Match match = pattern.match({copy.get(), bytes.size()}, found);
  if (match != Match::repeated) CHECK(found.empty());
  if (transaction) *transaction = found;
  return match;
}

}  // namespace

// ---- calls ----------------------------------------------------------------------------------

TEST(submission_request_pattern_reads_members_in_any_order) {
  std::vector<std::string> members = {R"("id":1)", R"("jsonrpc":"2.0")",
                                      R"("method":"sendTransaction")",
                                      R"("params":["AQID",)" + kCallOptions + "]"};
  std::sort(members.begin(), members.end());
  do {
    CHECK_EQ(
        read_call("{" + members[0] + "," + members[1] + "," + members[2] + "," + members[3] + "}"),
        kCallRead);
    // Each member is required, once.
    CHECK_EQ(read_call("{" + members[0] + "," + members[1] + "," + members[2] + "}"), "refused");
    CHECK_EQ(read_call("{" + members[0] + "," + members[1] + "," + members[2] + "," + members[3] +
                       "," + members[0] + "}"),
             "refused");
    CHECK_EQ(read_call("{" + members[0] + "," + members[1] + "," + members[2] + "," + members[3] +
                       R"(,"other":1})"),
             "refused");
  } while (std::next_permutation(members.begin(), members.end()));
}

TEST(submission_request_pattern_reads_white_space_between_parts_only) {
  CHECK_EQ(read_call(" {\t\"jsonrpc\" :\r\n\"2.0\" , \"id\": 1 ,\"method\" : \"sendTransaction\", "
                     "\"params\" : [ \"AQID\" , " +
                     kCallOptions + " ] } \n"),
           kCallRead);
  // The options keep theirs.
  CHECK_EQ(read_call(call_body("1", "AQID", "{ \"a\" : 1 }")), "AQID { \"a\" : 1 }");
  CHECK_EQ(read_call(call_body("1 2")), "refused");
  CHECK_EQ(read_call("\v" + call_body()), "refused");
  CHECK_EQ(read_call("\xa0" + call_body()), "refused");
  CHECK_EQ(read_call(std::string(1, '\0') + call_body()), "refused");
}

TEST(submission_request_pattern_reads_ids_that_are_exact) {
  for (const char* id :
       {"0", "1", "999999999999999", R"("")", R"("a b")", R"("0001")", R"("-1.5e9")"})
    CHECK_EQ(read_call(call_body(id)), kCallRead);
  CHECK_EQ(read_call(call_body('"' + std::string(64, 'i') + '"')), kCallRead);
  CHECK_EQ(read_call(call_body('"' + std::string(65, 'i') + '"')), "refused");
  for (const char* id : {"",
                         "00",
                         "01",
                         "-1",
                         "-0",
                         "+1",
                         "1.5",
                         "1.",
                         ".5",
                         "1e3",
                         "1E3",
                         "0x1",
                         "null",
                         "true",
                         "[]",
                         "{}",
                         "1000000000000000",
                         "9007199254740993",
                         "NaN",
                         "\"a",
                         "a\"",
                         R"("\n")",
                         R"("\u0061")",
                         "\"\x7f\"",
                         "\"\xc3\xa9\"",
                         "\"\t\"",
                         "'1'",
                         "1 1",
                         R"("a""b")"})
    CHECK_EQ(read_call(call_body(id)), "refused");
}

TEST(submission_request_pattern_refuses_other_texts) {
  for (const char* text :
       {"", "AQ\\u0049D", "AQ\\/D", "AQ\"D", "AQ\nD", "\xc3\xa9", "AQ\x7f", "\x1f"})
    CHECK_EQ(read_call(call_body("1", text)), "refused");
  CHECK_EQ(read_call(call_body("1", std::string("A\0B", 3))), "refused");
  // Only its decoder knows which characters a transaction may have.
  CHECK_EQ(read_call(call_body("1", "A Q,]}{")), "A Q,]}{ " + kCallOptions);
}

TEST(submission_request_pattern_reads_flat_options_only) {
  for (const char* options :
       {"{}", "{ }", R"({"a":"}"})", R"({"a":"{["})", R"({"a":null,"b":1.5})"})
    CHECK_EQ(read_call(call_body("1", "AQID", options)), std::string("AQID ") + options);
  for (const char* options :
       {"", "null", "[]", "\"base64\"", "1", R"({"a":{}})", R"({"a":[1]})", R"({"a":"\u0041"})",
        R"({"a":"\"})", R"({"a":"})", "{", "}", "{}}", "{{}}", "{},{}", "{}, 1", "{} {}", "{},"})
    CHECK_EQ(read_call(call_body("1", "AQID", options)), "refused");
}

TEST(submission_request_pattern_refuses_other_calls) {
  const std::string call = R"({"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":)";
  for (const char* params :
       {"[]", "[\"AQID\"]", "[\"AQID\",]", "[{},\"AQID\"]", "[1,{}]", "[\"AQID\" {}]",
        "{\"transaction\":\"AQID\"}", "\"AQID\"", "[[\"AQID\",{}]]", "null"})
    CHECK_EQ(read_call(call + params + "}"), "refused");
  CHECK_EQ(read_call(call + "[\"AQID\",{}]}"), "AQID {}");
  for (const char* method : {"sendTransactions", "sendtransaction", "simulateTransaction", "",
                             "sendTransactio", "send\\u0054ransaction"})
    CHECK_EQ(read_call(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) +
                       R"(","params":["AQID",{}]})"),
             "refused");
  for (const char* version : {"\"1.0\"", "2.0", "\"2\"", "null", "\"2.0 \""})
    CHECK_EQ(read_call(R"({"jsonrpc":)" + std::string(version) +
                       R"(,"id":1,"method":"sendTransaction","params":["AQID",{}]})"),
             "refused");
  for (const std::string& body :
       {std::string(), std::string("{}"), std::string("{"), "[" + call_body() + "]",
        call_body() + "x", call_body() + call_body(), call_body() + ",", "x" + call_body(),
        call_body() + std::string(1, '\0'), "\xef\xbb\xbf" + call_body(), "," + call_body()})
    CHECK_EQ(read_call(body), "refused");
}

TEST(submission_request_pattern_refuses_every_beginning_of_a_call) {
  const std::string body = call_body("\"id\"");
  for (size_t length = 0; length < body.size(); length++) {
    CHECK_EQ(read_call(body.substr(0, length)), "refused");
    if (length > 0) CHECK_EQ(read_call(body.substr(length)), "refused");
  }
}

// ---- learning -------------------------------------------------------------------------------

TEST(submission_request_pattern_learns_heads_with_one_length) {
  CHECK(can_learn("POST / HTTP/1.1\r\nContent-Length: 5"));
  CHECK(can_learn("POST / HTTP/1.1\r\nCONTENT-LENGTH:5"));
  CHECK(can_learn("POST / HTTP/1.1\r\ncontent-length:  \t 120\r\nHost: a"));
  CHECK(!can_learn("POST / HTTP/1.1\r\nHost: a"));
  CHECK(!can_learn("POST / HTTP/1.1\r\nTransfer-Encoding: chunked"));
  CHECK(!can_learn("POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-length: 5"));
  CHECK(!can_learn("POST / HTTP/1.1\r\nContent-Length:\r\nContent-Length: 5"));
  CHECK(!can_learn("POST / HTTP/1.1\r\nContent-Length: "));
  CHECK(!can_learn("POST / HTTP/1.1\r\nContent-Length: +5"));
  CHECK(!can_learn("POST / HTTP/1.1\r\nContent-Length:"));
  CHECK(!can_learn("POST / HTTP/1.1\r\nX-Content-Length: 5"));
  CHECK(!can_learn("POST /?a=Content-Length: 5 HTTP/1.1\r\nHost: a"));
  CHECK(!can_learn("Content-Length: 5"));
  CHECK(!can_learn(""));
  const std::string head = "POST / HTTP/1.1\r\nContent-Length: 5\r\nA: ";
  CHECK(can_learn(head + std::string(4096 - head.size(), 'a')));
  CHECK(!can_learn(head + std::string(4097 - head.size(), 'a')));
}

TEST(submission_request_pattern_learns_calls_only) {
  CHECK(can_learn(call_head("120")));
  CHECK(!can_learn(call_head("120"), ""));
  CHECK(!can_learn(call_head("120"), "[" + call_body() + "]"));
  CHECK(!can_learn(call_head("120"), call_body("01")));
  CHECK(RequestPattern::learn(call_head("1"), call_body(), TransactionTextEncoding::base58)
            ->encoding() == TransactionTextEncoding::base58);
  CHECK(learned_pattern().encoding() == kPatternBase64);
}

// ---- matching -------------------------------------------------------------------------------

TEST(submission_request_pattern_matches_other_ids_texts_and_lengths) {
  const RequestPattern pattern = learned_pattern();
  for (const char* id : {"1", "2", "123456789", "\"other\""}) {
    for (const size_t length : {1, 4, 700, 1644, 5464}) {
      const std::string text(length, 'Q');
      std::string found;
      CHECK(match_of(pattern, call_request(call_body(id, text)), &found) == Match::repeated);
      CHECK_EQ(found, text);
    }
  }
  // The order of the members and the space between them may differ, too.
  CHECK(match_of(pattern,
                 call_request(R"({ "params": [ "AQ", )" + kCallOptions +
                              R"( ], "method":"sendTransaction","id":9,"jsonrpc":"2.0"})")) ==
        Match::repeated);
}

TEST(submission_request_pattern_differs_with_any_other_byte_of_the_head) {
  const RequestPattern pattern = learned_pattern();
  const std::string request = call_request(call_body("77", "AAAA"));
  CHECK(match_of(pattern, request) == Match::repeated);
  const size_t head_bytes = request.find("\r\n\r\n") + 4;
  for (size_t at = 0; at < head_bytes; at++) {
    for (const char change : {char{0x01}, char{0x20}}) {
      std::string other = request;
      other[at] = static_cast<char>(other[at] ^ change);
      CHECK(match_of(pattern, other) != Match::repeated);
    }
    CHECK(match_of(pattern, request.substr(0, at) + request.substr(at + 1)) != Match::repeated);
    const std::string longer = request.substr(0, at) + request[at] + request.substr(at);
    CHECK(match_of(pattern, longer) != Match::repeated);
  }
  CHECK(match_of(pattern, call_request(call_body(), "other")) == Match::different);
  CHECK(match_of(pattern, call_request(call_body(), "relay\r\nX: y")) == Match::different);
}

TEST(submission_request_pattern_differs_with_other_options) {
  const RequestPattern pattern = learned_pattern();
  for (const char* options :
       {"{}", R"({"encoding":"base58","skipPreflight":true})", R"({"encoding":"base64"})",
        R"({"encoding":"base64","skipPreflight":true })",
        R"({"skipPreflight":true,"encoding":"base64"})",
        R"({"encoding":"base64","skipPreflight":true,"maxRetries":0})"})
    CHECK(match_of(pattern, call_request(call_body("1", "AQID", options))) == Match::different);
  CHECK(match_of(pattern, call_request("[" + call_body() + "]")) == Match::different);
  CHECK(match_of(pattern, call_request(call_body("1", ""))) == Match::different);
  CHECK(match_of(pattern, call_request("")) == Match::different);
}

TEST(submission_request_pattern_matches_exactly_one_whole_request) {
  const RequestPattern pattern = learned_pattern();
  const std::string request = call_request(call_body("5", std::string(500, 'Z')));
  const size_t head_bytes = request.find("\r\n\r\n") + 4;
  for (size_t length = 0; length < request.size(); length++) {
    const Match match = match_of(pattern, request.substr(0, length));
    CHECK(match == (length < head_bytes ? Match::different : Match::incomplete));
  }
  CHECK(match_of(pattern, request) == Match::repeated);
  for (const char* more : {" ", "\n", "\r\n", "P", "}"})
    CHECK(match_of(pattern, request + more) == Match::different);
  CHECK(match_of(pattern, request + request) == Match::different);
  CHECK(match_of(pattern, "\r\n" + request) == Match::different);
  CHECK(match_of(pattern, request.substr(1)) == Match::different);
}

TEST(submission_request_pattern_reads_lengths_of_five_digits) {
  const RequestPattern pattern = learned_pattern();
  const std::string body = call_body();
  const auto with_length = [&](const std::string& length) {
    return match_of(pattern, call_head(length) + "\r\n\r\n" + body);
  };
  const size_t length = body.size();
  CHECK(with_length(std::to_string(length)) == Match::repeated);
  CHECK(with_length(std::to_string(length + 1)) == Match::incomplete);
  CHECK(with_length("99999") == Match::incomplete);
  CHECK(with_length(std::to_string(length - 1)) == Match::different);
  for (const char* other :
       {"", "0", "-1", "+5", "100000", "18446744073709551616", "1 ", "0x50", "a"})
    CHECK(with_length(other) == Match::different);
  // 2^32 and 2^64 more are not the same.
  CHECK(with_length(std::to_string((uint64_t{1} << 32) + length)) == Match::different);
}

// Changes, cuts and joins requests. What is a repetition differs from a learned request only where
// it may, which a second definition finds by comparing the parts around id and transaction.
TEST(submission_request_pattern_repetitions_have_the_learned_parts) {
  std::mt19937_64 random(2026);
  const RequestPattern pattern = learned_pattern();
  const std::string alphabet = "0123456789\"{}[],:\\ \r\nABCabc";
  size_t repeated = 0, incomplete = 0;
  for (int round = 0; round < 40'000; round++) {
    const std::string id = std::to_string(random() % 1'000'000);
    const std::string text(1 + random() % 40, static_cast<char>('A' + random() % 26));
    std::string bytes = call_request(call_body(id, text));
    for (uint64_t changes = random() % 3; changes > 0; changes--) {
      const size_t at = random() % bytes.size();
      const char character = alphabet[random() % alphabet.size()];
      switch (random() % 4) {
        case 0:
          bytes[at] = character;
          break;
        case 1:
          bytes.insert(at, 1, character);
          break;
        case 2:
          bytes.erase(at, 1);
          break;
        default:
          bytes.resize(at + 1);
      }
    }
    std::string found;
    const Match match = match_of(pattern, bytes, &found);
    incomplete += match == Match::incomplete;
    if (match != Match::repeated) continue;
    repeated++;
    const size_t body_at = bytes.find("\r\n\r\n") + 4;
    const std::string body = bytes.substr(body_at);
    const size_t digits_at = call_head("").find(": \r\n") + 2;
    const size_t digits_end = bytes.find("\r\n", digits_at);
    CHECK_EQ(bytes.substr(0, body_at),
             call_head(bytes.substr(digits_at, digits_end - digits_at)) + "\r\n\r\n");
    CHECK_EQ(std::stoul(bytes.substr(digits_at, digits_end - digits_at)), body.size());
    CHECK(body.find("[\"" + found + "\"") != std::string::npos ||
          body.find("\"" + found + "\"") != std::string::npos);
    CHECK(body.find(kCallOptions) != std::string::npos);
    CHECK(found.find_first_of("\"\\\r\n") == std::string::npos);
    for (size_t length = 0; length < bytes.size(); length += 1 + random() % 20)
      CHECK(match_of(pattern, bytes.substr(0, length)) != Match::repeated);
    CHECK(match_of(pattern, bytes + alphabet[random() % alphabet.size()]) == Match::different);
  }
  CHECK(repeated > 5000);
  CHECK(incomplete > 1000);
}
