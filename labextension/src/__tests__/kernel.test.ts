import { INotebookTracker } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import { describe, expect, it, vi } from 'vitest';
import { LarikKernel, LarikSession } from '../kernel';
import { Cell, TARGET } from '../protocol';
import { IEditor } from '../tokens';
import { FakeKernel, message } from './fakes';

const HELLO = { type: 'hello', version: 2, abilities: ['insert', 'replace'] };

/** Keeps what it is asked, and answers with `reason`. */
class FakeEditor implements IEditor {
  readonly asked: unknown[][] = [];
  reason = '';

  insert(cellId: string | null, cells: readonly Cell[]): string {
    this.asked.push(['insert', cellId, cells]);
    return this.reason;
  }

  replace(cellId: string, digest: string, source: string): string {
    this.asked.push(['replace', cellId, digest, source]);
    return this.reason;
  }
}

function sessionOn(kernel: FakeKernel, editor = new FakeEditor()): LarikSession {
  return new LarikSession(kernel.asKernel, editor);
}


describe('LarikSession', () => {
  it('shows what a comm opens with and what it says later', () => {
    const kernel = new FakeKernel();
    const status = sessionOn(kernel);
    const seen = vi.fn();
    status.changed.connect(seen);

    const comm = kernel.open(TARGET, message({ running: true }));
    expect(status.status?.running).toBe(true);

    comm.say(message({ running: false, session_usd: 0.5 }));
    expect(status.status).toMatchObject({ running: false, sessionUsd: 0.5 });
    expect(seen).toHaveBeenCalledTimes(2);
  });

  it('forgets when its comm closes, but not when an older one does', () => {
    const kernel = new FakeKernel();
    const status = sessionOn(kernel);
    const old = kernel.open(TARGET, message());
    const current = kernel.open(TARGET, message({ model: 'scripted/next' }));

    old.onClose();
    expect(status.status?.model).toBe('scripted/next');

    current.onClose();
    expect(status.status).toBeNull();
  });

  it.each(['restarting', 'autorestarting', 'dead'] as const)('forgets when the kernel is %s', state => {
    const kernel = new FakeKernel();
    const status = sessionOn(kernel);
    kernel.open(TARGET, message());

    kernel.statusChanged.emit('busy');
    expect(status.status).not.toBeNull();

    kernel.statusChanged.emit(state);
    expect(status.status).toBeNull();
  });

  it('asks a kernel whose comm was open before the page', async () => {
    const kernel = new FakeKernel({ abc: { target_name: TARGET } });
    const status = sessionOn(kernel);

    await status.greet();
    const comm = kernel.made.get('abc');
    expect(comm?.sent).toEqual([HELLO]);

    comm?.say(message());
    expect(status.status?.model).toBe('scripted/demo');
  });

  it('says what it can do to a kernel that opens', () => {
    const kernel = new FakeKernel();
    sessionOn(kernel);

    expect(kernel.open(TARGET, message()).sent).toEqual([HELLO]);
  });

  it('keeps what it knows when it hears what it cannot read', () => {
    const kernel = new FakeKernel();
    const session = sessionOn(kernel);
    const comm = kernel.open(TARGET, message());

    comm.say(message({ version: 3, model: 'scripted/other' }));
    comm.say({ type: 'surprise' });
    expect(session.status?.model).toBe('scripted/demo');
  });

  it('does what the kernel asks and says what became of it', () => {
    const kernel = new FakeKernel();
    const editor = new FakeEditor();
    sessionOn(kernel, editor);
    const comm = kernel.open(TARGET, message());
    const cells = [{ kind: 'code', source: 'x' }];

    comm.say({ type: 'insert', id: '1', cell_id: 'c', cells });
    editor.reason = 'the cell is gone';
    comm.say({ type: 'replace', id: '2', cell_id: 'c', digest: 'd', source: 's' });

    expect(editor.asked).toEqual([
      ['insert', 'c', cells],
      ['replace', 'c', 'd', 's']
    ]);
    expect(comm.sent.slice(1)).toEqual([
      { type: 'done', id: '1', ok: true, reason: '' },
      { type: 'done', id: '2', ok: false, reason: 'the cell is gone' }
    ]);
  });

  it('leaves to another window what that one asked for, but hears of the state', () => {
    const kernel = new FakeKernel();
    const editor = new FakeEditor();
    const session = sessionOn(kernel, editor);
    const picker = vi.fn();
    session.pickerAsked.connect(picker);
    const comm = kernel.open(TARGET, message());

    comm.say({ type: 'insert', id: '1', cell_id: 'c', cells: [] }, 'another page');
    comm.say({ type: 'open_picker' }, 'another page');
    comm.say(message({ running: true }), 'another page');

    expect(editor.asked).toEqual([]);
    expect(picker).not.toHaveBeenCalled();
    expect(comm.sent).toEqual([HELLO]);
    expect(session.status?.running).toBe(true);

    comm.say({ type: 'open_picker' });
    expect(picker).toHaveBeenCalledTimes(1);
  });

  it('asks for the models and chooses one', async () => {
    const kernel = new FakeKernel();
    const session = sessionOn(kernel);
    const comm = kernel.open(TARGET, message());

    const tell = vi.fn();
    session.models(tell, vi.fn());
    comm.say({ type: 'models', models: [], problem: '', asking: true });
    comm.say({ type: 'models', models: [], problem: 'none is set up', asking: false });
    expect(tell.mock.calls).toEqual([
      [{ models: [], problem: '', asking: true }],
      [{ models: [], problem: 'none is set up', asking: false }]
    ]);

    const chosen = session.choose('a/b');
    expect(comm.sent.slice(1)).toEqual([{ type: 'models' }, { type: 'choose', spec: 'a/b' }]);
    comm.say({ type: 'chosen', ok: true, text: 'a/b' });
    expect(await chosen).toEqual({ ok: true, text: 'a/b' });
  });

  it('does not wait for the answer of a kernel that is gone', async () => {
    const kernel = new FakeKernel();
    const session = sessionOn(kernel);
    kernel.open(TARGET, message());

    const fail = vi.fn();
    session.models(vi.fn(), fail);
    const chosen = session.choose('a/b');
    kernel.statusChanged.emit('dead');
    expect(fail).toHaveBeenCalledWith('the kernel has gone');
    await expect(chosen).rejects.toThrow('the kernel has gone');
  });

  it('leaves its target when disposed', () => {
    const kernel = new FakeKernel();
    const status = sessionOn(kernel);

    status.dispose();
    expect(kernel.targets.size).toBe(0);
    expect(status.isDisposed).toBe(true);
  });
});

/** A notebook panel and a tracker, reduced to what is followed. */
class FakePanel {
  readonly kernelChanged = new Signal<this, { newValue: unknown }>(this);
  readonly sessionContext: unknown;

  constructor(kernel: FakeKernel) {
    this.sessionContext = { session: { kernel }, kernelChanged: this.kernelChanged };
  }
}

class FakeTracker {
  readonly widgetAdded = new Signal<this, FakePanel>(this);
  readonly currentChanged = new Signal<this, unknown>(this);
  currentWidget: FakePanel | null = null;

  constructor(private readonly _panels: FakePanel[] = []) {}

  forEach(visit: (panel: FakePanel) => void): void {
    this._panels.forEach(visit);
  }

  show(panel: FakePanel): void {
    this.currentWidget = panel;
    this.currentChanged.emit(panel);
  }

  get asTracker(): INotebookTracker {
    return this as unknown as INotebookTracker;
  }
}

describe('LarikKernel', () => {
  it('shows the session of the notebook in front', () => {
    const [left, right] = [new FakeKernel({}, 'left'), new FakeKernel({}, 'right')];
    const [first, second] = [new FakePanel(left), new FakePanel(right)];
    const tracker = new FakeTracker([first]);
    const larik = new LarikKernel(tracker.asTracker, () => new FakeEditor());
    tracker.widgetAdded.emit(second);
    left.open(TARGET, message({ model: 'scripted/left' }));
    right.open(TARGET, message({ model: 'scripted/right' }));

    expect(larik.status).toBeNull();
    tracker.show(first);
    expect(larik.status?.model).toBe('scripted/left');
    tracker.show(second);
    expect(larik.status?.model).toBe('scripted/right');
  });

  it('says so when another notebook comes to the front', () => {
    const panel = new FakePanel(new FakeKernel());
    const tracker = new FakeTracker([panel]);
    const larik = new LarikKernel(tracker.asTracker, () => new FakeEditor());
    const seen = vi.fn();
    larik.statusChanged.connect(seen);

    tracker.show(panel);
    expect(seen).toHaveBeenCalledTimes(1);
  });

  it('listens to the kernel a notebook changes to', () => {
    const tracker = new FakeTracker();
    const larik = new LarikKernel(tracker.asTracker, () => new FakeEditor());
    const panel = new FakePanel(new FakeKernel());
    const next = new FakeKernel();
    tracker.widgetAdded.emit(panel);

    panel.kernelChanged.emit({ newValue: next });
    expect(next.targets.has(TARGET)).toBe(true);

    larik.dispose();
    expect(next.targets.has(TARGET)).toBe(false);
  });

  it('keeps nothing of a kernel that is gone', () => {
    const kernel = new FakeKernel();
    const panel = new FakePanel(kernel);
    const tracker = new FakeTracker([panel]);
    const larik = new LarikKernel(tracker.asTracker, () => new FakeEditor());
    tracker.show(panel);
    kernel.open(TARGET, message());
    expect(larik.status).not.toBeNull();

    kernel.dispose();
    expect(larik.status).toBeNull();
  });
});
