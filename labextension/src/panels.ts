import { ICodeCellModel } from '@jupyterlab/cells';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel, KernelMessage } from '@jupyterlab/services';
import { JSONObject, JSONValue } from '@lumino/coreutils';

const VIEW = 'application/vnd.jupyter.widget-view+json';
const WIDGETS = 'jupyter.widget';
const RESTARTS: readonly Kernel.Status[] = ['restarting', 'autorestarting'];

type Output = ReturnType<ReturnType<ICodeCellModel['outputs']['get']>['toJSON']>;

/** Says of an output of ours, which shows a widget: what becomes of it. */
type Fate = (place: string, model: string) => Output | 'text' | 'stays';

/** A widget of ours in an output: the output's display id, and the id of the widget's model. */
interface IShown {
  readonly place: string;
  readonly model: string;
}

/**
 * Keeps the notebooks free of widgets of ours that are no more.
 *
 * An output with a widget has the same as text beside it. JupyterLab shows the widget, and an error where the kernel
 * that had it is gone; so the widget is taken out of such an output, and the text is seen. The kernel's own end for a
 * widget reaches only the page that ran the cell, as it was then; here other pages, and that one loaded anew, follow.
 */
export class Panels {
  /** @param tracker The open notebooks. */
  constructor(tracker: INotebookTracker) {
    tracker.forEach(panel => new Follower(panel));
    tracker.widgetAdded.connect((_, panel) => void new Follower(panel));
  }
}

/** Does it for one notebook, as long as that is open. */
class Follower {
  constructor(private readonly _panel: NotebookPanel) {
    const session = _panel.sessionContext;
    session.kernelChanged.connect(this._onKernel, this);
    session.statusChanged.connect(this._onStatus, this);
    session.iopubMessage.connect(this._onMessage, this);
    void Promise.all([_panel.context.ready, session.ready]).then(() => {
      this._isReady = true;
      this._look();
    });
  }

  private _onKernel(): void {
    this._isDue = true;
    this._look();
  }

  private _onStatus(_: unknown, status: Kernel.Status): void {
    this._isDue ||= RESTARTS.includes(status) || status === 'dead';
    this._look();
  }

  private _onMessage(_: unknown, message: KernelMessage.IMessage): void {
    const content = message.content as JSONObject;
    switch (message.header.msg_type) {
      case 'update_display_data': {
        const id = (content.transient as JSONObject | undefined)?.display_id;
        const { data, metadata } = content as { data: JSONObject; metadata: JSONObject };
        const output = { output_type: 'display_data', data, metadata } as Output;
        return this._change(place => (place === id ? output : 'stays'));
      }
      case 'comm_close':
        return this._change((_place, model) => (model === content.comm_id ? 'text' : 'stays'));
    }
  }

  /** Take out what the kernel does not have, once it can be asked; without a kernel, all. */
  private _look(): void {
    const kernel = this._panel.sessionContext.session?.kernel ?? null;
    if (!this._isReady || !this._isDue) {
      return;
    }
    if (kernel === null || kernel.status === 'dead') {
      this._isDue = false;
      this._change(() => 'text');
    } else if (kernel.status === 'idle') {
      this._isDue = false;
      void this._ask(kernel);
    }
  }

  private async _ask(kernel: Kernel.IKernelConnection): Promise<void> {
    const asked = new Set(this._shown().map(({ model }) => model)); // what is shown from now on is there
    if (!asked.size) {
      return;
    }
    try {
      const { content } = await kernel.requestCommInfo({ target_name: WIDGETS });
      if (content.status === 'ok') {
        const { comms } = content;
        this._change((_, model) => (asked.has(model) && !(model in comms) ? 'text' : 'stays'));
      }
    } catch (reason) {
      this._isDue = true; // it restarts or ends, and its status will say so
      console.debug('larik-nb: the kernel gave no list of its widgets', reason);
    }
  }

  private _shown(): IShown[] {
    return this._cells().flatMap(({ outputs }) =>
      Array.from({ length: outputs.length }, (_, index) => shown(outputs.get(index).toJSON())).filter(
        (found): found is IShown => found !== null
      )
    );
  }

  private _change(fate: Fate): void {
    for (const { outputs } of this._cells()) {
      for (let index = 0; index < outputs.length; index++) {
        const output = outputs.get(index).toJSON();
        const found = shown(output);
        const next = found ? fate(found.place, found.model) : 'stays';
        if (next !== 'stays') {
          outputs.set(index, next === 'text' ? asText(output) : next);
        }
      }
    }
  }

  private _cells(): ICodeCellModel[] {
    const cells = [...(this._panel.content.model?.cells ?? [])];
    return cells.filter((cell): cell is ICodeCellModel => cell.type === 'code');
  }

  private _isDue = true;
  private _isReady = false;
}

/** Read which widget of ours an output shows; null for every other output. */
function shown(output: Output): IShown | null {
  const { data, metadata } = output as { data?: JSONObject; metadata?: JSONObject };
  const model = member(data?.[VIEW], 'model_id');
  const place = member(metadata?.larik, 'panel');
  return model !== null && place !== null ? { place, model } : null;
}

function member(value: JSONValue | undefined, name: string): string | null {
  const found = value && typeof value === 'object' && !Array.isArray(value) ? value[name] : null;
  return typeof found === 'string' ? found : null;
}

function asText(output: Output): Output {
  const { data, metadata } = output as { data: JSONObject; metadata: JSONObject };
  const { [VIEW]: _view, ...text } = data;
  const { larik: _mark, ...rest } = metadata;
  return { ...output, data: text, metadata: rest } as Output;
}
