// A failed system call ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace shredway::bench {

// Prints the call and the text of errno.
[[noreturn]] inline void fail(const char* call) {
  std::perror(call);
  std::exit(1);
}

}  // namespace shredway::bench
