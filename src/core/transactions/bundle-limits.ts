// Maximum sizes of bundles. Only constants, because the confined process of the QUIC ingress loads them.

/** Maximum size of a bundle. */
export const bundleTransactionsMax = 4;
/** Maximum size of a bundle below /api/v1, as block engines accept it. */
export const blockEngineBundleMax = 5;
