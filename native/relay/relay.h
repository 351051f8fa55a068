// Relay: the data plane as one object with its sockets, workers, tables and counters.
//
// The control plane opens it, publishes tables and reads it through the addon, from one thread at a
// time. The relay owns all its parts; its destructor ends the threads. No packet, table or option
// can end the process: an error is returned as text and changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "clone/clone.h"
#include "net/memory_network.h"
#include "relay/key_preparer.h"
#include "relay/worker.h"
#include "system/memory_lock.h"

namespace shredway {

// How shreds leave the machine.
#define SHREDWAY_TRANSMIT_MODES(X)                                                \
  X(socket, "one datagram per destination through the network stack")             \
  X(clone, "cloned inside the kernel; by socket if the next hop is unknown")      \
  X(automatic, "cloned where it is possible, loses nothing and bypasses no rule") \
  X(xdp, "whole frames by AF_XDP; by socket for all other interfaces")
SHREDWAY_NAMED_ENUM(TransmitMode, uint8_t, kTransmitModeCount, transmit_mode_name,
                    SHREDWAY_TRANSMIT_MODES)

// How shreds arrive.
#define SHREDWAY_RECEIVE_MODES(X)                    \
  X(socket, "by sockets, through the network stack") \
  X(xdp, "whole frames by AF_XDP on its interfaces; everything else by sockets")
SHREDWAY_NAMED_ENUM(ReceiveMode, uint8_t, kReceiveModeCount, receive_mode_name,
                    SHREDWAY_RECEIVE_MODES)

struct RelayOptions {
  std::vector<Endpoint> listen;  // port 0 (the kernel chooses) only with one worker
  // Unspecified addresses with the ports of multicast groups. Groups are joined later. A machine
  // without IPv6 ignores IPv6 ones.
  std::vector<Endpoint> multicast;
  uint32_t workers = 1;   // 1..kWorkersMax
  WorkerOptions worker;   // number, cpu and clone are set per worker; see sender_threads()
  std::vector<int> cpus;  // empty, or one per worker
  Endpoint send_from;     // unspecified: the kernel chooses; used for its family
  uint32_t receive_buffer_bytes = 64u << 20;
  uint32_t send_buffer_bytes = 16u << 20;
  uint32_t busy_poll_us = 0;
  TransmitMode transmit = TransmitMode::socket;  // requested; see transmit_refusal()
  ReceiveMode receive = ReceiveMode::socket;
  std::vector<std::string> xdp_interfaces;  // only for TransmitMode::xdp and ReceiveMode::xdp
  bool deshred = true;                      // with a thread that reads transactions from the shreds
  bool arrivals = false;                    // for measuring feeds; with one worker only
  bool receive_filter = true;               // drops noise in the kernel; never with `arrivals`
  bool lock_memory = false;      // keeps the workers' memory in RAM; see memory_lock_refusal()
  bool capture_packets = false;  // also capture the datagrams
  // The network of a simulation, which must outlive the relay; nullptr: the kernel's. The relay
  // then starts no thread, and step() runs the turns of its threads.
  MemoryNetwork* network = nullptr;
};

inline constexpr uint32_t kWorkersMax = 64;
static_assert(kWorkersMax <= kTableReadersMax);

class Relay {
 public:
  // Returns nullptr and fills `error` if an option is out of range or the system refuses a
  // resource, AF_XDP among them. A machine that cannot clone sends by socket instead;
  // transmit_refusal() gives the reason.
  static std::unique_ptr<Relay> open(const RelayOptions& options, std::string& error);
  ~Relay();

  // Runs all threads of a relay with a `network` until none has anything to do.
  void step();

  // Each call replaces one whole table under traffic. Returns an error text, empty on success. A
  // refused table leaves the previous one in force.
  std::string publish_sources(const uint8_t* bytes, size_t length);
  std::string publish_fanout(const uint8_t* bytes, size_t length);
  std::string publish_leaders(const uint8_t* bytes, size_t length);

  // Drops slots outside [lowest, highest] as behind or ahead, whatever the slot window says: the
  // window follows shreds, and leaders may sign shreds of their slots at any time. Valid until
  // `until_ns` by the shreds' receive times (CLOCK_REALTIME), for at most 5 s. `confirmed`: shreds
  // and a node agree on the range. Otherwise evidence of several leaders overrules it.
  void set_slot_bounds(uint64_t lowest, uint64_t highest, bool confirmed, uint64_t until_ns) {
    slot_bounds_.lowest.store(lowest, std::memory_order_relaxed);
    slot_bounds_.highest.store(highest, std::memory_order_relaxed);
    slot_bounds_.confirmed.store(confirmed, std::memory_order_relaxed);
    slot_bounds_.until_ns.store(until_ns, std::memory_order_release);
  }
  // Drops slots before `floor` as behind, until the next call.
  void set_slot_floor(uint64_t floor) {
    slot_bounds_.floor.store(floor, std::memory_order_relaxed);
  }

  // Joins or leaves a multicast group with every worker's socket for `port`, one of
  // RelayOptions::multicast. A group that not all workers could join is left again. Returns an
  // error text, empty on success.
  std::string join(uint16_t port, const GroupMembership& membership);
  std::string leave(uint16_t port, const GroupMembership& membership);

  SnapshotLayout layout(size_t sources, size_t destinations) const {
    return {workers_.size(), sources, destinations};
  }
  void snapshot(const SnapshotLayout& layout, uint64_t* out) const;
  // Removes up to `max` events of all workers. Returns their number.
  size_t drain_events(Event* out, size_t max);
  // The same for trace packets.
  size_t drain_traces(Trace* out, size_t max);
  DeshredThread* deshred() { return deshred_.get(); }   // nullptr if disabled
  ArrivalRings* arrivals() { return arrivals_.get(); }  // nullptr if disabled
  // Datagrams that the kernel dropped, by listening address, then by multicast address.
  std::vector<uint64_t> receive_drops() const;

  const std::vector<Endpoint>& addresses() const { return addresses_; }  // with the bound ports
  size_t worker_count() const { return workers_.size(); }
  // Receive buffer that the kernel granted to the first receive socket, in the kernel's unit.
  uint32_t granted_receive_buffer_bytes() const { return granted_receive_buffer_bytes_; }
  TransmitMode transmit_in_use() const {  // never automatic
    if (!next_hop_watch_) return TransmitMode::socket;
    return clone_plane_ ? TransmitMode::clone : TransmitMode::xdp;
  }
  // The interfaces of AF_XDP that receive, and how; empty: all shreds arrive by socket.
  std::string receive_interfaces() const {
    return receives_by_xdp_ ? xdp_plane_->description() : "";
  }
  // Follows the addresses of this machine. Returns a text "eth1: reason" for each interface that
  // does not receive by AF_XDP at present. Call it every few seconds.
  std::vector<std::string> update_receiving() {
    return receives_by_xdp_ ? xdp_plane_->update_endpoints() : std::vector<std::string>();
  }
  // Why clones are not in use although they were requested, and how to enable them; empty if they
  // are, or were not requested.
  const std::string& transmit_refusal() const { return transmit_refusal_; }
  // Sender threads of each worker. 0 if clones or AF_XDP are in use or the network is simulated,
  // whatever the option says.
  uint32_t sender_threads() const { return sender_threads_; }
  // Why the workers have the priority of all other threads; empty: they precede them.
  const std::string& priority_refusal() const { return priority_refusal_; }
  // Why the workers' memory is not locked although that was requested; empty: it is, or was not
  // requested.
  const std::string& memory_lock_refusal() const { return memory_lock_refusal_; }
  size_t locked_bytes() const { return memory_lock_.locked_bytes(); }
  // Number of table replacements, of all kinds.
  uint64_t tables_published() const { return tables_.generation(); }
  // Network interface of the clone plane, or those of AF_XDP; empty if neither is in use.
  std::string transmit_interface() const {
    if (!next_hop_watch_) return "";
    return clone_plane_ ? clone_plane_->interface() : xdp_plane_->description();
  }

 private:
  Relay();
  std::string open_sockets(const RelayOptions& options, std::vector<WorkerSockets>& sockets);
  std::string open_listeners(const RelayOptions& options, const Endpoint& address,
                             std::vector<WorkerSockets>& sockets);
  std::string open_group_listeners(const RelayOptions& options, const Endpoint& address,
                                   std::vector<WorkerSockets>& sockets);
  std::string start_workers(const RelayOptions& options, std::vector<WorkerSockets> sockets);
  void lock_memory();
  void open_clones(const RelayOptions& options);
  std::string open_xdp(const RelayOptions& options);
  void watch_next_hops(const RelayOptions& options);
  std::string open_in_memory(const RelayOptions& options, std::vector<WorkerSockets>& sockets);
  std::string start_deshred(const RelayOptions& options);
  std::string start_key_preparer();

  Tables tables_;
  MemoryNetwork* network_ = nullptr;
  uint32_t tier_count_ = 1;
  uint32_t sender_threads_ = 0;
  std::vector<Endpoint> addresses_;
  uint32_t granted_receive_buffer_bytes_ = 0;
  std::string transmit_refusal_;
  std::string priority_refusal_;
  std::string memory_lock_refusal_;
  SlotBounds slot_bounds_;
  std::unique_ptr<ClonePlane> clone_plane_;  // outlives the workers, which send through it
  std::unique_ptr<XdpPlane> xdp_plane_;      // the same; the two never both send
  bool sends_by_xdp_ = false;
  bool receives_by_xdp_ = false;
  std::unique_ptr<OutputRules> output_rules_;  // automatic mode; moves to the next-hop watch
  std::unique_ptr<DeshredThread> deshred_;     // outlives the workers, which write to its rings
  std::unique_ptr<ArrivalRings> arrivals_;     // outlive the worker, which writes to them
  std::vector<std::unique_ptr<Worker>> workers_;
  MemoryLock memory_lock_;  // ends before the memory of the workers
  // Both replace tables, so they end first.
  std::unique_ptr<KeyPreparer> key_preparer_;  // only with authentication
  std::unique_ptr<NextHopWatch> next_hop_watch_;
};

}  // namespace shredway
