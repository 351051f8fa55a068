// The filters of all subscribers, compiled together, match what each filter matches alone.
#include "stream_support.h"

#include "transaction/vote.h"

using namespace shredway;
using namespace shredway::test;

namespace {

// The specification: one filter, without an index.
bool matches_alone(const StreamFilter& filter, const Bytes& bytes, const Transaction& transaction) {
  const auto has = [&](const StreamAccount& account) {
    for (size_t i = 0; i < transaction.key_count; i++)
      if (std::memcmp(&bytes[transaction.keys_begin + 32 * i], account.data(), 32) == 0)
        return true;
    return false;
  };
  const bool is_vote = is_simple_vote(bytes.data(), transaction);
  if (filter.vote == 1 && is_vote) return false;
  if (filter.vote == 2 && !is_vote) return false;
  if (filter.signature &&
      !std::equal(filter.signature->begin(), filter.signature->end(), &bytes[1]))
    return false;
  if (!filter.include.empty() && std::none_of(filter.include.begin(), filter.include.end(), has))
    return false;
  return std::none_of(filter.exclude.begin(), filter.exclude.end(), has) &&
         std::all_of(filter.require.begin(), filter.require.end(), has);
}

std::vector<uint16_t> matched(FilterIndex& index, const Bytes& bytes, uint32_t tier = 0) {
  std::vector<uint16_t> out;
  index.match(bytes.data(), parsed(bytes), {tier}, out);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<StreamAccount> random_accounts(std::mt19937& random, size_t max) {
  std::vector<StreamAccount> out(random() % (max + 1));
  for (StreamAccount& account : out)
    account =
        random() % 12 == 0 ? vote_program() : account_of(static_cast<uint32_t>(random() % 12));
  return out;
}

using Ids = std::vector<uint16_t>;

}  // namespace

TEST(stream_filters_match_what_each_one_matches_alone) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; round++) {
    std::vector<Bytes> transactions;
    for (int i = 0; i < 120; i++) {
      std::vector<StreamAccount> accounts = random_accounts(random, 6);
      accounts.push_back(random() % 3 == 0 ? vote_program()
                                           : account_of(static_cast<uint32_t>(random() % 12)));
      transactions.push_back(transaction_of(accounts, random));
    }
    std::vector<StreamFilter> filters(random() % 40);
    for (size_t i = 0; i < filters.size(); i++) {
      StreamFilter& filter = filters[i];
      filter.id = static_cast<uint16_t>(100 + 3 * i);
      filter.tier = static_cast<uint8_t>(random() % 3);
      filter.vote = static_cast<uint8_t>(random() % 3);
      filter.include = random_accounts(random, 3);
      filter.exclude = random_accounts(random, 2);
      filter.require = random_accounts(random, 2);
      if (random() % 5 == 0)
        std::copy_n(&transactions[random() % transactions.size()][1], 64,
                    filter.signature.emplace().begin());
    }
    const auto index = index_of(filter_table(filters));
    for (const Bytes& bytes : transactions)
      for (uint32_t tier = 0; tier < 3; tier++) {
        Ids expected;
        for (const StreamFilter& filter : filters)
          if (filter.tier == tier && matches_alone(filter, bytes, parsed(bytes)))
            expected.push_back(filter.id);
        CHECK(matched(*index, bytes, tier) == expected);
      }
  }
}

TEST(stream_filters_count_a_repeated_account_once) {
  std::mt19937 random(8);
  const StreamAccount a = account_of(1), b = account_of(2);
  const auto index = index_of(filter_table({{.id = 1, .require = {a, b}},
                                            {.id = 2, .require = {a, a}},
                                            {.id = 3, .include = {a}, .exclude = {a}}}));
  CHECK(matched(*index, transaction_of({a, a, a}, random)) == Ids{2});
  CHECK(matched(*index, transaction_of({b, a}, random)) == (Ids{1, 2}));
}

TEST(stream_filters_ignore_a_transaction_without_a_signature) {
  const auto index = index_of(filter_table({{.id = 1}}));
  Bytes bytes{0, 0, 0, 0, 0};
  bytes.resize(5 + 32 + 1);
  CHECK(matched(*index, bytes).empty());
}

TEST(stream_filters_hold_50000_accounts) {
  std::mt19937 random(9);
  std::vector<StreamFilter> filters(50);
  for (uint16_t i = 0; i < 50; i++) {
    filters[i].id = i;
    for (uint32_t k = 0; k < 1000; k++) filters[i].include.push_back(account_of(1000u * i + k));
  }
  const auto index = index_of(filter_table(filters));
  CHECK(matched(*index, transaction_of({account_of(7'123), account_of(49'999)}, random)) ==
        (Ids{7, 49}));
  CHECK(matched(*index, transaction_of({account_of(50'000)}, random)).empty());
}

TEST(stream_filters_refuse_malformed_tables) {
  const auto error_of = [](const Bytes& table) {
    std::string error;
    CHECK(!FilterIndex::parse(table.data(), table.size(), error));
    return error;
  };
  const Bytes valid = filter_table(
      {{.id = 1, .include = {account_of(1)}, .signature = std::array<uint8_t, 64>{}}, {.id = 2}});
  // Every shorter table, and a longer one.
  for (size_t length = 0; length < valid.size(); length++)
    CHECK(!error_of({valid.begin(), valid.begin() + static_cast<long>(length)}).empty());
  Bytes longer = valid;
  longer.push_back(0);
  CHECK_EQ(error_of(longer), "stream filters: expected 156 bytes, got 157");
  CHECK_EQ(error_of(filter_table({{.id = 8192}})),
           "stream filters: expected an id below 8192, got 8192");
  CHECK_EQ(error_of(filter_table({{.id = 5}, {.id = 5}})),
           "stream filters: id 5 occurs more than once");
  CHECK_EQ(error_of(filter_table({{.id = 6, .tier = 8}})),
           "stream filters: filter 6 has an invalid field");
  CHECK_EQ(error_of(filter_table({{.id = 6, .vote = 3}})),
           "stream filters: filter 6 has an invalid field");
  std::vector<StreamFilter> many(1);
  many[0].include.resize(50'001);
  CHECK_EQ(error_of(filter_table(many)),
           "stream filters: expected at most 50000 accounts, got 50001");
  // Counts whose sum overflows 32 bits.
  Bytes huge = filter_table({{.id = 1}});
  for (size_t i = 16; i < 28; i++) huge[i] = 0xff;
  CHECK(error_of(huge).starts_with("stream filters: expected at most 50000 accounts"));
}
