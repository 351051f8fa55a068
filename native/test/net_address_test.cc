#include <arpa/inet.h>

#include "check.h"
#include "net/address.h"
#include "net_support.h"

namespace shredway::test {
namespace {

TEST(address_text_of_both_families) {
  CHECK_EQ(to_string(ipv4(192, 0, 2, 1, 9000)), std::string("192.0.2.1:9000"));
  CHECK_EQ(to_string(loopback(false, 65535)), std::string("[::1]:65535"));
  CHECK_EQ(to_string(Endpoint()), std::string("[::]:0"));
  Endpoint documentation;
  documentation.address = {0x20, 0x01, 0x0d, 0xb8};
  documentation.address[15] = 1;
  documentation.port = 9000;
  CHECK_EQ(to_string(documentation), std::string("[2001:db8::1]:9000"));
}

TEST(address_from_table_bytes) {
  const uint8_t bytes[kEndpointBytes] = {0, 0,    0,    0,  0, 0, 0, 0,    0,
                                         0, 0xff, 0xff, 10, 1, 2, 3, 0x28, 0x23};
  const Endpoint endpoint = endpoint_from_bytes(bytes);
  CHECK(endpoint.is_ipv4());
  CHECK_EQ(endpoint.port, 9000);
  CHECK_EQ(to_string(endpoint), std::string("10.1.2.3:9000"));
}

TEST(address_only_the_mapped_prefix_is_ipv4) {
  for (size_t byte = 0; byte < 12; byte++) {
    Endpoint endpoint = ipv4(1, 2, 3, 4, 5);
    endpoint.address[byte] ^= 1;
    CHECK(!endpoint.is_ipv4());
  }
  CHECK(ipv4(0, 0, 0, 0).is_ipv4());
  CHECK(!Endpoint().is_ipv4());
}

TEST(address_mapped_from_four_bytes) {
  const uint8_t bytes[4] = {192, 0, 2, 1};
  CHECK(mapped_ipv4(bytes) == ipv4(192, 0, 2, 1).address);
  CHECK(is_ipv4(mapped_ipv4(bytes)));
  CHECK_EQ(to_string(any_endpoint(true)), std::string("0.0.0.0:0"));
  CHECK(any_endpoint(false) == Endpoint());
}

TEST(address_round_trips_through_sockaddr) {
  Random random{1};
  for (int round = 0; round < 1000; round++) {
    Endpoint endpoint;
    for (uint8_t& byte : endpoint.address) byte = static_cast<uint8_t>(random.next());
    endpoint.port = static_cast<uint16_t>(random.next());
    if (round % 2) endpoint.address = ipv4(1, 2, 3, static_cast<uint8_t>(round)).address;
    const Address address(endpoint);
    CHECK_EQ(address.bytes, endpoint.is_ipv4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    CHECK_EQ(address.get()->sa_family, endpoint.is_ipv4() ? AF_INET : AF_INET6);
    CHECK(endpoint_from_sockaddr(address.get()) == endpoint);
  }
}

TEST(address_mapped_sockaddr_in6_equals_sockaddr_in) {
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(53);
  inet_pton(AF_INET6, "::ffff:198.51.100.7", &mapped.sin6_addr);
  CHECK(endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(&mapped)) ==
        ipv4(198, 51, 100, 7, 53));
}

TEST(address_of_another_family_is_unspecified) {
  sockaddr_storage other{};
  other.ss_family = AF_UNIX;
  CHECK(endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(&other)) == Endpoint());
}

}  // namespace
}  // namespace shredway::test
