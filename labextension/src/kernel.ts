import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel } from '@jupyterlab/services';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { ILarikKernel, IStatus } from './tokens';

/** The comm target on which a kernel publishes its status. */
export const TARGET = 'larik:status';

/** The version of the messages on it that we read. */
export const VERSION = 1;

/**
 * Read one message of a kernel.
 *
 * @param data `{version: 1, model: string | null, session_usd: number | null,
 *   budget_usd: number | null, warn_usd?: number | null, running: boolean}`; further keys are ignored.
 * @returns null when the message has another version or shape: better no figure than a wrong one.
 */
export function parseStatus(data: unknown): IStatus | null {
  if (!isRecord(data) || data.version !== VERSION || typeof data.running !== 'boolean') {
    return null;
  }
  const { model, session_usd, budget_usd, warn_usd = null, running } = data;
  if (!(model === null || typeof model === 'string')) {
    return null;
  }
  if (!isUsd(session_usd) || !isUsd(budget_usd) || !isUsd(warn_usd)) {
    return null;
  }
  return { model, sessionUsd: session_usd, budgetUsd: budget_usd, warnUsd: warn_usd, running };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isUsd(value: unknown): value is number | null {
  return value === null || (typeof value === 'number' && Number.isFinite(value) && value >= 0);
}

/** Listens to one kernel for as long as its connection lives. */
export class KernelStatus implements IDisposable {
  constructor(private readonly _kernel: Kernel.IKernelConnection) {
    _kernel.registerCommTarget(TARGET, this._opened);
    _kernel.statusChanged.connect(this._onKernelStatus, this);
    _kernel.disposed.connect(this.dispose, this);
  }

  get status(): IStatus | null {
    return this._status;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /**
   * Ask a kernel that was there before this page, such as after a reload.
   *
   * Its comm is open already, so nothing would be said before the next turn.
   */
  async ask(): Promise<void> {
    const reply = await this._kernel.requestCommInfo({ target_name: TARGET });
    if (reply.content.status !== 'ok' || this._isDisposed) {
      return;
    }
    for (const id of Object.keys(reply.content.comms)) {
      if (!this._kernel.hasComm(id)) {
        const comm = this._kernel.createComm(TARGET, id);
        this._attach(comm);
        comm.send({ version: VERSION, request: 'status' });
      }
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    if (!this._kernel.isDisposed) {
      this._kernel.removeCommTarget(TARGET, this._opened);
    }
    Signal.clearData(this);
  }

  private readonly _opened = (comm: Kernel.IComm, message: { content: { data: unknown } }): void => {
    this._attach(comm);
    this._set(parseStatus(message.content.data));
  };

  private _attach(comm: Kernel.IComm): void {
    this._comm = comm;
    comm.onMsg = message => this._set(parseStatus(message.content.data));
    comm.onClose = () => {
      if (this._comm === comm) {
        this._set(null);
      }
    };
  }

  private _onKernelStatus(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this._set(null);
    }
  }

  private _set(status: IStatus | null): void {
    this._status = status;
    this._changed.emit();
  }

  private _changed = new Signal<this, void>(this);
  private _comm: Kernel.IComm | null = null;
  private _isDisposed = false;
  private _status: IStatus | null = null;
}

/** Follows the notebook in front and listens to the kernels of all. */
export class LarikKernel implements ILarikKernel, IDisposable {
  constructor(private readonly _tracker: INotebookTracker) {
    _tracker.forEach(panel => this._follow(panel));
    _tracker.widgetAdded.connect((_, panel) => this._follow(panel), this);
    _tracker.currentChanged.connect(() => this._statusChanged.emit(), this);
  }

  get status(): IStatus | null {
    const kernel = this._tracker.currentWidget?.sessionContext.session?.kernel;
    return (kernel && this._kernels.get(kernel)?.status) ?? null;
  }

  get statusChanged(): ISignal<this, void> {
    return this._statusChanged;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    for (const listener of this._kernels.values()) {
      listener.dispose();
    }
    this._kernels.clear();
    Signal.clearData(this);
  }

  private _follow(panel: NotebookPanel): void {
    const context = panel.sessionContext;
    this._listen(context.session?.kernel ?? null);
    context.kernelChanged.connect((_, change) => this._listen(change.newValue), this);
  }

  private _listen(kernel: Kernel.IKernelConnection | null): void {
    if (kernel && !this._kernels.has(kernel)) {
      const listener = new KernelStatus(kernel);
      this._kernels.set(kernel, listener);
      kernel.disposed.connect(() => this._kernels.delete(kernel), this);
      listener.changed.connect(() => this._statusChanged.emit(), this);
      listener.ask().catch((reason: unknown) => {
        // A kernel that restarts or ends drops the question; there is nothing to show then.
        console.debug('larik-nb: the kernel gave no comm list', reason);
      });
    }
    this._statusChanged.emit();
  }

  private _isDisposed = false;
  private readonly _kernels = new Map<Kernel.IKernelConnection, KernelStatus>();
  private _statusChanged = new Signal<this, void>(this);
}
