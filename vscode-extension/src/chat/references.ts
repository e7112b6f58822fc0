/**
 * Files, selections, texts and images that the user attached → parts of the message. Rules:
 *
 * 1. Unsaved text of an open file wins over the disk. Files above LARGEST_FILE, and what is not UTF-8, are not
 *    read: the user is told, nothing hangs.
 * 2. A directory is given as the names in it.
 * 3. At most MOST_IMAGES images of LARGEST_IMAGE bytes each.
 */
import * as vscode from "vscode";
import type { Json } from "../protocol";
import { type Attachment, withAttachments } from "./attached";

const LARGEST_FILE = 1024 * 1024;
const LARGEST_IMAGE = 5 * 1024 * 1024;
const MOST_IMAGES = 4;
const MOST_NAMES = 200;
/** Characters of all attachments together, at most; and never more than a quarter of the window, nearly. */
const MOST_ROOM = 200_000;

export interface Attached {
  /** The message's content for the daemon. */
  content: string | Json[];
  /** What it holds, for the answer's list of references. */
  used: (vscode.Uri | vscode.Location)[];
  /** What was cut or could not be read, one line each. */
  notes: string[];
}

interface Picture {
  mimeType: string;
  data: () => Thenable<Uint8Array>;
}

/** A prompt with what it refers to, and with `resources`. `window` is the model's, in tokens. */
export async function messageWith(
  prompt: string,
  references: readonly vscode.ChatPromptReference[],
  resources: readonly Attachment[],
  window: number,
): Promise<Attached> {
  const attachments: Attachment[] = [];
  const pictures: Json[] = [];
  const used: Attached["used"] = [];
  const notes: string[] = [];
  for (const { value, id, modelDescription } of [...references].reverse()) {
    try {
      if (value instanceof vscode.Uri) {
        attachments.push(await fileOf(value));
        used.push(value);
      } else if (value instanceof vscode.Location) {
        attachments.push(await fileOf(value.uri, value.range));
        used.push(value);
      } else if (typeof value === "string") {
        attachments.push({ title: modelDescription ?? id, language: "", text: value });
      } else if (isPicture(value)) {
        pictures.push(await pictureOf(value, pictures.length));
      } else {
        notes.push(`${modelDescription ?? id}: this kind of attachment is not known to Nexus, and is not sent`);
      }
    } catch (error) {
      notes.push(error instanceof Error ? error.message : String(error));
    }
  }
  const put = withAttachments(prompt, [...attachments, ...resources], Math.min(MOST_ROOM, Math.max(0, window)));
  notes.push(...put.cut.map((title) => `${title}: too long, cut`));
  const content = pictures.length === 0 ? put.text : [...textPart(put.text), ...pictures];
  return { content, used, notes };
}

function textPart(text: string): Json[] {
  return text === "" ? [] : [{ type: "text", text }];
}

async function fileOf(uri: vscode.Uri, range?: vscode.Range): Promise<Attachment> {
  const path = vscode.workspace.asRelativePath(uri);
  const title = range === undefined ? path : `${path}, lines ${range.start.line + 1}–${range.end.line + 1}`;
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
  if (open !== undefined) {
    return { title, language: open.languageId, text: open.getText(range) };
  }
  const text = await onDisk(uri, path);
  return { title, language: "", text: range === undefined ? text : part(text, range) };
}

async function onDisk(uri: vscode.Uri, path: string): Promise<string> {
  const stat = await vscode.workspace.fs.stat(uri);
  if ((stat.type & vscode.FileType.Directory) !== 0) {
    return namesIn(await vscode.workspace.fs.readDirectory(uri));
  }
  if ((stat.type & vscode.FileType.File) === 0) {
    throw new Error(`${path}: is no file, and is not sent`);
  }
  if (stat.size > LARGEST_FILE) {
    throw new Error(`${path}: larger than 1 MiB, and not sent. Select the part that matters, and attach that`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await vscode.workspace.fs.readFile(uri));
  } catch (error) {
    throw error instanceof TypeError ? new Error(`${path}: is not UTF-8 text, and is not sent`) : error;
  }
}

function namesIn(entries: readonly [string, vscode.FileType][]): string {
  const names = entries.map(([name, type]) => ((type & vscode.FileType.Directory) !== 0 ? `${name}/` : name)).sort();
  const more = names.length > MOST_NAMES ? [`… and ${names.length - MOST_NAMES} more`] : [];
  return [...names.slice(0, MOST_NAMES), ...more].join("\n");
}

function part(text: string, range: vscode.Range): string {
  const lines = text.split(/\r?\n/u).slice(range.start.line, range.end.line + 1);
  const last = lines.length - 1;
  if (last === range.end.line - range.start.line) {
    lines[last] = (lines[last] ?? "").slice(0, range.end.character);
  }
  lines[0] = (lines[0] ?? "").slice(range.start.character);
  return lines.join("\n");
}

/** An image of the chat's input: the class is not in the editor's public types, its shape is. */
function isPicture(value: unknown): value is Picture {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof Reflect.get(value, "mimeType") === "string" &&
    typeof Reflect.get(value, "data") === "function"
  );
}

async function pictureOf(picture: Picture, before: number): Promise<Json> {
  if (before >= MOST_IMAGES) {
    throw new Error(`an image: more than ${MOST_IMAGES} are not sent`);
  }
  const bytes = await picture.data();
  if (bytes.length > LARGEST_IMAGE) {
    throw new Error("an image: larger than 5 MiB, and not sent");
  }
  return { type: "image", mimeType: picture.mimeType, data: Buffer.from(bytes).toString("base64") };
}
