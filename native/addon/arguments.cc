#include "addon/arguments.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace shredway::addon {

std::string received(const Napi::Value& value) {
  constexpr size_t kCharactersMax = 40;
  switch (value.Type()) {
    case napi_undefined:
      return ", got undefined";
    case napi_null:
      return ", got null";
    case napi_boolean:
      return value.As<Napi::Boolean>().Value() ? ", got true" : ", got false";
    case napi_number: {
      std::array<char, 32> text{};
      (void)std::snprintf(text.data(), text.size(), "%.15g",
                          value.As<Napi::Number>().DoubleValue());
      return std::string(", got ") + text.data();
    }
    case napi_string: {
      const std::string text = value.As<Napi::String>().Utf8Value();
      if (text.size() <= kCharactersMax) return ", got \"" + text + "\"";
      return ", got a string of " + std::to_string(text.size()) + " bytes";
    }
    case napi_bigint:
      return ", got another bigint";
    case napi_function:
      return ", got a function";
    case napi_object:
      return value.IsArray() ? ", got an array" : ", got an object of another type";
    default:
      return ", got another type";
  }
}

bool read_property(const Napi::Object& object, const char* name, Napi::Value& out) {
  out = object.Get(name);
  return !object.Env().IsExceptionPending();
}

bool read_element(const Napi::Array& array, uint32_t i, Napi::Value& out) {
  out = array.Get(i);
  return !array.Env().IsExceptionPending();
}

bool read_bytes(const Napi::Value& value, const char* name, Bytes& out) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array)
    return fail(value.Env(), std::string(name) + ": expected a Uint8Array" + received(value));
  const auto array = value.As<Napi::Uint8Array>();
  out = {array.Data(), array.ByteLength()};
  return true;
}

bool read_words(const Napi::Value& value, const char* name, size_t count, uint64_t*& out) {
  if (!value.IsTypedArray() ||
      value.As<Napi::TypedArray>().TypedArrayType() != napi_biguint64_array ||
      value.As<Napi::TypedArray>().ElementLength() != count)
    return fail(value.Env(), std::string(name) + ": expected a BigUint64Array of " +
                                 std::to_string(count) + " elements");
  out = value.As<Napi::BigUint64Array>().Data();
  return true;
}

bool read_u32(const Napi::Value& value, const char* name, uint32_t max, uint32_t& out) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  if (!(number >= 0 && number <= max) || number != std::floor(number))
    return fail(value.Env(), std::string(name) + ": expected an integer from 0 to " +
                                 std::to_string(max) + received(value));
  out = static_cast<uint32_t>(number);
  return true;
}

bool read_optional_u32(const Napi::Object& object, const char* name, uint32_t max, uint32_t& out) {
  Napi::Value value;
  if (!read_property(object, name, value)) return false;
  return value.IsUndefined() || read_u32(value, name, max, out);
}

bool read_optional_bool(const Napi::Object& object, const char* name, bool& out) {
  Napi::Value value;
  if (!read_property(object, name, value)) return false;
  if (value.IsUndefined()) return true;
  if (!value.IsBoolean())
    return fail(object.Env(), std::string(name) + ": expected true or false" + received(value));
  out = value.As<Napi::Boolean>().Value();
  return true;
}

bool read_optional_name(const Napi::Object& object, const char* name, size_t count,
                        const char* (*name_of)(size_t), size_t& out) {
  Napi::Value value;
  if (!read_property(object, name, value)) return false;
  if (value.IsUndefined()) return true;
  const std::string text = value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
  std::string expected;
  for (size_t i = 0; i < count; i++) {
    if (text == name_of(i)) {
      out = i;
      return true;
    }
    expected += (i == 0 ? "" : " or ") + std::string(name_of(i));
  }
  return fail(object.Env(), std::string(name) + ": expected " + expected + received(value));
}

bool read_u64(const Napi::Value& value, const char* name, uint64_t& out) {
  bool lossless = false;
  if (value.IsBigInt()) out = value.As<Napi::BigInt>().Uint64Value(&lossless);
  if (!lossless)
    return fail(value.Env(),
                std::string(name) + ": expected a bigint from 0 to 2^64 - 1" + received(value));
  return true;
}

bool read_safe_integer(const Napi::Value& value, const char* name, uint64_t& out) {
  constexpr double kMax = 9007199254740991;
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  // Comparisons with NaN are false.
  if (!(number >= 0 && number <= kMax && number == std::trunc(number)))
    return fail(value.Env(),
                std::string(name) + ": expected an integer from 0 to 2^53 - 1" + received(value));
  out = static_cast<uint64_t>(number);
  return true;
}

bool read_cpus(const Napi::Value& value, std::vector<int>& out) {
  if (!value.IsArray())
    return fail(value.Env(), "cpus: expected an array of numbers" + received(value));
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); i++) {
    uint32_t cpu = 0;
    Napi::Value element;
    if (!read_element(array, i, element) || !read_u32(element, "cpus", 1u << 16, cpu)) return false;
    out.push_back(static_cast<int>(cpu));
  }
  return true;
}

bool read_strings(const Napi::Value& value, const char* name, std::vector<std::string>& out) {
  if (!value.IsArray())
    return fail(value.Env(),
                std::string(name) + ": expected an array of strings" + received(value));
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); i++) {
    Napi::Value element;
    if (!read_element(array, i, element)) return false;
    if (!element.IsString())
      return fail(value.Env(), std::string(name) + ": expected a string" + received(element));
    out.push_back(element.As<Napi::String>());
  }
  return true;
}

bool read_endpoint(const Napi::Value& value, const char* name, Endpoint& out) {
  Bytes bytes{};
  if (!read_bytes(value, name, bytes)) return false;
  if (bytes.length != kEndpointBytes)
    return fail(value.Env(),
                std::string(name) + ": expected 18 bytes, got " + std::to_string(bytes.length));
  out = endpoint_from_bytes(bytes.data);
  return true;
}

Napi::Value endpoint_value(Napi::Env env, const Endpoint& endpoint) {
  return Napi::String::New(env, to_string(endpoint));
}

Napi::Value counts_value(Napi::Env env, std::initializer_list<NamedCount> counts) {
  const auto object = Napi::Object::New(env);
  for (const auto& [name, value] : counts)
    object.Set(name, Napi::Number::New(env, static_cast<double>(value)));
  return object;
}

}  // namespace shredway::addon
