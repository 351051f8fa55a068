// Fast path handle in a simulation: JavaScript says which bytes have arrived and were read, runs
// the fast path and takes what it wrote, and each step has the time that JavaScript gives. Only
// tests open such fast paths. A fast path of the kernel's connections has no such methods.
#include <string>
#include <utility>

#include "addon/arguments.h"
#include "addon/fast_path_handle.h"

namespace shredway::addon {
namespace {

bool read_descriptor(const Napi::Value& value, int& out) {
  uint32_t fd = 0;
  if (!read_u32(value, "descriptor", MemoryStreams::kFirstDuplicate - 1, fd)) return false;
  out = static_cast<int>(fd);
  return true;
}

}  // namespace

Napi::Function FastPathHandle::define_simulated(Napi::Env env) {
  static char simulated;  // the constructor compares its address to know its class
  auto all = methods();
  all.push_back(InstanceMethod<&FastPathHandle::arrive>("arrive"));
  all.push_back(InstanceMethod<&FastPathHandle::mark_read>("markRead"));
  all.push_back(InstanceMethod<&FastPathHandle::end_stream>("endStream"));
  all.push_back(InstanceMethod<&FastPathHandle::set_time>("setTime"));
  all.push_back(InstanceMethod<&FastPathHandle::look>("look"));
  all.push_back(InstanceMethod<&FastPathHandle::conclude>("conclude"));
  all.push_back(InstanceMethod<&FastPathHandle::take_written>("takeWritten"));
  return DefineClass(env, "NativeSimulatedFastPath", all, &simulated);
}

void FastPathHandle::arrive(const Napi::CallbackInfo& info) {
  int fd = 0;
  Bytes bytes{};
  if (path_ && read_descriptor(info[0], fd) && read_bytes(info[1], "bytes", bytes))
    streams_->arrive(fd, {reinterpret_cast<const char*>(bytes.data), bytes.length});
}

void FastPathHandle::mark_read(const Napi::CallbackInfo& info) {
  int fd = 0;
  uint32_t bytes = 0;
  if (!path_ || !read_descriptor(info[0], fd) || !read_u32(info[1], "bytes", UINT32_MAX, bytes))
    return;
  if (!streams_->read(fd, bytes))
    fail(info.Env(), "markRead: fewer than " + std::to_string(bytes) + " bytes have arrived");
}

void FastPathHandle::end_stream(const Napi::CallbackInfo& info) {
  int fd = 0;
  if (path_ && read_descriptor(info[0], fd)) streams_->end(fd);
}

void FastPathHandle::set_time(const Napi::CallbackInfo& info) {
  uint64_t now_ns = 0;
  if (path_ && read_u64(info[0], "now", now_ns)) streams_->set_time(now_ns);
}

Napi::Value FastPathHandle::look(const Napi::CallbackInfo& info) {
  uint64_t now_ns = 0;
  if (!path_ || !read_u64(info[0], "now", now_ns)) return Napi::Boolean::New(info.Env(), false);
  streams_->set_time(now_ns);
  return Napi::Boolean::New(info.Env(), path_->look(*streams_));
}

void FastPathHandle::conclude(const Napi::CallbackInfo& info) {
  uint64_t now_ns = 0;
  if (!path_ || !read_u64(info[0], "now", now_ns)) return;
  streams_->set_time(now_ns);
  path_->conclude();
}

Napi::Value FastPathHandle::take_written(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!path_ || streams_->written().empty()) return env.Undefined();
  const auto [fd, bytes] = std::move(streams_->written().front());
  streams_->written().pop_front();
  const auto pair = Napi::Array::New(env, 2);
  pair.Set(0u, Napi::Number::New(env, fd));
  pair.Set(1u, Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size()));
  return pair;
}

}  // namespace shredway::addon
