// Answers imports of the product's sources with its compiled code, which is what `npm start` runs.
//
// tsx --import ./bench/load/compiled-product.mjs PROGRAM     after `npm run compile`
//
// From source, tsx calls Object.defineProperty for each closure to keep its name, which takes about a
// tenth of the time of a submission.

import { register } from "node:module";

register("./compiled-product-hooks.mjs", import.meta.url);
