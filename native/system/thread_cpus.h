// Thread CPUs: keeps all threads of this process away from the CPUs of the relay's workers.
//
// The service calls it once, before it opens the relay. Node.js has already started some threads
// then, which JavaScript cannot reach. Rules: sched_setaffinity(2).
#pragma once

#include <string>
#include <vector>

namespace shredway {

// Moves every thread of this process to these CPUs. Threads and processes that they start later
// stay there too, because a new thread inherits the CPUs. Thread::pin() overrides it. Returns an
// error text, empty on success; on failure, some threads may have been moved.
std::string keep_threads_on(const std::vector<int>& cpus);

}  // namespace shredway
