import { Kernel } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { JSONObject } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

interface IMessage {
  content: { data: unknown };
  parent_header: { session?: string };
}

type Opened = (comm: Kernel.IComm, message: IMessage) => void;

/** The session of the page under test. */
export const CLIENT = 'this page';

/** One end of a comm; what the front end sends is kept in `sent`. */
export class FakeComm {
  onMsg: (message: IMessage) => void = () => undefined;
  onClose: () => void = () => undefined;
  readonly sent: unknown[] = [];

  send(data: unknown): void {
    this.sent.push(data);
  }

  say(data: unknown, session = CLIENT): void {
    this.onMsg({ content: { data }, parent_header: { session } });
  }

  get asComm(): Kernel.IComm {
    return this as unknown as Kernel.IComm;
  }
}

/** A kernel connection reduced to comms and two signals. */
export class FakeKernel {
  readonly disposed = new Signal<this, void>(this);
  readonly statusChanged = new Signal<this, Kernel.Status>(this);
  readonly targets = new Map<string, Opened>();
  readonly made = new Map<string, FakeComm>();
  readonly clientId = CLIENT;
  isDisposed = false;

  constructor(
    private readonly _open: Record<string, { target_name: string }> = {},
    readonly id = 'kernel-1'
  ) {}

  registerCommTarget(name: string, opened: Opened): void {
    this.targets.set(name, opened);
  }

  removeCommTarget(name: string): void {
    this.targets.delete(name);
  }

  async requestCommInfo(): Promise<unknown> {
    return { content: { status: 'ok', comms: this._open } };
  }

  hasComm(id: string): boolean {
    return this.made.has(id);
  }

  createComm(_name: string, id: string): Kernel.IComm {
    const comm = new FakeComm();
    this.made.set(id, comm);
    return comm.asComm;
  }

  open(name: string, data: unknown): FakeComm {
    const comm = new FakeComm();
    this.targets.get(name)?.(comm.asComm, { content: { data }, parent_header: { session: CLIENT } });
    return comm;
  }

  dispose(): void {
    this.isDisposed = true;
    this.disposed.emit();
  }

  get asKernel(): Kernel.IKernelConnection {
    return this as unknown as Kernel.IKernelConnection;
  }
}

/** English, with `%1` filled in. */
export const trans = {
  __: (text: string, ...args: unknown[]) => filled(text, args),
  _n: (one: string, many: string, n: number, ...args: unknown[]) => filled(n === 1 ? one : many, args)
} as unknown as TranslationBundle;

function filled(text: string, args: readonly unknown[]): string {
  return text.replace(/%(\d)/g, (_, n: string) => String(args[Number(n) - 1]));
}

/** A state as a kernel writes it. */
export function message(changes: Record<string, unknown> = {}): JSONObject {
  return {
    type: 'state',
    version: 2,
    model: 'scripted/demo',
    session_usd: 0.21,
    at_least: false,
    budget_usd: 2,
    level: 'ok',
    running: false,
    ...changes
  } as JSONObject;
}
