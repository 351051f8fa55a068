// Whether this version of Node.js can run the engine "uws".

/** uWebSockets.js has no binary for later versions. */
export const hasUws = Number(process.versions.node.split(".")[0]) < 24;
