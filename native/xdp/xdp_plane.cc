#include "xdp/xdp_plane.h"

namespace shredway {

std::unique_ptr<XdpPlane> XdpPlane::open(const XdpPlaneOptions& options, std::string& error) {
  std::unique_ptr<XdpPlane> plane(new XdpPlane);
  error = options.interfaces.empty() ? "expected at least one interface for AF_XDP, got none" : "";
  if (options.interfaces.size() > kXdpInterfacesMax)
    error = "expected at most " + std::to_string(kXdpInterfacesMax) + " interfaces for AF_XDP";
  for (const std::string& name : options.interfaces) {
    if (!error.empty()) return nullptr;
    plane->interfaces_.push_back(XdpInterface::open(name, options, error));
    if (!error.empty()) error = "interface " + name + ": " + error;
  }
  return error.empty() ? std::move(plane) : nullptr;
}

std::vector<XdpSocket*> XdpPlane::senders(uint32_t worker) const {
  std::vector<XdpSocket*> out;
  for (const auto& interface : interfaces_)
    if (XdpSocket* sender = interface->sender(worker)) out.push_back(sender);
  return out;
}

std::vector<XdpSocket*> XdpPlane::receivers(uint32_t worker) const {
  std::vector<XdpSocket*> out;
  for (const auto& interface : interfaces_) {
    const std::vector<XdpSocket*> receivers = interface->receivers(worker);
    out.insert(out.end(), receivers.begin(), receivers.end());
  }
  return out;
}

std::string XdpPlane::description() const {
  std::string text;
  for (const auto& interface : interfaces_)
    text += (text.empty() ? "" : ", ") + interface->name() +
            (interface->is_zero_copy() ? " (zero-copy)" : " (copies)");
  return text;
}

std::vector<std::string> XdpPlane::update_endpoints() {
  std::vector<std::string> problems;
  for (const auto& interface : interfaces_)
    if (const std::string problem = interface->update_endpoints(); !problem.empty())
      problems.push_back(interface->name() + ": " + problem);
  return problems;
}

}  // namespace shredway
