#!/usr/bin/env node
// The daemon, but for one thing: wherever it says what a context costs, 5,000 rows of a token each come on top.
// The panel has to be as quick with them, and no folder that could be written in a test has so many.
import { spawn } from "node:child_process";

const MORE = 5_000;
const daemon = spawn(process.env.NEXUS_E2E_BEHIND, process.argv.slice(2), { stdio: ["pipe", "pipe", "inherit"] });
process.stdin.pipe(daemon.stdin);
daemon.on("exit", (code) => process.exit(code ?? 1));
process.on("SIGTERM", () => daemon.kill());

let rest = Buffer.alloc(0);
daemon.stdout.on("data", (data) => {
  if (process.argv.includes("--version")) return process.stdout.write(data);
  rest = Buffer.concat([rest, data]);
  for (;;) {
    const head = rest.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/Content-Length: (\d+)/i.exec(rest.subarray(0, head).toString())?.[1]);
    if (rest.length < head + 4 + length) return;
    const body = Buffer.from(JSON.stringify(more(JSON.parse(rest.subarray(head + 4, head + 4 + length).toString()))));
    process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`);
    process.stdout.write(body);
    rest = rest.subarray(head + 4 + length);
  }
});

function more(message) {
  for (const usage of [message.result, message.result?.usage, message.params?.usage]) {
    if (!Array.isArray(usage?.rows)) continue;
    const source = usage.rows.find((row) => row.source)?.source;
    for (let index = 1; index <= MORE; index++) {
      usage.rows.push({ category: "memory", label: `Note ${index}`, tokens: 1, exact: true, source });
    }
    usage.total += MORE;
    usage.remaining -= MORE;
  }
  return message;
}
