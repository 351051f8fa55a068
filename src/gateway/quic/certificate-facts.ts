// Facts of a client's certificate: common name, Ed25519 key and the request for protection. Pure.
//
// A small reader of DER (ITU-T X.690, RFC 5280), because node:crypto does not show extensions and writes
// names as text. The bytes come from strangers: every length is checked, and nothing else is believed. TLS
// has verified that the client has the private key; signatures and validity do not matter.

export interface CertificateFacts {
  /** null: none, several, or not printable ASCII. */
  readonly commonName: string | null;
  /** 32 bytes; null: a key of another type. */
  readonly ed25519Key: Uint8Array | null;
  /** The extension 2.999.1.1; "invalid": its value is not a BOOLEAN. */
  readonly protection: boolean | "invalid";
}

interface Element {
  readonly tag: number;
  readonly body: Uint8Array;
}

/** Longer certificates are refused before they are read. */
const certificateBytesMax = 16_384;
/** Further names and extensions are an error. */
const elementsMax = 64;

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  sequence: 0x30,
  set: 0x31,
  version: 0xa0,
  extensions: 0xa3,
} as const;
/** UTF8String, PrintableString, TeletexString, IA5String. */
const textTags: ReadonlySet<number> = new Set([0x0c, 0x13, 0x14, 0x16]);
const commonNameOid = "550403";
const ed25519Oid = "2b6570";
const protectionOid = "88370101";
const publicKeyBytes = 32;
const printable = /^[\x21-\x7e]{1,256}$/;

/** Thrown inside this file only. */
class DerError extends Error {}

/** Reads the elements of `bytes` in order. Lengths of up to three bytes, definite form only. */
class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  next(): Element {
    const tag = this.#byte();
    // Tags of several bytes do not occur in certificates.
    if ((tag & 0x1f) === 0x1f) throw new DerError("a long tag");
    const length = this.#length();
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new DerError("a length beyond the end");
    const body = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return { tag, body };
  }

  expect(tag: number): Uint8Array {
    const element = this.next();
    if (element.tag !== tag) throw new DerError("another tag");
    return element.body;
  }

  /** The body of the next element if it has this tag. */
  optional(tag: number): Uint8Array | undefined {
    return this.#bytes[this.#at] === tag ? this.next().body : undefined;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new DerError("the end");
    this.#at++;
    return byte;
  }

  #length(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    const count = first & 0x7f;
    if (count === 0 || count > 3) throw new DerError("an unsupported length");
    let length = 0;
    for (let i = 0; i < count; i++) length = length * 256 + this.#byte();
    return length;
  }
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
}

function elementsOf(bytes: Uint8Array): Element[] {
  const reader = new Reader(bytes);
  const elements: Element[] = [];
  while (!reader.isAtEnd) {
    if (elements.length === elementsMax) throw new DerError("too many elements");
    elements.push(reader.next());
  }
  return elements;
}

function commonNameIn(subject: Uint8Array): string | null {
  const names: string[] = [];
  for (const { body } of elementsOf(subject)) {
    for (const attribute of elementsOf(body)) {
      const reader = new Reader(attribute.body);
      if (hexOf(reader.expect(tags.oid)) !== commonNameOid) continue;
      const { tag, body: text } = reader.next();
      names.push(textTags.has(tag) ? Buffer.from(text).toString("latin1") : "");
    }
  }
  const [name] = names;
  return name !== undefined && names.length === 1 && printable.test(name) ? name : null;
}

/** `info`: the body of SubjectPublicKeyInfo. */
function ed25519KeyIn(info: Uint8Array): Uint8Array | null {
  const reader = new Reader(info);
  const algorithm = new Reader(reader.expect(tags.sequence)).expect(tags.oid);
  const bits = reader.expect(tags.bits);
  if (hexOf(algorithm) !== ed25519Oid) return null;
  if (bits.length !== 1 + publicKeyBytes || bits[0] !== 0) throw new DerError("a key's length");
  return bits.slice(1);
}

function isProtectedBy(value: Uint8Array): boolean | "invalid" {
  try {
    const reader = new Reader(value);
    const flag = reader.expect(tags.boolean);
    return flag.length === 1 && reader.isAtEnd ? flag[0] !== 0 : "invalid";
  } catch {
    return "invalid";
  }
}

function protectionIn(extensions: Uint8Array): boolean | "invalid" {
  let protection: boolean | "invalid" = false;
  const list = new Reader(extensions).expect(tags.sequence);
  for (const { body } of elementsOf(list)) {
    const reader = new Reader(body);
    if (hexOf(reader.expect(tags.oid)) !== protectionOid) continue;
    reader.optional(tags.boolean); // critical
    const found = isProtectedBy(reader.expect(tags.octets));
    // A repeated extension never weakens an earlier one.
    if (found !== false && protection !== "invalid") protection = found;
  }
  return protection;
}

function read(der: Uint8Array): CertificateFacts {
  const certificate = new Reader(new Reader(der).expect(tags.sequence));
  const body = new Reader(certificate.expect(tags.sequence));
  body.optional(tags.version);
  body.expect(tags.integer); // serial number
  body.expect(tags.sequence); // signature algorithm
  body.expect(tags.sequence); // issuer
  body.expect(tags.sequence); // validity
  const commonName = commonNameIn(body.expect(tags.sequence));
  const ed25519Key = ed25519KeyIn(body.expect(tags.sequence));
  let protection: CertificateFacts["protection"] = false;
  while (!body.isAtEnd) {
    const element = body.next();
    if (element.tag === tags.extensions) protection = protectionIn(element.body);
  }
  return { commonName, ed25519Key, protection };
}

/** null: not a certificate. Never throws. */
export function readCertificateFacts(der: Uint8Array): CertificateFacts | null {
  if (der.length > certificateBytesMax) return null;
  try {
    return read(der);
  } catch (error) {
    if (error instanceof DerError) return null;
    throw error;
  }
}
