/** Whether a server speaks the protocol of this extension, and what to update if it does not. */
import { PROTOCOL } from "../protocol";
import type { Launch } from "./launch";
import { SetupError } from "./remedies";
import { shown } from "./versions";

/** What a server that names no number speaks. */
const FIRST_PROTOCOL = 1;

/** The number in a server's capabilities. */
export function protocolOf(capabilities: { readonly experimental?: unknown }): number {
  const { nexus } = (capabilities.experimental ?? {}) as { nexus?: { protocol?: unknown } };
  return typeof nexus?.protocol === "number" ? nexus.protocol : FIRST_PROTOCOL;
}

/** Throws SetupError where the numbers differ. `version` is the extension's. */
export function checkProtocol(protocol: number, { command, from, version: server }: Launch, version: string): void {
  if (protocol === PROTOCOL) return;
  const extension = `extension ${version} speaks protocol ${PROTOCOL}`;
  const program = `server ${shown(server)} (${command}) speaks protocol ${protocol}`;
  const outdated = protocol > PROTOCOL ? "extension" : "server";
  const message = `Update the Nexus ${outdated}: ${extension}, and ${program}.`;
  throw new SetupError(
    "other-protocol",
    message,
    ...(from === "setting" ? (["serverSetting"] as const) : []),
    "tryAgain",
  );
}
