// Buffers of the UDP sockets of the QUIC ingress.
//
// Requested by ingress-process-main.ts; the doctor checks whether the kernel grants them.

/** Bytes of each direction. The kernel may grant less. */
export const ingressBufferBytes = 8 * 1024 * 1024;
