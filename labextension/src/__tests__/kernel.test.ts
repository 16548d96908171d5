import { INotebookTracker } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import { describe, expect, it, vi } from 'vitest';
import { KernelStatus, LarikKernel, parseStatus, TARGET } from '../kernel';
import { FakeKernel, message } from './fakes';

describe('parseStatus', () => {
  it('reads every field', () => {
    expect(parseStatus(message())).toEqual({
      model: 'scripted/demo',
      sessionUsd: 0.21,
      budgetUsd: 2,
      warnUsd: 1.6,
      running: false
    });
  });

  it('takes a missing warning limit as none', () => {
    expect(parseStatus({ version: 1, model: null, session_usd: null, budget_usd: null, running: true })).toEqual({
      model: null,
      sessionUsd: null,
      budgetUsd: null,
      warnUsd: null,
      running: true
    });
  });

  it.each([
    ['another version', message({ version: 2 })],
    ['no version', message({ version: undefined })],
    ['a model that is no text', message({ model: 7 })],
    ['a missing model', message({ model: undefined })],
    ['a cost that is no number', message({ session_usd: '0.21' })],
    ['a negative cost', message({ session_usd: -1 })],
    ['an endless budget', message({ budget_usd: Infinity })],
    ['running that is no truth value', message({ running: 1 })],
    ['a list', [1]],
    ['nothing', null],
    ['text', 'scripted/demo']
  ])('refuses %s', (_, data) => {
    expect(parseStatus(data)).toBeNull();
  });
});

describe('KernelStatus', () => {
  it('shows what a comm opens with and what it says later', () => {
    const kernel = new FakeKernel();
    const status = new KernelStatus(kernel.asKernel);
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
    const status = new KernelStatus(kernel.asKernel);
    const old = kernel.open(TARGET, message());
    const current = kernel.open(TARGET, message({ model: 'scripted/next' }));

    old.onClose();
    expect(status.status?.model).toBe('scripted/next');

    current.onClose();
    expect(status.status).toBeNull();
  });

  it.each(['restarting', 'autorestarting', 'dead'] as const)('forgets when the kernel is %s', state => {
    const kernel = new FakeKernel();
    const status = new KernelStatus(kernel.asKernel);
    kernel.open(TARGET, message());

    kernel.statusChanged.emit('busy');
    expect(status.status).not.toBeNull();

    kernel.statusChanged.emit(state);
    expect(status.status).toBeNull();
  });

  it('asks a kernel whose comm was open before the page', async () => {
    const kernel = new FakeKernel({ abc: { target_name: TARGET } });
    const status = new KernelStatus(kernel.asKernel);

    await status.ask();
    const comm = kernel.made.get('abc');
    expect(comm?.sent).toEqual([{ version: 1, request: 'status' }]);

    comm?.say(message());
    expect(status.status?.model).toBe('scripted/demo');
  });

  it('leaves its target when disposed', () => {
    const kernel = new FakeKernel();
    const status = new KernelStatus(kernel.asKernel);

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
    const [left, right] = [new FakeKernel(), new FakeKernel()];
    const [first, second] = [new FakePanel(left), new FakePanel(right)];
    const tracker = new FakeTracker([first]);
    const larik = new LarikKernel(tracker.asTracker);
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
    const larik = new LarikKernel(tracker.asTracker);
    const seen = vi.fn();
    larik.statusChanged.connect(seen);

    tracker.show(panel);
    expect(seen).toHaveBeenCalledTimes(1);
  });

  it('listens to the kernel a notebook changes to', () => {
    const tracker = new FakeTracker();
    const larik = new LarikKernel(tracker.asTracker);
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
    const larik = new LarikKernel(tracker.asTracker);
    tracker.show(panel);
    kernel.open(TARGET, message());
    expect(larik.status).not.toBeNull();

    kernel.dispose();
    expect(larik.status).toBeNull();
  });
});
