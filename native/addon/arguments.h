// Arguments: converts JavaScript values to C++ values, with checks.
//
// TypeScript has checked the values already; these checks protect the process against calls from
// plain JavaScript. A failed check throws a TypeError into JavaScript and returns false.
#pragma once

#include <napi.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "net/address.h"

namespace shredway::addon {

inline bool fail(Napi::Env env, const std::string& text) {
  Napi::TypeError::New(env, text).ThrowAsJavaScriptException();
  return false;
}

// ", got …" for an error text: a short value in full, otherwise the type. Runs no JavaScript.
std::string received(const Napi::Value& value);
// Reads a property or an element. Returns false if reading it threw (a getter, a proxy); the
// exception is then pending.
bool read_property(const Napi::Object& object, const char* name, Napi::Value& out);
bool read_element(const Napi::Array& array, uint32_t i, Napi::Value& out);

// Bytes of a Uint8Array (or Buffer). Valid only during the call.
struct Bytes {
  const uint8_t* data;
  size_t length;
};
bool read_bytes(const Napi::Value& value, const char* name, Bytes& out);
// Reads consecutive elements of plain data.
template <typename Element>
bool read_elements(const Napi::Value& value, const char* name, size_t max,
                   std::vector<Element>& out) {
  Bytes bytes{};
  if (!read_bytes(value, name, bytes)) return false;
  if (bytes.length % sizeof(Element) != 0 || bytes.length / sizeof(Element) > max)
    return fail(value.Env(), std::string(name) + ": expected at most " + std::to_string(max) +
                                 " times " + std::to_string(sizeof(Element)) + " bytes, got " +
                                 std::to_string(bytes.length) + " bytes in all");
  out.resize(bytes.length / sizeof(Element));
  if (!out.empty()) std::memcpy(out.data(), bytes.data, bytes.length);
  return true;
}
inline std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.length};
}
// A key with the size of the array.
template <size_t size>
bool read_key(const Napi::Value& value, const char* name, std::array<uint8_t, size>& out) {
  Bytes bytes{};
  if (!read_bytes(value, name, bytes)) return false;
  if (bytes.length != size)
    return fail(value.Env(), std::string(name) + ": expected " + std::to_string(size) +
                                 " bytes, got " + std::to_string(bytes.length));
  std::memcpy(out.data(), bytes.data, size);
  return true;
}
// A BigUint64Array of `count` elements. Valid only during the call.
bool read_words(const Napi::Value& value, const char* name, size_t count, uint64_t*& out);
// Unsigned integer in [0, max].
bool read_u32(const Napi::Value& value, const char* name, uint32_t max, uint32_t& out);
// Property of `object`; `out` does not change if the property is undefined.
bool read_optional_u32(const Napi::Object& object, const char* name, uint32_t max, uint32_t& out);
bool read_optional_bool(const Napi::Object& object, const char* name, bool& out);
// Reads a property that is one of `count` names; `out` is its index.
bool read_optional_name(const Napi::Object& object, const char* name, size_t count,
                        const char* (*name_of)(size_t), size_t& out);
// The same for an enum of SHREDWAY_NAMED_ENUM.
template <auto name_of, size_t count, typename Enum>
bool read_optional_enum(const Napi::Object& object, const char* name, Enum& out) {
  auto number = static_cast<size_t>(out);
  const auto text_of = [](size_t i) { return name_of(static_cast<Enum>(i)); };
  if (!read_optional_name(object, name, count, text_of, number)) return false;
  out = static_cast<Enum>(number);
  return true;
}
bool read_u64(const Napi::Value& value, const char* name, uint64_t& out);
// A number that is an integer in [0, 2^53 - 1].
bool read_safe_integer(const Napi::Value& value, const char* name, uint64_t& out);
// An array of CPU numbers.
bool read_cpus(const Napi::Value& value, std::vector<int>& out);
// An array of strings.
bool read_strings(const Napi::Value& value, const char* name, std::vector<std::string>& out);
// 18 bytes: 16 of address, u16 port little-endian.
bool read_endpoint(const Napi::Value& value, const char* name, Endpoint& out);
Napi::Value endpoint_value(Napi::Env env, const Endpoint& endpoint);
struct NamedCount {
  const char* name;
  uint64_t value;
};
// An object of numbers; counts above 2^53 lose precision.
Napi::Value counts_value(Napi::Env env, std::initializer_list<NamedCount> counts);

}  // namespace shredway::addon
