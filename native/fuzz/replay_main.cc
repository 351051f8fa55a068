// Runs a fuzz target over files and folders of inputs, for compilers without libFuzzer and for CI.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length);

namespace {

size_t replay(const std::filesystem::path& path) {
  size_t count = 0;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      count += replay(entry.path());
    return count;
  }
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in),
                                std::istreambuf_iterator<char>()};
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  size_t count = 0;
  for (int i = 1; i < argc; i++) count += replay(argv[i]);
  std::printf("%s: %zu inputs replayed\n", argv[0], count);
  return count ? 0 : 1;
}
