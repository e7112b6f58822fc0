/** Runs test/host inside an extension host, beside the packaged extension. */
import path from "node:path";
import { expect, test } from "vitest";
import { photographFailure, window, world } from "./harness/each.ts";
import { copyExample, EXTENSION } from "./harness/world.ts";

const HOST = path.join(process.env.NEXUS_E2E_CACHE ?? path.join(EXTENSION, ".e2e"), "packages/host");

test("in the extension host", async () => {
  photographFailure();
  const lines: string[] = [];
  let ended: (code: number) => void = () => {};
  const end = new Promise<number>((resolve) => {
    ended = resolve;
  });
  const remote = (file: string) => `vscode-remote://127.0.0.1:${world().port}${file}`;
  const bench = await window({
    workspace: copyExample(world(), "host"),
    payload: [
      ["extensionDevelopmentPath", remote(HOST)],
      ["extensionTestsPath", remote(path.join(HOST, "run.js"))],
    ],
    prepare: async (page) => {
      await page.exposeFunction(
        "codeAutomationLog",
        (_kind: string, args: unknown[]) => void lines.push(args.join(" ")),
      );
      await page.exposeFunction("codeAutomationExit", (code: number) => ended(code));
    },
  });
  const code = await end;

  const told = lines.flatMap((line) => /(?:^|\s)((?:ok|not ok) .*)/s.exec(line)?.[1] ?? []);
  console.log((told.length > 0 ? told : lines).join("\n"));
  expect({ code, told: told.length > 0 }).toEqual({ code: 0, told: true });
  await bench.close();
});
