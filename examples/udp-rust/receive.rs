//! Receives shreds on a UDP port: prints one line for each shred, and a summary once a second.
//!
//!     rustc --edition 2021 -O receive.rs && ./receive 9001 [--bind ADDRESS] [--seconds S] [--count N] [--quiet]
//!
//! Answers the ownership challenges of the service, which verifies the address. Lines on stdout are
//! "SLOT INDEX data|code FEC_SET_INDEX VERSION" with "data_complete" and "last_in_slot" after them; the
//! summary of each second is on stderr. Other packets are only counted. Signatures are not verified: that
//! requires the leader schedule (`shredway listen --leaders`).
//!
//! Standard library only (Rust 1.63 and newer). It cannot request a larger socket buffer: raise
//! net.core.rmem_default, or take the crate socket2.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::net::{IpAddr, UdpSocket};
use std::process::exit;
use std::time::{Duration, Instant};

const PACKET_MAX: usize = 1232;
const BUFFER: usize = 2048; // what is longer than a packet shows as such
const DATA_BYTES: usize = 1203;
const CODE_BYTES: usize = 1228;
const FEC_SET: u32 = 32;
const INDEX_MAX: u32 = 32_768;
const CHALLENGE_BYTES: usize = 52;
const CHALLENGE_MARK: &[u8] = b"SWPROOF1";
const ANSWERS_PER_SECOND: u32 = 16;
const SLOTS_MAX: usize = 16; // of the slots of a second; forged ones take no more memory
const WAIT: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

struct Shred {
    slot: u64,
    index: u32,
    is_data: bool,
    fec_set_index: u32,
    version: u16,
    data_complete: bool,
    last_in_slot: bool,
}

// ---- the wire: little endian, no padding -------------------------------------------------------

fn u16_at(packet: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([packet[at], packet[at + 1]])
}

fn u32_at(packet: &[u8], at: usize) -> u32 {
    u32::from(u16_at(packet, at)) | u32::from(u16_at(packet, at + 2)) << 16
}

fn u64_at(packet: &[u8], at: usize) -> u64 {
    u64::from(u32_at(packet, at)) | u64::from(u32_at(packet, at + 4)) << 32
}

/// 0 signature; 64 variant; 65 slot; 73 index; 77 version; 79 FEC set index. None: not a shred. Bytes
/// after the shred's own length are ignored.
fn parse_shred(packet: &[u8]) -> Option<Shred> {
    if packet.len() > PACKET_MAX {
        return None;
    }
    // Chained data and code, and the variants of a slot's last FEC set.
    let (is_data, size_max) = match packet.get(64)? {
        0x96 => (true, 1051),
        0xb6 => (true, 987),
        0x66 | 0x76 => (false, 0),
        _ => return None,
    };
    if packet.len() < if is_data { DATA_BYTES } else { CODE_BYTES } {
        return None;
    }
    let mut shred = Shred {
        slot: u64_at(packet, 65),
        index: u32_at(packet, 73),
        is_data,
        fec_set_index: u32_at(packet, 79),
        version: u16_at(packet, 77),
        data_complete: false,
        last_in_slot: false,
    };
    let (index, first) = (shred.index, shred.fec_set_index);
    if index >= INDEX_MAX || first > INDEX_MAX - FEC_SET || first % FEC_SET != 0 {
        return None;
    }
    if index < first || index >= first + FEC_SET {
        return None;
    }
    let at_83 = u16_at(packet, 83);
    if !is_data {
        // Number of data shreds, of code shreds, index among the code shreds.
        let holds = u32::from(at_83) == FEC_SET
            && u32::from(u16_at(packet, 85)) == FEC_SET
            && u32::from(u16_at(packet, 87)) == index - first;
        return if holds { Some(shred) } else { None };
    }
    // Slot - parent slot, flags, size of headers and ledger bytes.
    let (flags, size) = (packet[85], u16_at(packet, 86));
    shred.data_complete = flags & 0x40 != 0;
    shred.last_in_slot = flags & 0xc0 == 0xc0;
    let has_parent = u64::from(at_83) <= shred.slot && (at_83 != 0 || shred.slot == 0);
    let is_placed = !shred.data_complete || index % FEC_SET == FEC_SET - 1;
    if flags & 0xc0 == 0x80 || !is_placed || !has_parent || size < 88 || size > size_max {
        return None;
    }
    Some(shred)
}

fn print_shred(out: &mut impl Write, shred: &Shred) -> io::Result<()> {
    let kind = if shred.is_data { "data" } else { "code" };
    let complete = if shred.data_complete { " data_complete" } else { "" };
    let last = if shred.last_in_slot { " last_in_slot" } else { "" };
    let Shred { slot, index, fec_set_index, version, .. } = shred;
    writeln!(out, "{slot} {index} {kind} {fec_set_index} {version}{complete}{last}")
}

// ---- counting ----------------------------------------------------------------------------------

#[derive(Default)]
struct Counts {
    shreds: u64,
    bad: u64,
    challenges: u64,
    /// Data and code shreds of this second.
    slots: BTreeMap<u64, (u64, u64)>,
}

impl Counts {
    fn packets(&self) -> u64 {
        self.shreds + self.bad
    }

    fn take(&mut self, shred: &Shred) {
        self.shreds += 1;
        if !self.slots.contains_key(&shred.slot) && self.slots.len() >= SLOTS_MAX {
            let lowest = self.slots.keys().next().copied();
            lowest.map(|slot| self.slots.remove(&slot));
        }
        let (data, code) = self.slots.entry(shred.slot).or_default();
        *(if shred.is_data { data } else { code }) += 1;
    }

    fn report(&mut self, rate: f64) {
        let Counts { shreds, bad, challenges, .. } = self;
        eprint!("{rate:.0}/s  shreds {shreds}  bad {bad}  challenges {challenges}");
        for (slot, (data, code)) in &self.slots {
            eprint!("  {slot}: {data} data {code} code");
        }
        eprintln!();
        self.slots.clear();
    }
}

// ---- the program -------------------------------------------------------------------------------

struct Options {
    port: u16,
    bind: IpAddr,
    seconds: Option<Duration>,
    count: Option<u64>,
    is_quiet: bool,
}

fn usage() -> ! {
    eprintln!("usage: receive PORT [--bind ADDRESS] [--seconds S] [--count N] [--quiet]");
    exit(2)
}

fn read_options() -> Options {
    let mut port = None;
    let mut options = Options {
        port: 0,
        bind: IpAddr::from([0, 0, 0, 0]),
        seconds: None,
        count: None,
        is_quiet: false,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| usage());
        match word.as_str() {
            "--quiet" => options.is_quiet = true,
            "--bind" => options.bind = value().parse().unwrap_or_else(|_| usage()),
            "--count" => options.count = Some(value().parse().unwrap_or_else(|_| usage())),
            "--seconds" => {
                let seconds: f64 = value().parse().unwrap_or_else(|_| usage());
                if !(0.0..1e9).contains(&seconds) {
                    usage()
                }
                options.seconds = Some(Duration::from_secs_f64(seconds));
            }
            _ if port.is_none() => port = Some(word.parse().unwrap_or_else(|_| usage())),
            _ => usage(),
        }
    }
    options.port = port.unwrap_or_else(|| usage());
    options
}

fn receive(socket: &UdpSocket, options: &Options) -> io::Result<Counts> {
    let mut out = BufWriter::new(io::stdout());
    let mut counts = Counts::default();
    let mut buffer = [0u8; BUFFER];
    let begin = Instant::now();
    let mut second = begin;
    let mut packets_before = 0;
    let mut answers_left = ANSWERS_PER_SECOND;
    loop {
        let now = Instant::now();
        if now - second >= SECOND {
            let packets = counts.packets();
            counts.report((packets - packets_before) as f64 / (now - second).as_secs_f64());
            packets_before = packets;
            second = now;
            answers_left = ANSWERS_PER_SECOND;
            out.flush()?;
        }
        let is_late = options.seconds.map_or(false, |seconds| now - begin >= seconds);
        let is_enough = options.count.map_or(false, |count| counts.packets() >= count);
        if is_late || is_enough {
            break;
        }
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) => match error.kind() {
                // A timeout, or a response that could not be delivered.
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    out.flush()?;
                    continue;
                }
                ErrorKind::ConnectionRefused => continue,
                _ => return Err(error),
            },
        };
        let packet = &buffer[..length];
        if let Some(shred) = parse_shred(packet) {
            counts.take(&shred);
            if !options.is_quiet {
                print_shred(&mut out, &shred)?;
            }
        } else if length == CHALLENGE_BYTES && packet.starts_with(CHALLENGE_MARK) {
            counts.challenges += 1;
            if answers_left > 0 {
                answers_left -= 1;
                // Sent unchanged to the sender. After a loss, the service sends another challenge.
                let _ = socket.send_to(packet, from);
            }
        } else {
            counts.bad += 1;
        }
    }
    out.flush()?;
    Ok(counts)
}

fn run(options: &Options) -> io::Result<()> {
    let socket = UdpSocket::bind((options.bind, options.port))?;
    socket.set_read_timeout(Some(WAIT))?;
    eprintln!("receiving on {} port {}", options.bind, options.port);
    let mut counts = receive(&socket, options)?;
    counts.report(0.0);
    let Counts { shreds, bad, challenges, .. } = counts;
    eprintln!("total: shreds {shreds}, bad {bad}, challenges {challenges}");
    Ok(())
}

fn main() {
    match run(&read_options()) {
        // The reader has closed its end.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => {
            eprintln!("{error}");
            exit(1);
        }
        Ok(()) => {}
    }
}
