// Constants of the Solana network that every cluster shares; each comment names its constant in the
// crate `solana-clock` of the Solana SDK.

/** LAMPORTS_PER_SOL, of the crate `solana-native-token`. */
export const lamportsPerSol = 1_000_000_000n;

/** NUM_CONSECUTIVE_LEADER_SLOTS: a leader's window has this many slots and begins at a multiple of it. */
export const windowSlots = 4n;

/** MAX_PROCESSING_AGE: a blockhash is valid for this many blocks after its own. */
export const lifetimeSlots = 150n;

/** DEFAULT_MS_PER_SLOT: the length of a slot until a measurement is available. */
export const defaultSlotNs = 400_000_000n;
