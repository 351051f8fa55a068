// Request pattern: recognises an HTTP request with sendTransaction that repeats an earlier one of
// its connection.
//
// For the fast path (fast_path.h). JavaScript has answered the earlier request; a repetition has
// the same head (but for the length of its body) and the same options, and differs only in its id
// and its transaction. Everything else is left to JavaScript, so this reader knows no other form:
// one call, two parameters, no escapes. Pure; never allocates in match().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shredway {

enum class TransactionTextEncoding : uint8_t { base64, base58 };

// The parts of a JSON-RPC call of sendTransaction with a text and an object as parameters.
struct SendTransactionCall {
  std::string_view transaction;  // without quotation marks
  std::string_view options;      // with braces
};

// Returns nothing unless the body has the form above: ASCII without escapes, members in any order,
// each once, an id that is a whole number or a short text.
std::optional<SendTransactionCall> read_send_transaction_call(std::string_view body);

class RequestPattern {
 public:
  // `head`: request line and headers without the empty line at their end; `body`: a call. Returns
  // nothing if the head has no Content-Length of its own line or the body has another form.
  static std::optional<RequestPattern> learn(std::string_view head, std::string_view body,
                                             TransactionTextEncoding encoding);

  // repeated: `bytes` is exactly one request that repeats the learned one; incomplete: its
  // beginning, with a part of the body.
  enum class Match : uint8_t { different, incomplete, repeated };
  // `transaction` is set if it is repeated.
  Match match(std::string_view bytes, std::string_view& transaction) const;
  TransactionTextEncoding encoding() const { return encoding_; }

 private:
  std::string head_before_;  // up to the digits of Content-Length
  std::string head_after_;   // behind them, with the empty line
  std::string options_;
  TransactionTextEncoding encoding_ = TransactionTextEncoding::base64;
};

}  // namespace shredway
