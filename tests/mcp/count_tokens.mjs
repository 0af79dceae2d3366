// Reads a JSON array of texts, writes how many tokens (o200k) each has.
import { readFileSync } from "node:fs";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((text) => encode(text).length)));
