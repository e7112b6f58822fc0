/** What the panel says before a message, and what the model is sent then. */
import { expect } from "vitest";
import type { Daemon } from "./daemon.ts";
import { type Heard, heard, until } from "./each.ts";
import type { Workbench } from "./workbench.ts";

/** Tokens around each message but the system prompt, as the daemon counts them. */
const OVERHEAD = 4;
/** The conversation's first message, which is sent as one with the user's first. */
const OPENING = /^\[Session started: [^\]]*\](?=[\s\S])/;
/** The panel's figure stands still for so long before it is read. */
const STILL_MS = 1_500;

/** Sends a message: what the model is sent costs what the panel said before, and what was typed. */
export async function asPredicted(
  bench: Workbench,
  daemon: Daemon,
  prompt: string,
): Promise<{ predicted: number; system: string; text: string }> {
  const predicted = await still(bench);
  const before = heard().filter(isRequest).length;
  await bench.ask(prompt);
  await bench.response(`You said: ${prompt}`).waitFor();
  const request = heard().filter(isRequest)[before];
  const messages = request?.messages ?? [];
  const texts = messages.map((message) => message.text);
  const definitions = (request?.definitions ?? []).map(({ name, description, inputSchema }) =>
    JSON.stringify({ name, description, inputSchema }),
  );
  const [typed, ...sent] = await tokensOf(daemon, [prompt, ...texts, ...definitions]);
  const conversation = messages.length - 1 + texts.filter((text) => OPENING.test(text)).length;
  const total = sent.reduce((sum, tokens) => sum + tokens, 0) + OVERHEAD * conversation;
  expect(predicted).toBe(total - (typed ?? 0));
  return { predicted, system: texts[0] ?? "", text: texts.join("\n") };
}

function isRequest({ event }: Heard): boolean {
  return event === "request";
}

async function tokensOf(daemon: Daemon, texts: string[]): Promise<number[]> {
  return (await daemon.request("nexus/tokens/count", { texts, model: "parrot" })).counts;
}

/** The panel's figure, once it stands still. */
export async function still(bench: Workbench): Promise<number> {
  let [last, since] = ["", Date.now()];
  await until(
    () => bench.webview().locator(".window .used").first().innerText(),
    (now) => {
      if (now !== last) [last, since] = [now, Date.now()];
      return Date.now() - since > STILL_MS;
    },
  );
  return Number(last.replaceAll(/\D/g, ""));
}
