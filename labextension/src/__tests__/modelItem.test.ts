import { Signal } from '@lumino/signaling';
import { describe, expect, it, vi } from 'vitest';
import { ILarikKernel, ILarikSession, IStatus } from '../tokens';
import { itemText, itemTitle, ModelItem, usd } from '../widgets/modelItem';
import { trans } from './fakes';

function status(changes: Partial<IStatus> = {}): IStatus {
  return {
    model: 'scripted/demo',
    sessionUsd: 0.21,
    atLeast: false,
    budgetUsd: null,
    level: 'ok',
    running: false,
    ...changes
  };
}

describe('itemText', () => {
  it.each<[string, Partial<IStatus>]>([
    ['demo · $0.21', {}],
    ['demo · $0.21/2.00', { budgetUsd: 2 }],
    ['demo · $0.00/0.01', { sessionUsd: 0, budgetUsd: 0.01 }],
    ['demo · ≥ $0.21', { atLeast: true }],
    ['no model · $0.00', { model: null, sessionUsd: 0 }],
    ['deep · $0.00', { model: 'scripted/with/slashes/deep', sessionUsd: 0 }],
    ['demo · $1.70/2.00 · near the budget', { sessionUsd: 1.7, budgetUsd: 2, level: 'warn' }],
    ['demo · $2.00/2.00 · budget reached', { sessionUsd: 2, budgetUsd: 2, level: 'stop' }]
  ])('reads %s', (text, changes) => {
    expect(itemText(status(changes), trans)).toBe(text);
  });
});

describe('usd', () => {
  it.each([
    [0, '$0.00'],
    [0.000001, '< $0.00001'],
    [0.00042, '$0.00042'],
    [0.004, '$0.004'],
    [0.01, '$0.01'],
    [0.013, '$0.013'],
    [0.0994, '$0.099'],
    [12.5, '$12.50']
  ])('writes %d as %s', (amount, text) => {
    expect(usd(amount)).toBe(text);
  });
});

describe('itemTitle', () => {
  it('names the provider and what is unknown', () => {
    expect(itemTitle(status({ atLeast: true }), trans).split('\n')).toEqual([
      'Larik: scripted/demo',
      'Spent in this session: $0.21, and a part whose price is unknown',
      'No budget is set',
      'Click to choose a model'
    ]);
  });

  it('tells the budget, its end and that a turn runs', () => {
    expect(itemTitle(status({ budgetUsd: 0.2, level: 'stop', running: true }), trans).split('\n').slice(2)).toEqual([
      'Budget: $0.20',
      'The budget is reached: nothing more is sent',
      'A turn is under way',
      'Click to choose a model'
    ]);
  });
});

class FakeLarik implements ILarikKernel {
  readonly statusChanged: Signal<ILarikKernel, void> = new Signal<ILarikKernel, void>(this);
  readonly pickerAsked: Signal<ILarikKernel, string> = new Signal<ILarikKernel, string>(this);
  readonly current: ILarikSession | null = null;
  status: IStatus | null = null;

  of(): ILarikSession | null {
    return null;
  }

  set(next: IStatus | null): void {
    this.status = next;
    this.statusChanged.emit();
  }
}

describe('ModelItem', () => {
  const make = (): [FakeLarik, ModelItem, () => void] => {
    const kernel = new FakeLarik();
    const pick = vi.fn();
    return [kernel, new ModelItem(kernel, trans, pick), pick];
  };

  it('is empty until the kernel speaks and again when it has gone', () => {
    const [kernel, item] = make();
    const button = item.node.querySelector('button');
    expect(item.node.textContent).toBe('');
    expect(button?.disabled).toBe(true);

    kernel.set(status({ budgetUsd: 0.2, level: 'stop', running: true }));
    expect(item.node.textContent).toBe('demo · $0.21/0.20 · budget reached');
    expect(item.node.dataset).toMatchObject({ level: 'stop', running: 'true' });
    expect(button?.disabled).toBe(false);

    kernel.set(null);
    expect(item.node.textContent).toBe('');
    expect(button?.title).toBe('');
    expect(item.node.dataset).toMatchObject({ level: 'ok', running: 'false' });
  });

  it('opens the list of models when it is clicked', () => {
    const [kernel, item, pick] = make();
    kernel.set(status());
    item.node.querySelector('button')?.click();
    expect(pick).toHaveBeenCalledTimes(1);
  });

  it('hears nothing after it is disposed', () => {
    const [kernel, item] = make();
    item.dispose();
    kernel.set(status());
    expect(item.node.textContent).toBe('');
  });
});
