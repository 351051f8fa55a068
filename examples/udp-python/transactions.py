"""Receives pushed transactions on a UDP port: prints one line for each, and a summary once a second.

    python3 transactions.py 9001 [--bind ADDRESS] [--stream ID] [--seconds S] [--count N] [--quiet]

Answers the ownership challenges of the service, which verifies the address. Lines on stdout are
"SLOT SHRED_INDEX BATCH_INDEX ORDINAL legacy|v0|v1 LENGTH SIGNATURE", with "vote", "resolved" or "unresolved"
after them. Other lines begin with "withdrawal", "gap" or "end". The summary of each second is on stderr: "lost"
counts missing numbers of the sequence that the service did not drop.

Anyone can send datagrams to this port. With --stream, the streamId that startTransactionPush returned, only
those of this push count. docs/transaction-push.md describes the datagrams.

Standard library only.
"""

import argparse
import signal
import socket
import struct
import sys
import time
from typing import NamedTuple, Optional

BUFFER = 2048  # a datagram has at most 1,296 bytes
SIGNATURE_BYTES = 64
CHALLENGE_BYTES = 52
ANSWERS_PER_SECOND = 16
RECEIVE_BUFFER_BYTES = 8 << 20
WAIT_SECONDS = 0.1
SILENCE_SECONDS = 10  # a heartbeat arrives every two seconds

# Little endian, no padding: magic, version, kind u8, flags u16, stream id, sequence u64, slot u64, time u64,
# shred index u32, batch index u32, ordinal u32, skipped u32, dropped u32, header bytes u16, payload bytes u16.
HEADER = struct.Struct("<4sBBH8sQQQIIIIIHH")
TRANSACTION, WITHDRAWAL, GAP, HEARTBEAT, END = range(1, 6)
PAYLOAD_MIN = {TRANSACTION: 65, WITHDRAWAL: 40, GAP: 24, HEARTBEAT: 8, END: 0}
VOTE, VERSION_0, VERSION_1, RESOLVED, UNRESOLVED = 1, 2, 4, 8, 16
DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Datagram(NamedTuple):
    kind: int
    flags: int
    stream_id: bytes
    sequence: int
    slot: int
    shred_index: int
    batch_index: int
    ordinal: int
    skipped: int
    dropped: int
    payload: bytes

    def signature(self) -> bytes:
        """Return the first one: after their number, or before the end in version 1."""
        if not self.flags & VERSION_1:
            return self.payload[1 : 1 + SIGNATURE_BYTES]
        begin = max(0, len(self.payload) - self.payload[1] * SIGNATURE_BYTES)
        return self.payload[begin : begin + SIGNATURE_BYTES]

    def line(self) -> Optional[str]:
        if self.kind == TRANSACTION:
            version = "v1" if self.flags & VERSION_1 else "v0" if self.flags & VERSION_0 else "legacy"
            words = [self.slot, self.shred_index, self.batch_index, self.ordinal, version]
            words += [len(self.payload), base58(self.signature())]
            words += ["vote"] if self.flags & VOTE else []
            words += ["resolved"] if self.flags & RESOLVED else []
            words += ["unresolved"] if self.flags & UNRESOLVED else []
            return " ".join(map(str, words))
        if self.kind == WITHDRAWAL:
            parent = int.from_bytes(self.payload[:8], "little")
            return f"withdrawal {self.slot} before {self.batch_index} parent {parent}"
        if self.kind == GAP:
            count, first, last = struct.unpack_from("<QQQ", self.payload)
            return f"gap {count} slots {first} to {last}"
        if self.kind == END:
            return f"end {self.payload.decode(errors='replace')}"
        return None


def parse(packet: bytes) -> Optional[Datagram]:
    """Return None if it is not a datagram of a push."""
    if len(packet) < HEADER.size or packet[:5] != b"SWTX\x01":
        return None
    _, _, kind, flags, stream_id, sequence, slot, _, *rest = HEADER.unpack_from(packet)
    *place, header_bytes, payload_bytes = rest
    if header_bytes < HEADER.size or header_bytes + payload_bytes != len(packet):
        return None
    if payload_bytes < PAYLOAD_MIN.get(kind, BUFFER):
        return None
    return Datagram(kind, flags, stream_id, sequence, slot, *place, packet[header_bytes:])


def base58(data: bytes) -> str:
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = DIGITS[digit] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


class Counts:
    def __init__(self, stream_id: Optional[bytes]) -> None:
        self.wanted = stream_id
        self.stream_id: Optional[bytes] = None
        self.transactions = self.withdrawals = self.bad = self.challenges = 0
        self.heard = 0.0
        self.begin_dropped = self.next = self.missing = self.dropped = self.skipped = 0

    def is_ours(self, one: Datagram, now: float) -> bool:
        """Take a new push only after the end or the silence of the one before."""
        if one.stream_id != self.stream_id:
            if self.wanted is not None and one.stream_id != self.wanted:
                return False
            if self.stream_id is not None and now - self.heard <= SILENCE_SECONDS:
                return False
            self.stream_id = one.stream_id
            self.next, self.missing, self.begin_dropped = one.sequence, 0, one.dropped
        self.heard = now
        return True

    def take(self, one: Datagram) -> None:
        if one.sequence >= self.next:
            self.missing += one.sequence - self.next
            self.next = one.sequence + 1
            self.skipped = one.skipped
            self.dropped = (one.dropped - self.begin_dropped) % (1 << 32)
        elif self.missing > 0:
            self.missing -= 1  # late, not lost
        self.transactions += one.kind == TRANSACTION
        self.withdrawals += one.kind == WITHDRAWAL
        if one.kind == END:
            self.stream_id = self.wanted

    def report(self, begin: str) -> None:
        lost = max(0, self.missing - self.dropped)
        print(
            f"{begin}  transactions {self.transactions}  lost {lost}  dropped {self.dropped}"
            f"  too long {self.skipped}  withdrawals {self.withdrawals}  bad {self.bad}"
            f"  challenges {self.challenges}",
            file=sys.stderr,
            flush=True,
        )


def receive(sock: socket.socket, options: argparse.Namespace) -> None:
    counts = Counts(options.stream)
    begin = second = time.monotonic()
    answers_left = ANSWERS_PER_SECOND
    while True:
        now = time.monotonic()
        if now - second >= 1:
            counts.report("second:")
            sys.stdout.flush()
            second, answers_left = now, ANSWERS_PER_SECOND
        if options.seconds and now - begin >= options.seconds:
            break
        if options.count and counts.transactions >= options.count:
            break
        try:
            packet, sender = sock.recvfrom(BUFFER)
        except socket.timeout:
            sys.stdout.flush()
            continue
        except ConnectionRefusedError:  # an answer that could not be delivered
            continue
        one = parse(packet)
        if one is not None and counts.is_ours(one, now):
            counts.take(one)
            line = None if options.quiet else one.line()
            if line is not None:
                print(line)
        elif len(packet) == CHALLENGE_BYTES and packet.startswith(b"SWPROOF1"):
            counts.challenges += 1
            if answers_left > 0:
                answers_left -= 1
                sock.sendto(packet, sender)
        else:
            counts.bad += 1
    sys.stdout.flush()
    counts.report("total:")


def stream_id(text: str) -> bytes:
    if len(text) != 16:
        raise ValueError
    return bytes.fromhex(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Receives pushed transactions on a UDP port.")
    parser.add_argument("port", type=int)
    parser.add_argument("--bind", default="0.0.0.0", metavar="ADDRESS")
    parser.add_argument("--stream", type=stream_id, metavar="ID", help="streamId: 16 hex digits")
    parser.add_argument("--seconds", type=float, metavar="S")
    parser.add_argument("--count", type=int, metavar="N")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    family = socket.AF_INET6 if ":" in options.bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        # The kernel grants at most net.core.rmem_max: `shredway doctor` recommends a value.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        sock.settimeout(WAIT_SECONDS)
        sock.bind((options.bind, options.port))
        print(f"receiving on {options.bind} port {options.port}", file=sys.stderr, flush=True)
        receive(sock, options)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        pass
