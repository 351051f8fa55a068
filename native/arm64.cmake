# Cross-compiles for Linux on arm64 with Debian's g++-aarch64-linux-gnu; ../.ci/run uses it:
#   cmake -S native -B build-arm64 -DCMAKE_TOOLCHAIN_FILE=native/arm64.cmake
# The native tests then run under qemu-user, except those that emulation cannot run:
#   qemu-aarch64 -L /usr/aarch64-linux-gnu build-arm64/shredway_native_test \
#     --skip-list native/test/qemu-user.skip
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Debug information takes a third of the compile time.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -DNDEBUG")
