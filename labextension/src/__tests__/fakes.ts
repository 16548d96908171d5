import { Kernel } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

type Opened = (comm: Kernel.IComm, message: { content: { data: unknown } }) => void;

/** One end of a comm; what the front end sends is kept in `sent`. */
export class FakeComm {
  onMsg: (message: { content: { data: unknown } }) => void = () => undefined;
  onClose: () => void = () => undefined;
  readonly sent: unknown[] = [];

  send(data: unknown): void {
    this.sent.push(data);
  }

  say(data: unknown): void {
    this.onMsg({ content: { data } });
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
  isDisposed = false;

  constructor(private readonly _open: Record<string, { target_name: string }> = {}) {}

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
    this.targets.get(name)?.(comm.asComm, { content: { data } });
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
  __: (text: string, ...args: string[]) => text.replace(/%(\d)/g, (_, n: string) => String(args[Number(n) - 1]))
} as unknown as TranslationBundle;

/** A message as a kernel writes it. */
export function message(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return { version: 1, model: 'scripted/demo', session_usd: 0.21, budget_usd: 2, warn_usd: 1.6, running: false, ...changes };
}
