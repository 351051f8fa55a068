// The allowed imports between the folders of each module of src/, for test/architecture.test.ts.

/**
 * Imports between the folders of one module; all others between them are rejected. "" stands for the
 * files of the module itself.
 */
export const folderImports: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> =
  {
    core: {
      "": [],
      addresses: [""],
      configuration: ["", "addresses"],
      grpc: ["", "addresses"],
      "json-rpc": [""],
      quic: ["", "transactions"],
      transactions: [""],
    },
    relay: {
      "": ["data-plane", "leaders", "multicast", "shredstream"],
      captures: [],
      "data-plane": ["leaders"],
      leaders: ["data-plane"],
      multicast: ["data-plane"],
      shredstream: ["data-plane"],
      streams: ["data-plane"],
    },
    shreds: { destinations: [], registrations: [], tiers: ["registrations"] },
    gateway: {
      accounts: [],
      "fast-path": ["submission", "transactions"],
      http: ["fast-path"],
      submission: [],
      nonces: [],
      tracker: [],
      transactions: ["nonces"],
      tpu: [],
      quic: ["accounts", "tpu"],
      routes: ["fast-path", "submission", "tpu"],
      receipts: ["submission"],
      schema: ["submission"],
      methods: ["accounts", "fast-path", "http", "nonces", "receipts", "schema", "submission", "tracker"],
      endpoints: ["accounts", "http", "methods", "receipts", "schema", "submission", "tracker"],
    },
    platform: {
      solana: [],
      store: [],
      metrics: [],
      portal: [],
      doctor: ["solana", "store"],
    },
    tools: {
      "": [
        "commands",
        "completion",
        "listen",
        "manual",
        "race",
        "replay",
        "send",
        "stream",
        "terminal",
      ],
      audit: [],
      commands: ["audit", "land", "listen", "sandbox", "service", "survey", "terminal"],
      land: ["listen", "report", "terminal"],
      survey: ["terminal"],
      completion: ["terminal"],
      listen: ["race", "terminal"],
      manual: ["terminal"],
      race: ["listen", "report", "send", "stream", "terminal"],
      replay: ["terminal"],
      report: [],
      sandbox: ["terminal"],
      send: ["sandbox", "terminal"],
      service: ["terminal"],
      stream: ["send", "terminal"],
      terminal: [],
    },
  };
