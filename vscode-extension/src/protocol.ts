/** The requests and notifications of the daemon, as docs/protocol.md says them. A field with `?` may be left out. */
export type * from "./protocol/agents";
export type * from "./protocol/context";
export type * from "./protocol/notifications";
export type * from "./protocol/requests";
export type * from "./protocol/server";
export type * from "./protocol/sessions";
export type * from "./protocol/shapes";
export type * from "./protocol/transcript";
