#include "clone/clone_plane.h"

#include <linux/bpf.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "clone/clone_batch.h"
#include "clone/clone_interface.h"
#include "clone/clone_program.h"

namespace shredway {
namespace {

// Trigger ports number the jobs; the last one is 64 x 64.
constexpr uint32_t kWorkersMax = 64;
// A trigger is consumed inside its send call, so space for one message suffices.
constexpr int kTriggerBufferBytes = 1 << 20;

int bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

// All bytes zero: the kernel refuses unknown fields. Braces alone clear only a union's first
// member.
bpf_attr no_attributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

// Names for tools that list maps and programs.
template <size_t N>
void set_name(char (&field)[N], const char* name) {
  std::strncpy(field, name, N - 1);
}

// An array map and its rows as memory of this process. The map lives until both are closed.
class SharedRows {
 public:
  SharedRows() = default;
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;
  ~SharedRows() {
    if (memory_) munmap(memory_, bytes_);
  }
  // Returns an error text, empty on success.
  std::string create(const char* name, uint32_t row_bytes, uint32_t rows) {
    bpf_attr attributes = no_attributes();
    attributes.map_type = BPF_MAP_TYPE_ARRAY;
    attributes.key_size = sizeof(uint32_t);
    attributes.value_size = row_bytes;
    attributes.max_entries = rows;
    attributes.map_flags = BPF_F_MMAPABLE;
    set_name(attributes.map_name, name);
    map_ = UdpSocket(bpf(BPF_MAP_CREATE, attributes));
    if (!map_.valid()) return clone_error(std::string("bpf(BPF_MAP_CREATE) for ") + name, errno);
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (size_t{row_bytes} * rows + page - 1) / page * page;
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, map_.fd(), 0);
    if (memory == MAP_FAILED) return clone_error(std::string("mmap of ") + name, errno);
    memory_ = memory;
    return "";
  }
  int fd() const { return map_.fd(); }
  void* memory() const { return memory_; }
  void close() { map_ = UdpSocket(); }

 private:
  UdpSocket map_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

// The line of the verifier's log that contains the reason: the last one before its statistics.
std::string verdict_of(const std::string& log) {
  const size_t statistics = log.rfind("processed ");
  size_t end = std::min(statistics, log.size());
  while (end > 0 && log[end - 1] == '\n') end--;
  if (end == 0) return "";
  const size_t begin = log.rfind('\n', end - 1);
  const size_t first = begin == std::string::npos ? 0 : begin + 1;
  return " (" + log.substr(first, end - first) + ")";
}

// Every helper that the program calls accepts this license.
constexpr const char* kLicense = "Apache-2.0";

UdpSocket load_program(const std::vector<bpf_insn>& program, std::string& error) {
  std::string log(64 * 1024, '\0');
  bpf_attr attributes = no_attributes();
  attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  attributes.insns = reinterpret_cast<uintptr_t>(program.data());
  attributes.insn_cnt = static_cast<uint32_t>(program.size());
  attributes.license = reinterpret_cast<uintptr_t>(kLicense);
  set_name(attributes.prog_name, "shredway_clone");
  UdpSocket loaded(bpf(BPF_PROG_LOAD, attributes));
  if (loaded.valid()) return loaded;
  const int refused = errno;
  // Load again only to get the verifier's log. A long log is truncated (ENOSPC), which is harmless.
  attributes.log_level = 1;
  attributes.log_buf = reinterpret_cast<uintptr_t>(log.data());
  attributes.log_size = static_cast<uint32_t>(log.size());
  loaded = UdpSocket(bpf(BPF_PROG_LOAD, attributes));
  if (loaded.valid()) return loaded;
  log.resize(std::strlen(log.c_str()));
  error = clone_error("bpf(BPF_PROG_LOAD)", refused) + verdict_of(log);
  return loaded;
}

// A socket that sends only by this interface.
UdpSocket open_trigger_socket(bool ipv4, const std::string& interface, std::string& error) {
  const char* refused = nullptr;
  UdpSocket socket = open_udp_socket(ipv4, refused);
  if (!socket.valid()) {
    error = clone_error(std::string(refused) + " for triggers", errno);
  } else if (setsockopt(socket.fd(), SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                        static_cast<socklen_t>(interface.size())) != 0) {
    error = clone_error("SO_BINDTODEVICE " + interface, errno);
    socket = UdpSocket();
  } else {
    // Optional: the system's default also holds one message.
    setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &kTriggerBufferBytes,
               sizeof kTriggerBufferBytes);
  }
  return socket;
}

// ---- trial of the whole path ----------------------------------------------------------------

// Sends a clone to the trigger interface itself. The program gets it again and drops it, because no
// socket owns it. The row then counts a refusal, and nothing has left the machine.
class Trial final : CloneObserver {
 public:
  // Returns an error text, empty if the program ran the job.
  std::string run(const CloneRegion& region, uint32_t interface, bool ipv4, bool gso) {
    CloneBatch batch(region, CloneHeader{}, gso, *this);
    CloneTarget target{};
    constexpr std::array<uint8_t, 4> kDocumentation = {192, 0, 2, 1};
    if (ipv4) target.destination.address = mapped_ipv4(kDocumentation.data());
    target.hop.interface = interface;
    target.hop.source = target.destination.address;
    const std::vector<CloneTarget> list = {target};
    batch.set_lists({&list, 1});
    std::array<uint8_t, 2 * kPayloadBytes> bytes{};
    std::array<iovec, 2> payloads = {
        {{bytes.data(), kPayloadBytes}, {bytes.data() + kPayloadBytes, kPayloadBytes}}};
    batch.add(0, {payloads.data(), 2, kPayloadBytes}, 0, false);
    batch.flush();
    const int last_error = region.targets[0].last_error;
    batch.settle();
    batch.set_lists({});
    const char* family = ipv4 ? "an IPv4 trigger" : "an IPv6 trigger";
    if (error_number_) return clone_error(std::string("trial of ") + family, error_number_);
    if (refused_ != 2 || last_error != kDropped)
      return std::string("trial of ") + family + ": expected 2 datagrams to come back, got " +
             std::to_string(refused_) + " (error " + std::to_string(last_error) + ")";
    return "";
  }

 private:
  static constexpr uint16_t kPayloadBytes = 1203;
  static constexpr int kDropped = 1;  // NET_XMIT_DROP
  void cloned(uint32_t, uint64_t, uint64_t) override {}
  void clone_failed(uint32_t, uint64_t datagrams, SendFailure) override { refused_ += datagrams; }
  void not_cloned(uint32_t, uint32_t, uint32_t, const PayloadGroup&, int error_number) override {
    error_number_ = error_number;
  }
  uint64_t refused_ = 0;
  int error_number_ = 0;
};

}  // namespace

// ---- the plane ------------------------------------------------------------------------------

struct ClonePlane::Resources {
  SharedRows targets;
  SharedRows jobs;
  std::unique_ptr<CloneInterface> interface;
  std::vector<UdpSocket> ipv4;  // one per worker
  std::vector<UdpSocket> ipv6;  // one per worker, or empty
  bool gso = true;

  std::string open(const ClonePlaneOptions& options);
  std::string open_sockets(uint32_t workers);
  std::string try_out();
  CloneRegion region(uint32_t worker) const;
};

std::string ClonePlane::Resources::open(const ClonePlaneOptions& options) {
  if (options.workers < 1 || options.workers > kWorkersMax)
    return "expected 1 to " + std::to_string(kWorkersMax) + " workers, got " +
           std::to_string(options.workers);
  std::string error =
      targets.create("shredway_target", sizeof(CloneTargetRow), options.workers * kCloneTargetsMax);
  if (error.empty())
    error = jobs.create("shredway_jobs", sizeof(CloneJobRow), options.workers * kCloneJobsMax);
  if (!error.empty()) return error;
  {
    const UdpSocket program = load_program(clone_program(targets.fd(), jobs.fd()), error);
    if (!program.valid()) return error;
    interface = CloneInterface::open(options.interface, program.fd(), error);
    if (!interface) return error;
  }
  // The hook keeps the program alive, and the program the maps.
  targets.close();
  jobs.close();
  error = open_sockets(options.workers);
  return error.empty() ? try_out() : error;
}

std::string ClonePlane::Resources::open_sockets(uint32_t workers) {
  std::string error;
  for (uint32_t worker = 0; worker < workers; worker++) {
    ipv4.push_back(open_trigger_socket(true, interface->name(), error));
    if (!error.empty()) return error;
    if (!interface->ipv6()) continue;
    ipv6.push_back(open_trigger_socket(false, interface->name(), error));
    if (!error.empty()) return error;
  }
  gso = udp_gso_supported(ipv4[0].fd());
  return "";
}

// Disables IPv6 and GSO if they do not work; IPv4 must work.
std::string ClonePlane::Resources::try_out() {
  const auto workers = static_cast<uint32_t>(ipv4.size());
  std::string error = Trial().run(region(0), interface->index(), true, gso);
  if (!error.empty() && gso) {
    gso = false;
    error = Trial().run(region(0), interface->index(), true, gso);
  }
  for (uint32_t worker = 1; error.empty() && worker < workers; worker++)
    error = Trial().run(region(worker), interface->index(), true, gso);
  for (uint32_t worker = 0; worker < ipv6.size(); worker++)
    if (!Trial().run(region(worker), interface->index(), false, gso).empty()) ipv6.clear();
  return error;
}

CloneRegion ClonePlane::Resources::region(uint32_t worker) const {
  CloneRegion region;
  region.first_target = worker * kCloneTargetsMax;
  region.first_job = worker * kCloneJobsMax;
  region.targets = static_cast<CloneTargetRow*>(targets.memory()) + region.first_target;
  region.jobs = static_cast<CloneJobRow*>(jobs.memory()) + region.first_job;
  region.trigger_ipv4 = ipv4[worker].fd();
  region.trigger_ipv6 = ipv6.empty() ? -1 : ipv6[worker].fd();
  region.gso = gso;
  return region;
}

ClonePlane::ClonePlane(std::unique_ptr<Resources> resources) : resources_(std::move(resources)) {}

ClonePlane::~ClonePlane() = default;

std::unique_ptr<ClonePlane> ClonePlane::open(const ClonePlaneOptions& options, std::string& error) {
  auto resources = std::make_unique<Resources>();
  error = resources->open(options);
  if (!error.empty()) return nullptr;
  return std::unique_ptr<ClonePlane>(new ClonePlane(std::move(resources)));
}

CloneRegion ClonePlane::region(uint32_t worker) const { return resources_->region(worker); }

const std::string& ClonePlane::interface() const { return resources_->interface->name(); }

}  // namespace shredway
