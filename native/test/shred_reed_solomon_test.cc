// The parity is that of Solana's code, and any half of a codeword recovers the other, with every
// implementation.
//
// Checked against the code's definition: the shards are the values at 0, 1, 2, … of one polynomial
// of degree below `data` (V[r][c] = r^c times its coefficients), so the tests begin with random
// coefficients. Real captures: shred_captures_test.cc.
#include "shred/reed_solomon.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <span>
#include <string>

#include "check.h"

namespace {

using namespace shredway;
using Shards = std::vector<std::vector<uint8_t>>;

uint8_t multiply(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned bit = 0, shifted = a; bit < 8; bit++, shifted <<= 1) {
    if (shifted & 0x100) shifted ^= 0x11d;
    if (b >> bit & 1) product ^= shifted;
  }
  return static_cast<uint8_t>(product);
}

Shards random_shards(size_t count, size_t bytes, uint32_t seed) {
  Shards out(count, std::vector<uint8_t>(bytes));
  for (auto& shard : out)
    for (uint8_t& byte : shard) byte = static_cast<uint8_t>((seed = seed * 1664525 + 11) >> 24);
  return out;
}

struct Codeword {
  Shards data, code;
  Shards all() const {
    Shards out = data;
    out.insert(out.end(), code.begin(), code.end());
    return out;
  }
};

// Values of one random polynomial per byte, at 0 … data - 1 and at data … data + code - 1.
Codeword codeword(size_t data, size_t code, size_t bytes, uint32_t seed) {
  const Shards coefficients = random_shards(data, bytes, seed);
  Shards values(data + code, std::vector<uint8_t>(bytes));
  for (size_t point = 0; point < values.size(); point++) {
    uint8_t power = 1;  // 0^0 = 1
    for (const auto& coefficient : coefficients) {
      for (size_t i = 0; i < bytes; i++) values[point][i] ^= multiply(coefficient[i], power);
      power = multiply(power, static_cast<uint8_t>(point));
    }
  }
  const auto middle = values.begin() + static_cast<ptrdiff_t>(data);
  return {Shards(values.begin(), middle), Shards(middle, values.end())};
}

Shards encoded(const ReedSolomon& reed_solomon, const Shards& data) {
  Shards out(reed_solomon.code_count(), std::vector<uint8_t>(data[0].size(), 0xee));
  std::vector<const uint8_t*> from;
  std::vector<uint8_t*> to;
  for (const auto& shard : data) from.push_back(shard.data());
  for (auto& shard : out) to.push_back(shard.data());
  reed_solomon.encode(from.data(), to.data(), data[0].size());
  return out;
}

template <typename Body>
void on_each_path(Body body) {
  const ReedSolomonPath before = reed_solomon_path();
  for (const auto path : {ReedSolomonPath::portable, ReedSolomonPath::avx2, ReedSolomonPath::gfni})
    if (reed_solomon_use(path)) body();
  reed_solomon_use(before);
}

constexpr size_t kShapes[][2] = {{32, 32}, {34, 34}, {7, 21},  {1, 1},    {1, 254},
                                 {254, 1}, {2, 3},   {19, 45}, {128, 127}};

// Clears the shards lost[0], lost[1], … and recovers them in place.
bool recovers(const ReedSolomon& reed_solomon, const Shards& all, std::span<const size_t> lost) {
  Shards shards = all;
  std::array<bool, 255> present;
  present.fill(true);
  for (const size_t i : lost) {
    present[i] = false;
    std::fill(shards[i].begin(), shards[i].end(), uint8_t{0xee});
  }
  std::vector<uint8_t*> pointers;
  for (auto& shard : shards) pointers.push_back(shard.data());
  return reed_solomon.recover(pointers.data(), present.data(), all[0].size()) && shards == all;
}

}  // namespace

TEST(reed_solomon_every_shape) {
  for (const auto& [data_count, code_count] : kShapes) {
    const Codeword word = codeword(data_count, code_count, 67, static_cast<uint32_t>(data_count));
    const ReedSolomon reed_solomon(data_count, code_count);
    CHECK_EQ(reed_solomon.data_count(), data_count);
    on_each_path([&] { CHECK(encoded(reed_solomon, word.data) == word.code); });
  }
}

TEST(reed_solomon_every_length) {
  const ReedSolomon reed_solomon(32, 32);
  const Codeword word = codeword(32, 32, 987, 3);
  for (size_t bytes = 0; bytes <= 987; bytes = bytes < 260 ? bytes + 1 : bytes + 103) {
    Codeword part = word;
    for (auto& shard : part.data) shard.resize(bytes);
    for (auto& shard : part.code) shard.resize(bytes);
    on_each_path([&] { CHECK(encoded(reed_solomon, part.data) == part.code); });
  }
  on_each_path([&] { CHECK(encoded(reed_solomon, word.data) == word.code); });
}

TEST(reed_solomon_is_linear_and_zero_for_zero) {
  const ReedSolomon reed_solomon(32, 32);
  Shards left = random_shards(32, 200, 8), right = random_shards(32, 200, 9), sum = left;
  for (size_t i = 0; i < 32; i++)
    for (size_t byte = 0; byte < 200; byte++) sum[i][byte] ^= right[i][byte];
  on_each_path([&] {
    const Shards a = encoded(reed_solomon, left), b = encoded(reed_solomon, right);
    Shards expected = a;
    for (size_t i = 0; i < 32; i++)
      for (size_t byte = 0; byte < 200; byte++) expected[i][byte] ^= b[i][byte];
    CHECK(encoded(reed_solomon, sum) == expected);
    const Shards zeros(32, std::vector<uint8_t>(200));
    CHECK(encoded(reed_solomon, zeros) == zeros);
  });
}

TEST(reed_solomon_recovers_from_any_sufficient_subset) {
  std::mt19937 random(5);
  for (const auto& [data_count, code_count] : kShapes) {
    const Shards all = codeword(data_count, code_count, 67, 77).all();
    const ReedSolomon reed_solomon(data_count, code_count);
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t lost = 0; lost <= code_count; lost = lost < 3 ? lost + 1 : lost * 2) {
      std::shuffle(order.begin(), order.end(), random);
      on_each_path([&] { CHECK(recovers(reed_solomon, all, {order.data(), lost})); });
    }
    std::shuffle(order.begin(), order.end(), random);
    on_each_path([&] { CHECK(recovers(reed_solomon, all, {order.data(), code_count})); });
  }
}

TEST(reed_solomon_recovers_all_data_and_all_code) {
  const ReedSolomon reed_solomon(32, 32);
  const Shards all = codeword(32, 32, 987, 6).all();
  std::array<size_t, 64> numbers;
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  on_each_path([&] {
    CHECK(recovers(reed_solomon, all, {numbers.data(), 32}));
    CHECK(recovers(reed_solomon, all, {numbers.data() + 32, 32}));
    for (size_t i = 0; i < 64; i++) CHECK(recovers(reed_solomon, all, {&numbers[i], 1}));
  });
}

TEST(reed_solomon_recovers_nothing_from_too_few) {
  const ReedSolomon reed_solomon(32, 32);
  Shards shards = codeword(32, 32, 100, 6).all();
  const Shards before = shards;
  std::array<bool, 64> present{};
  std::fill(present.begin() + 20, present.begin() + 51, true);
  std::vector<uint8_t*> pointers;
  for (auto& shard : shards) pointers.push_back(shard.data());
  CHECK(!reed_solomon.recover(pointers.data(), present.data(), 100));
  CHECK(shards == before);
}
