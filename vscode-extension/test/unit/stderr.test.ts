import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { Stderr } from "../../src/server/stderr";

const GONE = "Pending response rejected since connection got disposed";

test.each<[string, string, readonly string[]]>([
  [GONE, "The server ended at once: ImportError: no apsw", ["Traceback:", "ImportError: no apsw", " "]],
  [GONE, "The server ended at once, and did not say why.", []],
  ["The folder list is not valid", "The folder list is not valid", ["a warning"]],
])("a start that fails with %j: %j", async (message, expected, lines) => {
  const stderr = new Stderr();
  const stream = new PassThrough();
  const written: string[] = [];
  stderr.read(stream, (line) => written.push(line));
  const explained = stderr.explain(new Error(message));
  stream.end(lines.map((line) => `${line}\n`).join(""));
  expect((await explained).message).toBe(expected);
  if (message === GONE) expect(written).toEqual(lines);
});
