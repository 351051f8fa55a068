// Prints the options of every UDP socket of another process, which Node.js cannot read itself.
//
//   udp-socket-options PID
//
// Prints a line for each: inode, address family, IP_MTU_DISCOVER, IPV6_MTU_DISCOVER (-1: none),
// SO_REUSEADDR. Requires the permission to trace that process; exits with code 77 without it.
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int kSkipped = 77;

int option_of(int fd, int level, int option) {
  int value = -1;
  socklen_t bytes = sizeof value;
  return getsockopt(fd, level, option, &value, &bytes) == 0 ? value : -1;
}

void print_if_udp(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const int family = option_of(fd, SOL_SOCKET, SO_DOMAIN);
  if (family != AF_INET && family != AF_INET6) return;
  if (option_of(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_UDP) return;
  const int of_ipv6 = family == AF_INET6 ? option_of(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER) : -1;
  std::printf("%lu %d %d %d %d\n", static_cast<unsigned long>(status.st_ino),
              family == AF_INET ? 4 : 6, option_of(fd, IPPROTO_IP, IP_MTU_DISCOVER), of_ipv6,
              option_of(fd, SOL_SOCKET, SO_REUSEADDR));
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const long process = syscall(SYS_pidfd_open, std::atoi(words[1]), 0);
  DIR* folder = opendir(("/proc/" + std::string(words[1]) + "/fd").c_str());
  if (process < 0 || !folder) return errno == EACCES || errno == ENOSYS ? kSkipped : 1;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    const long fd = syscall(SYS_pidfd_getfd, process, std::atoi(entry->d_name), 0);
    if (fd < 0 && (errno == EPERM || errno == ENOSYS)) return kSkipped;
    if (fd < 0) continue;  // closed meanwhile
    print_if_udp(static_cast<int>(fd));
    close(static_cast<int>(fd));
  }
  closedir(folder);
  return 0;
}
