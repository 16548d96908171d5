import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel } from '@jupyterlab/services';
import { JSONObject, JSONValue } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { Chosen, FromKernel, parse, say, TARGET } from './protocol';
import { IEditor, ILarikKernel, ILarikSession, IModels, IStatus } from './tokens';

/** A message of a kernel: what it says, and whose request it answers. */
interface ICommMessage {
  readonly content: { readonly data: JSONValue };
  readonly parent_header?: { readonly session?: string } | Record<string, never>;
}

const GONE = 'the kernel has gone';

/** What was asked of a kernel and not answered yet. */
interface IQuestion<T> {
  readonly answer: Promise<T>;
  readonly settle: (value: T) => void;
  readonly fail: (reason: Error) => void;
}

function question<T>(): IQuestion<T> {
  let settle: (value: T) => void = () => undefined;
  let fail: (reason: Error) => void = () => undefined;
  const answer = new Promise<T>((resolve, reject) => {
    settle = resolve;
    fail = reject;
  });
  return { answer, settle, fail };
}

/** Talks with one kernel for as long as its connection lives. */
export class LarikSession implements ILarikSession, IDisposable {
  /**
   * @param _kernel The connection.
   * @param _editor Changes the notebook that the kernel runs.
   */
  constructor(
    private readonly _kernel: Kernel.IKernelConnection,
    private readonly _editor: IEditor
  ) {
    _kernel.registerCommTarget(TARGET, this._opened);
    _kernel.statusChanged.connect(this._onKernelStatus, this);
    _kernel.disposed.connect(this.dispose, this);
  }

  get status(): IStatus | null {
    return this._status;
  }

  get changed(): ISignal<ILarikSession, void> {
    return this._changed;
  }

  get pickerAsked(): ISignal<ILarikSession, void> {
    return this._pickerAsked;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /**
   * Greet a kernel that was there before this page, such as after a reload.
   *
   * Its comm is open already, so nothing would be said before the next turn.
   */
  async greet(): Promise<void> {
    const reply = await this._kernel.requestCommInfo({ target_name: TARGET });
    if (reply.content.status !== 'ok' || this._isDisposed) {
      return;
    }
    for (const id of Object.keys(reply.content.comms)) {
      if (!this._kernel.hasComm(id)) {
        this._attach(this._kernel.createComm(TARGET, id));
      }
    }
  }

  tell(cellId: string, source: string): void {
    this._send(say.cell(cellId, source));
  }

  models(tell: (listed: IModels) => void, fail: (reason: string) => void): void {
    this._models = { tell, fail };
    this._send(say.models());
  }

  choose(spec: string): Promise<Chosen> {
    this._chosen?.fail(new Error('another model was chosen meanwhile'));
    this._chosen = question();
    const { answer } = this._chosen;
    this._send(say.choose(spec));
    return answer;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._lose();
    if (!this._kernel.isDisposed) {
      this._kernel.removeCommTarget(TARGET, this._opened);
    }
    Signal.clearData(this);
  }

  private readonly _opened = (comm: Kernel.IComm, message: ICommMessage): void => {
    this._attach(comm);
    this._heard(message);
  };

  private _attach(comm: Kernel.IComm): void {
    this._comm = comm;
    comm.onMsg = message => this._heard(message as ICommMessage);
    comm.onClose = () => {
      if (this._comm === comm) {
        this._comm = null;
        this._lose();
      }
    };
    comm.send(say.hello());
  }

  private _heard(message: ICommMessage): void {
    const said = parse(message.content.data);
    if (said === null) {
      return;
    }
    switch (said.type) {
      case 'state':
        return this._set(said.status);
      case 'models':
        return this._models?.tell(said.listed);
      case 'chosen':
        this._chosen?.settle(said.chosen);
        this._chosen = null;
        return;
      default:
        // Another window on this kernel hears it too, and only one of us shall do it.
        if (message.parent_header?.session === this._kernel.clientId) {
          this._do(said);
        }
    }
  }

  private _do(asked: Extract<FromKernel, { type: 'insert' | 'replace' | 'open_picker' }>): void {
    switch (asked.type) {
      case 'insert':
        return this._send(say.done(asked.id, this._editor.insert(asked.cellId, asked.cells)));
      case 'replace':
        return this._send(say.done(asked.id, this._editor.replace(asked.cellId, asked.digest, asked.source)));
      case 'open_picker':
        return this._pickerAsked.emit();
    }
  }

  private _send(data: JSONObject): void {
    this._comm?.send(data);
  }

  private _onKernelStatus(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this._comm = null;
      this._lose();
    }
  }

  /** Nobody answers any more. */
  private _lose(): void {
    this._models?.fail(GONE);
    this._chosen?.fail(new Error(GONE));
    this._models = this._chosen = null;
    this._set(null);
  }

  private _set(status: IStatus | null): void {
    this._status = status;
    this._changed.emit();
  }

  private readonly _changed = new Signal<ILarikSession, void>(this);
  private readonly _pickerAsked = new Signal<ILarikSession, void>(this);
  private _chosen: IQuestion<Chosen> | null = null;
  private _comm: Kernel.IComm | null = null;
  private _isDisposed = false;
  private _models: { tell: (listed: IModels) => void; fail: (reason: string) => void } | null = null;
  private _status: IStatus | null = null;
}

/** Follows the notebook in front and talks with the kernels of all. */
export class LarikKernel implements ILarikKernel, IDisposable {
  /**
   * @param _tracker The open notebooks.
   * @param _editorOf Makes what changes the notebook of a kernel.
   */
  constructor(
    private readonly _tracker: INotebookTracker,
    private readonly _editorOf: (kernelId: string) => IEditor
  ) {
    _tracker.forEach(panel => this._follow(panel));
    _tracker.widgetAdded.connect((_, panel) => this._follow(panel), this);
    _tracker.currentChanged.connect(() => this._statusChanged.emit(), this);
  }

  get status(): IStatus | null {
    return this.current?.status ?? null;
  }

  get statusChanged(): ISignal<ILarikKernel, void> {
    return this._statusChanged;
  }

  get pickerAsked(): ISignal<ILarikKernel, string> {
    return this._pickerAsked;
  }

  get current(): ILarikSession | null {
    return this.of(this._tracker.currentWidget?.sessionContext.session?.kernel?.id);
  }

  of(kernelId: string | undefined): ILarikSession | null {
    return [...this._sessions].find(([kernel]) => kernel.id === kernelId)?.[1] ?? null;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    for (const session of this._sessions.values()) {
      session.dispose();
    }
    this._sessions.clear();
    Signal.clearData(this);
  }

  private _follow(panel: NotebookPanel): void {
    const context = panel.sessionContext;
    this._listen(context.session?.kernel ?? null);
    context.kernelChanged.connect((_, change) => this._listen(change.newValue), this);
  }

  private _listen(kernel: Kernel.IKernelConnection | null): void {
    if (kernel && !this._sessions.has(kernel)) {
      const session = new LarikSession(kernel, this._editorOf(kernel.id));
      this._sessions.set(kernel, session);
      kernel.disposed.connect(() => this._sessions.delete(kernel), this);
      session.changed.connect(() => this._statusChanged.emit(), this);
      session.pickerAsked.connect(() => this._pickerAsked.emit(kernel.id), this);
      session.greet().catch((reason: unknown) => {
        // A kernel that restarts or ends drops the question; there is nothing to show then.
        console.debug('larik-nb: the kernel gave no comm list', reason);
      });
    }
    this._statusChanged.emit();
  }

  private _isDisposed = false;
  private readonly _pickerAsked = new Signal<ILarikKernel, string>(this);
  private readonly _sessions = new Map<Kernel.IKernelConnection, LarikSession>();
  private readonly _statusChanged = new Signal<ILarikKernel, void>(this);
}
