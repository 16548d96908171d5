/**
 * The messages on the comm `larik:status`, as `larik_nb/notebook/status.py` writes and reads them.
 *
 * What a kernel says is read strictly: a message of another shape is dropped, for no figure is better than a wrong one.
 */
import { JSONObject, JSONValue } from '@lumino/coreutils';
import { IModels, IStatus } from './tokens';

/** The comm target on which a kernel speaks. */
export const TARGET = 'larik:status';

/** The version of the messages that we read. */
export const VERSION = 2;

/** What this page can do for a kernel. */
export const ABILITIES = ['insert', 'replace'];

export type Level = 'ok' | 'warn' | 'stop';

/** A cell to insert. */
export type Cell = { readonly kind: 'code' | 'markdown'; readonly source: string };

/** A model that may be chosen. */
export interface IModelRow {
  /** `provider/model`. */
  readonly spec: string;
  /** Tokens a prompt may have, `1M`; empty when unknown. */
  readonly window: string;
  /** What it costs, in words: `$2/$10`, `free (local)`. */
  readonly price: string;
  readonly abilities: readonly string[];
  /** `ok`, or why it cannot be asked now. */
  readonly state: string;
  /** It can be asked now. */
  readonly ready: boolean;
  /** The last day on which it is served; empty where none is known. */
  readonly ends: string;
}

/** What became of choosing a model: its full name, or why it was not taken. */
export type Chosen = { readonly ok: boolean; readonly text: string };

/** What a kernel says. */
export type FromKernel =
  | { readonly type: 'state'; readonly status: IStatus }
  | { readonly type: 'insert'; readonly id: string; readonly cellId: string | null; readonly cells: readonly Cell[] }
  | {
      readonly type: 'replace';
      readonly id: string;
      readonly cellId: string;
      readonly digest: string;
      readonly source: string;
    }
  | { readonly type: 'open_picker' }
  | { readonly type: 'models'; readonly listed: IModels }
  | { readonly type: 'chosen'; readonly chosen: Chosen };

/** What this page says. */
export const say = {
  hello: (): JSONObject => ({ type: 'hello', version: VERSION, abilities: ABILITIES }),
  cell: (cellId: string, source: string): JSONObject => ({ type: 'cell', cell_id: cellId, source }),
  done: (id: string, reason: string): JSONObject => ({ type: 'done', id, ok: reason === '', reason }),
  models: (): JSONObject => ({ type: 'models' }),
  choose: (spec: string): JSONObject => ({ type: 'choose', spec })
};

/** Read one message of a kernel; null when it has another version or shape. */
export function parse(data: JSONValue | undefined): FromKernel | null {
  if (!isObject(data)) {
    return null;
  }
  switch (data.type) {
    case 'state':
      return parseState(data);
    case 'insert':
      return parseInsert(data);
    case 'replace':
      return parseReplace(data);
    case 'open_picker':
      return { type: 'open_picker' };
    case 'models':
      return parseModels(data);
    case 'chosen':
      return isFlag(data.ok) && isText(data.text)
        ? { type: 'chosen', chosen: { ok: data.ok, text: data.text } }
        : null;
    default:
      return null;
  }
}

function parseState(data: JSONObject): FromKernel | null {
  const { version, model, session_usd, at_least, budget_usd, level, running } = data;
  if (version !== VERSION || !isFlag(running) || !isFlag(at_least) || !isLevel(level)) {
    return null;
  }
  if (!isTextOrNull(model) || !isAmount(session_usd) || !(budget_usd === null || isAmount(budget_usd))) {
    return null;
  }
  const status = { model, sessionUsd: session_usd, atLeast: at_least, budgetUsd: budget_usd, level, running };
  return { type: 'state', status };
}

function parseInsert(data: JSONObject): FromKernel | null {
  const { id, cell_id, cells } = data;
  if (!isText(id) || !isTextOrNull(cell_id) || !Array.isArray(cells)) {
    return null;
  }
  const read = cells.map(parseCell);
  return read.every(isPresent) ? { type: 'insert', id, cellId: cell_id, cells: read } : null;
}

function parseCell(data: JSONValue): Cell | null {
  if (!isObject(data) || !isText(data.source) || !(data.kind === 'code' || data.kind === 'markdown')) {
    return null;
  }
  return { kind: data.kind, source: data.source };
}

function parseReplace(data: JSONObject): FromKernel | null {
  const { id, cell_id, digest, source } = data;
  return isText(id) && isText(cell_id) && isText(digest) && isText(source)
    ? { type: 'replace', id, cellId: cell_id, digest, source }
    : null;
}

function parseModels(data: JSONObject): FromKernel | null {
  if (!Array.isArray(data.models) || !isText(data.problem) || !isFlag(data.asking)) {
    return null;
  }
  // A row that cannot be read is left out: the others can be chosen all the same.
  const models = data.models.map(parseRow).filter(isPresent);
  return { type: 'models', listed: { models, problem: data.problem, asking: data.asking } };
}

function parseRow(data: JSONValue): IModelRow | null {
  if (!isObject(data) || !isText(data.spec)) {
    return null;
  }
  return {
    spec: data.spec,
    window: textOf(data.window),
    price: textOf(data.price),
    abilities: Array.isArray(data.abilities) ? data.abilities.filter(isText) : [],
    state: textOf(data.state),
    ready: data.ready === true,
    ends: textOf(data.ends)
  };
}

/** What is empty is left out of a row. */
function textOf(value: JSONValue | undefined): string {
  return isText(value) ? value : '';
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFlag(value: JSONValue | undefined): value is boolean {
  return typeof value === 'boolean';
}

function isText(value: JSONValue | undefined): value is string {
  return typeof value === 'string';
}

function isTextOrNull(value: JSONValue | undefined): value is string | null {
  return value === null || isText(value);
}

function isAmount(value: JSONValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isLevel(value: JSONValue | undefined): value is Level {
  return value === 'ok' || value === 'warn' || value === 'stop';
}

function isPresent<T>(value: T | null): value is T {
  return value !== null;
}
