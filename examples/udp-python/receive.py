"""Receives shreds on a UDP port: prints one line for each shred, and a summary once a second.

    python3 receive.py 9001 [--bind ADDRESS] [--seconds S] [--count N] [--quiet]

Answers the ownership challenges of the service, which verifies the address. Lines on stdout are
"SLOT INDEX data|code FEC_SET_INDEX VERSION" with "data_complete" and "last_in_slot" after them; the summary of
each second is on stderr. Other packets are only counted. Signatures are not verified: that requires the
leader schedule (`shredway listen --leaders`).

Standard library only.
"""

import argparse
import os
import signal
import socket
import struct
import sys
import time
from typing import NamedTuple, Optional

PACKET_MAX = 1232
BUFFER = 2048  # large enough to detect oversized packets
DATA_BYTES = 1203
CODE_BYTES = 1228
FEC_SET = 32
INDEX_MAX = 32768
CHALLENGE_BYTES = 52
ANSWERS_PER_SECOND = 16
SLOTS_MAX = 16  # slots per second in memory; bounds it for forged shreds
RECEIVE_BUFFER_BYTES = 8 << 20
WAIT_SECONDS = 0.1

# Little endian, no padding. 64: variant u8, slot u64, index u32, version u16, FEC set index u32.
COMMON = struct.Struct("<BQIHI")
# 83: slot - parent slot u16, flags u8, size of headers and ledger bytes u16.
DATA = struct.Struct("<HBH")
# 83: number of data shreds u16, of code shreds u16, index among the code shreds u16.
CODE = struct.Struct("<HHH")


class Shred(NamedTuple):
    slot: int
    index: int
    is_data: bool
    fec_set_index: int
    version: int
    data_complete: bool
    last_in_slot: bool

    def line(self) -> str:
        words = [str(self.slot), str(self.index), "data" if self.is_data else "code"]
        words += [str(self.fec_set_index), str(self.version)]
        words += ["data_complete"] if self.data_complete else []
        words += ["last_in_slot"] if self.last_in_slot else []
        return " ".join(words)


def parse_shred(packet: memoryview) -> Optional[Shred]:
    """Return None if it is not a shred. Bytes after the shred's own length are ignored."""
    if not 65 <= len(packet) <= PACKET_MAX:
        return None
    # Chained data and code, and the variants of a slot's last FEC set.
    if packet[64] not in (0x96, 0x66, 0xB6, 0x76):
        return None
    is_data = packet[64] & 0x80 != 0
    if len(packet) < (DATA_BYTES if is_data else CODE_BYTES):
        return None
    variant, slot, index, version, fec_set_index = COMMON.unpack_from(packet, 64)
    if index >= INDEX_MAX or fec_set_index > INDEX_MAX - FEC_SET or fec_set_index % FEC_SET:
        return None
    if not fec_set_index <= index < fec_set_index + FEC_SET:
        return None
    if not is_data:
        data_count, code_count, position = CODE.unpack_from(packet, 83)
        if (data_count, code_count, position) != (FEC_SET, FEC_SET, index - fec_set_index):
            return None
        return Shred(slot, index, False, fec_set_index, version, False, False)
    parent_offset, flags, size = DATA.unpack_from(packet, 83)
    data_complete = flags & 0x40 != 0
    if flags & 0xC0 == 0x80 or (data_complete and index % FEC_SET != FEC_SET - 1):
        return None
    if parent_offset > slot or (parent_offset == 0 and slot != 0):
        return None
    if not 88 <= size <= (987 if variant == 0xB6 else 1051):
        return None
    last_in_slot = flags & 0xC0 == 0xC0
    return Shred(slot, index, True, fec_set_index, version, data_complete, last_in_slot)


class Counts:
    def __init__(self) -> None:
        self.shreds = 0
        self.bad = 0
        self.challenges = 0
        self.slots: dict[int, list[int]] = {}  # slot: [data, code] of this second

    @property
    def packets(self) -> int:
        return self.shreds + self.bad

    def take(self, shred: Shred) -> None:
        self.shreds += 1
        if shred.slot not in self.slots:
            if len(self.slots) >= SLOTS_MAX:
                del self.slots[min(self.slots)]
            self.slots[shred.slot] = [0, 0]
        self.slots[shred.slot][0 if shred.is_data else 1] += 1

    def report(self, rate: float) -> None:
        parts = [f"{rate:.0f}/s", f"shreds {self.shreds}", f"bad {self.bad}"]
        parts.append(f"challenges {self.challenges}")
        for slot, (data, code) in sorted(self.slots.items()):
            parts.append(f"{slot}: {data} data {code} code")
        print("  ".join(parts), file=sys.stderr, flush=True)
        self.slots.clear()


def open_socket(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_DGRAM)
    # The kernel grants at most net.core.rmem_max: `shredway doctor` recommends a value.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    opened.settimeout(WAIT_SECONDS)
    opened.bind((address, port))
    return opened


def receive(opened: socket.socket, options: argparse.Namespace) -> Counts:
    counts = Counts()
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    buffer = bytearray(BUFFER)
    view = memoryview(buffer)
    begin = second = time.monotonic()
    packets_before = 0
    answers_left = ANSWERS_PER_SECOND
    while not stopped:
        now = time.monotonic()
        if now - second >= 1:
            counts.report((counts.packets - packets_before) / (now - second))
            packets_before, second = counts.packets, now
            answers_left = ANSWERS_PER_SECOND
        if options.seconds and now - begin >= options.seconds:
            break
        if options.count and counts.packets >= options.count:
            break
        try:
            length, sender = opened.recvfrom_into(buffer)
        except socket.timeout:
            sys.stdout.flush()
            continue
        shred = parse_shred(view[:length])
        if shred:
            counts.take(shred)
            if not options.quiet:
                print(shred.line())
        elif length == CHALLENGE_BYTES and buffer.startswith(b"SWPROOF1"):
            counts.challenges += 1
            if answers_left > 0:
                answers_left -= 1
                try:
                    opened.sendto(view[:length], sender)  # unchanged, to its sender
                except OSError:
                    pass  # the next challenge may succeed
        else:
            counts.bad += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Receives shreds on a UDP port.")
    parser.add_argument("port", type=int)
    parser.add_argument("--bind", default="0.0.0.0", metavar="ADDRESS")
    parser.add_argument("--seconds", type=float, default=0, metavar="S")
    parser.add_argument("--count", type=int, default=0, metavar="N")
    parser.add_argument("--quiet", action="store_true", help="no line for each shred")
    options = parser.parse_args()
    with open_socket(options.bind, options.port) as opened:
        print(f"receiving on {options.bind} port {options.port}", file=sys.stderr, flush=True)
        counts = receive(opened, options)
    counts.report(0)
    total = f"total: shreds {counts.shreds}, bad {counts.bad}, challenges {counts.challenges}"
    print(total, file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
