//! Receives pushed transactions on a UDP port: prints one line for each, and a summary once a second.
//!
//!     rustc --edition 2021 -O transactions.rs && ./transactions 9001 [--bind ADDRESS] [--stream ID]
//!     [--seconds S] [--count N] [--quiet]
//!
//! Answers the ownership challenges of the service, which verifies the address. Lines on stdout are
//! "SLOT SHRED_INDEX BATCH_INDEX ORDINAL legacy|v0|v1 LENGTH SIGNATURE", with "vote", "resolved" or
//! "unresolved" after them. Other lines begin with "withdrawal", "gap" or "end". The summary of each second is
//! on stderr: "lost" counts missing numbers of the sequence that the service did not drop.
//!
//! Anyone can send datagrams to this port. With --stream, the streamId that startTransactionPush returned, only
//! those of this push count. docs/transaction-push.md describes the datagrams.

use std::env;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::net::{IpAddr, UdpSocket};
use std::process::exit;
use std::time::{Duration, Instant};

const BUFFER: usize = 2048; // a datagram has at most 1,296 bytes
const HEADER_BYTES: usize = 64;
const SIGNATURE_BYTES: usize = 64;
const CHALLENGE_BYTES: usize = 52;
const CHALLENGE_MARK: &[u8] = b"SWPROOF1";
const ANSWERS_PER_SECOND: u32 = 16;
const WAIT: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_secs(10); // a heartbeat arrives every two seconds
const DIGITS: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

const TRANSACTION: u8 = 1;
const WITHDRAWAL: u8 = 2;
const GAP: u8 = 3;
const END: u8 = 5;
/// By kind.
const PAYLOAD_MIN: [usize; 6] = [0, 65, 40, 24, 8, 0];
const VOTE: u16 = 1;
const VERSION_0: u16 = 2;
const VERSION_1: u16 = 4;
const RESOLVED: u16 = 8;
const UNRESOLVED: u16 = 16;

type StreamId = [u8; 8];

struct Datagram<'a> {
    kind: u8,
    flags: u16,
    stream_id: StreamId,
    sequence: u64,
    slot: u64,
    shred_index: u32,
    batch_index: u32,
    ordinal: u32,
    skipped: u32,
    dropped: u32,
    payload: &'a [u8],
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

/// 0 "SWTX"; 4 version; 5 kind; 6 flags; 8 stream id; 16 sequence; 24 slot; 32 time; 40 shred index;
/// 44 batch index; 48 ordinal; 52 skipped; 56 dropped; 60 header bytes; 62 payload bytes.
fn parse(packet: &[u8]) -> Option<Datagram<'_>> {
    if packet.len() < HEADER_BYTES || !packet.starts_with(b"SWTX\x01") {
        return None;
    }
    let header_bytes = usize::from(u16_at(packet, 60));
    let payload_bytes = usize::from(u16_at(packet, 62));
    if header_bytes < HEADER_BYTES || header_bytes + payload_bytes != packet.len() {
        return None;
    }
    let kind = packet[5];
    if kind == 0 || payload_bytes < *PAYLOAD_MIN.get(usize::from(kind))? {
        return None;
    }
    let mut stream_id = StreamId::default();
    stream_id.copy_from_slice(&packet[8..16]);
    Some(Datagram {
        kind,
        flags: u16_at(packet, 6),
        stream_id,
        sequence: u64_at(packet, 16),
        slot: u64_at(packet, 24),
        shred_index: u32_at(packet, 40),
        batch_index: u32_at(packet, 44),
        ordinal: u32_at(packet, 48),
        skipped: u32_at(packet, 52),
        dropped: u32_at(packet, 56),
        payload: &packet[header_bytes..],
    })
}

/// The first signature: after the number of signatures, or before the end in version 1.
fn signature_of<'a>(one: &Datagram<'a>) -> &'a [u8] {
    let begin = if one.flags & VERSION_1 == 0 {
        1
    } else {
        let signatures = usize::from(one.payload[1]).max(1) * SIGNATURE_BYTES;
        one.payload.len().saturating_sub(signatures)
    };
    &one.payload[begin..begin + SIGNATURE_BYTES]
}

fn base58(bytes: &[u8]) -> String {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut number: Vec<u8> = Vec::new();
    for byte in &bytes[zeros..] {
        let mut carry = u32::from(*byte);
        for digit in number.iter_mut() {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            number.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    let digits = number.iter().rev().map(|digit| char::from(DIGITS[usize::from(*digit)]));
    "1".repeat(zeros).chars().chain(digits).collect()
}

fn print_datagram(out: &mut impl Write, one: &Datagram) -> io::Result<()> {
    let Datagram { kind, flags, slot, shred_index, batch_index, ordinal, payload, .. } = one;
    match *kind {
        TRANSACTION => {
            let has = |flag: u16, text: &'static str| if flags & flag != 0 { text } else { "" };
            let legacy = if flags & (VERSION_0 | VERSION_1) == 0 { "legacy" } else { "" };
            writeln!(
                out,
                "{slot} {shred_index} {batch_index} {ordinal} {}{}{legacy} {} {}{}{}{}",
                has(VERSION_1, "v1"),
                has(VERSION_0, "v0"),
                payload.len(),
                base58(signature_of(one)),
                has(VOTE, " vote"),
                has(RESOLVED, " resolved"),
                has(UNRESOLVED, " unresolved"),
            )
        }
        WITHDRAWAL => {
            writeln!(out, "withdrawal {slot} before {batch_index} parent {}", u64_at(payload, 0))
        }
        GAP => {
            let (count, first, last) = (u64_at(payload, 0), u64_at(payload, 8), u64_at(payload, 16));
            writeln!(out, "gap {count} slots {first} to {last}")
        }
        END => writeln!(out, "end {}", String::from_utf8_lossy(payload)),
        _ => Ok(()),
    }
}

// ---- counting ----------------------------------------------------------------------------------

#[derive(Default)]
struct Counts {
    wanted: Option<StreamId>,
    transactions: u64,
    withdrawals: u64,
    bad: u64,
    challenges: u64,
    /// The present push, and when it was last heard.
    present: Option<(StreamId, Instant)>,
    next: u64,
    missing: u64,
    first_dropped: u32,
    dropped: u32,
    skipped: u32,
}

impl Counts {
    /// A new push begins only after the end or the silence of the one before.
    fn is_ours(&mut self, one: &Datagram, now: Instant) -> bool {
        let is_same = self.present.map_or(false, |(id, _)| id == one.stream_id);
        if !is_same {
            let is_wanted = self.wanted.map_or(true, |id| id == one.stream_id);
            let is_free = self.present.map_or(true, |(_, heard)| now - heard > SILENCE);
            if !is_wanted || !is_free {
                return false;
            }
            self.next = one.sequence;
            self.missing = 0;
            self.first_dropped = one.dropped;
        }
        self.present = Some((one.stream_id, now));
        true
    }

    fn take(&mut self, one: &Datagram) {
        if one.sequence >= self.next {
            self.missing += one.sequence - self.next;
            self.next = one.sequence.saturating_add(1);
            self.skipped = one.skipped;
            self.dropped = one.dropped.wrapping_sub(self.first_dropped);
        } else {
            self.missing = self.missing.saturating_sub(1); // late, not lost
        }
        self.transactions += u64::from(one.kind == TRANSACTION);
        self.withdrawals += u64::from(one.kind == WITHDRAWAL);
        if one.kind == END && self.wanted.is_none() {
            self.present = None;
        }
    }

    fn report(&self, begin: &str) {
        let lost = self.missing.saturating_sub(u64::from(self.dropped));
        eprintln!(
            "{begin}  transactions {}  lost {lost}  dropped {}  too long {}  withdrawals {}  bad {}  challenges {}",
            self.transactions, self.dropped, self.skipped, self.withdrawals, self.bad, self.challenges
        );
    }
}

// ---- the program -------------------------------------------------------------------------------

struct Options {
    port: u16,
    bind: IpAddr,
    stream: Option<StreamId>,
    seconds: Option<Duration>,
    count: Option<u64>,
    is_quiet: bool,
}

fn usage() -> ! {
    eprintln!("usage: transactions PORT [--bind ADDRESS] [--stream ID] [--seconds S] [--count N] [--quiet]");
    eprintln!("expected as ID: 16 hex digits, the streamId of startTransactionPush");
    exit(2)
}

fn read_stream_id(text: &str) -> Option<StreamId> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(text, 16).ok()?;
    is_hex.then(|| number.to_be_bytes())
}

fn read_options() -> Options {
    let mut port = None;
    let mut options = Options {
        port: 0,
        bind: IpAddr::from([0, 0, 0, 0]),
        stream: None,
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
            "--stream" => options.stream = Some(read_stream_id(&value()).unwrap_or_else(|| usage())),
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
    let mut counts = Counts { wanted: options.stream, ..Counts::default() };
    let mut buffer = [0u8; BUFFER];
    let begin = Instant::now();
    let mut second = begin;
    let mut answers_left = ANSWERS_PER_SECOND;
    loop {
        let now = Instant::now();
        if now - second >= SECOND {
            counts.report("second:");
            second = now;
            answers_left = ANSWERS_PER_SECOND;
            out.flush()?;
        }
        let is_late = options.seconds.map_or(false, |seconds| now - begin >= seconds);
        let is_enough = options.count.map_or(false, |count| counts.transactions >= count);
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
        match parse(packet) {
            Some(one) if counts.is_ours(&one, now) => {
                counts.take(&one);
                if !options.is_quiet {
                    print_datagram(&mut out, &one)?;
                }
            }
            _ if length == CHALLENGE_BYTES && packet.starts_with(CHALLENGE_MARK) => {
                counts.challenges += 1;
                if answers_left > 0 {
                    answers_left -= 1;
                    // Sent unchanged to the sender. After a loss, the service sends another challenge.
                    let _ = socket.send_to(packet, from);
                }
            }
            _ => counts.bad += 1,
        }
    }
    out.flush()?;
    Ok(counts)
}

fn run(options: &Options) -> io::Result<()> {
    let socket = UdpSocket::bind((options.bind, options.port))?;
    socket.set_read_timeout(Some(WAIT))?;
    eprintln!("receiving on {} port {}", options.bind, options.port);
    receive(&socket, options)?.report("total:");
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
