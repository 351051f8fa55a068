// Is the parity that of the network's code, on every path, for every size?
//
// Checked against the code's other definition: data shard i and code shard j are the values at i
// and data + j of the one polynomial of degree below `data` through the data. Nothing of the
// implementation's matrix is used. Real captures: shred_captures_test.cc.
#include "shred/reed_solomon.h"

#include <string>

#include "check.h"

namespace {

using namespace shredway;
using Shards = std::vector<std::vector<uint8_t>>;

// Logarithms to the base 2 modulo 0x11D.
struct Field {
  uint8_t power[510];
  int logarithm[256];
  Field() {
    unsigned x = 1;
    for (int i = 0; i < 255; i++) {
      power[i] = power[i + 255] = static_cast<uint8_t>(x);
      logarithm[x] = i;
      x <<= 1;
      if (x & 0x100) x ^= 0x11d;
    }
  }
  uint8_t multiply(uint8_t a, uint8_t b) const {
    return a && b ? power[logarithm[a] + logarithm[b]] : uint8_t{0};
  }
  uint8_t divide(uint8_t a, uint8_t b) const {
    return a ? power[logarithm[a] + 255 - logarithm[b]] : uint8_t{0};
  }
};

// Lagrange: weight of data shard i in the value at `at`.
uint8_t weight(const Field& field, size_t data, size_t i, size_t at) {
  uint8_t out = 1;
  for (size_t other = 0; other < data; other++) {
    if (other == i) continue;
    out = field.multiply(out, static_cast<uint8_t>(at ^ other));
    out = field.divide(out, static_cast<uint8_t>(i ^ other));
  }
  return out;
}

Shards code_by_definition(const Shards& data, size_t code) {
  const Field field;
  Shards out(code, std::vector<uint8_t>(data[0].size()));
  for (size_t row = 0; row < code; row++)
    for (size_t i = 0; i < data.size(); i++) {
      const uint8_t factor = weight(field, data.size(), i, data.size() + row);
      for (size_t byte = 0; byte < data[0].size(); byte++)
        out[row][byte] ^= field.multiply(factor, data[i][byte]);
    }
  return out;
}

Shards random_shards(size_t count, size_t bytes, uint32_t seed) {
  Shards out(count, std::vector<uint8_t>(bytes));
  for (auto& shard : out)
    for (uint8_t& byte : shard) byte = static_cast<uint8_t>((seed = seed * 1664525 + 11) >> 24);
  return out;
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

}  // namespace

TEST(reed_solomon_every_shape) {
  constexpr size_t kShapes[][2] = {{32, 32}, {34, 34}, {7, 21},  {1, 1},    {1, 254},
                                   {254, 1}, {2, 3},   {19, 45}, {128, 127}};
  for (const auto& [data_count, code_count] : kShapes) {
    const Shards data = random_shards(data_count, 67, static_cast<uint32_t>(data_count));
    const Shards expected = code_by_definition(data, code_count);
    const ReedSolomon reed_solomon(data_count, code_count);
    CHECK_EQ(reed_solomon.data_count(), data_count);
    on_each_path([&] { CHECK(encoded(reed_solomon, data) == expected); });
  }
}

TEST(reed_solomon_every_length) {
  const ReedSolomon reed_solomon(32, 32);
  const Shards data = random_shards(32, 987, 3);
  const Shards expected = code_by_definition(data, 32);
  for (size_t bytes = 0; bytes <= 987; bytes = bytes < 260 ? bytes + 1 : bytes + 103) {
    Shards part = data, expected_part = expected;
    for (auto& shard : part) shard.resize(bytes);
    for (auto& shard : expected_part) shard.resize(bytes);
    on_each_path([&] { CHECK(encoded(reed_solomon, part) == expected_part); });
  }
  on_each_path([&] { CHECK(encoded(reed_solomon, data) == expected); });
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
