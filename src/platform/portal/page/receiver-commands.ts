// Commands for the receiver of a new destination, with the port that the user typed.
//
// Pure; shown by views/destination-dialogs.tsx.

const portDefault = "9001";

/** The port of "ip:port"; an example before a complete one was typed. */
function portOf(address: string): string {
  return /:(\d{1,5})$/.exec(address.trim())?.[1] ?? portDefault;
}

export function listenCommand(address: string): string {
  return `shredway listen --port ${portOf(address)} --prove`;
}

/** Answers challenges and counts shreds, with Python's standard library only. */
export function pythonReceiver(address: string): string {
  const family = address.trim().startsWith("[") ? "AF_INET6" : "AF_INET";
  return [
    "import socket",
    `s = socket.socket(socket.${family}, socket.SOCK_DGRAM)`,
    `s.bind(("", ${portOf(address)}))`,
    "shreds = 0",
    "while True:",
    "    packet, sender = s.recvfrom(2048)",
    '    if packet[:8] == b"SWPROOF1":',
    "        s.sendto(packet, sender)  # answers a challenge",
    "    else:",
    "        shreds += 1",
    "        if shreds % 1000 == 0: print(shreds)",
  ].join("\n");
}

export function captureCommand(address: string): string {
  return `tcpdump -c 1 -X 'udp dst port ${portOf(address)}'`;
}
