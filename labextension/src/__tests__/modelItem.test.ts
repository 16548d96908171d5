import { Signal } from '@lumino/signaling';
import { describe, expect, it } from 'vitest';
import { ILarikKernel, IStatus } from '../tokens';
import { budgetLevel, itemText, itemTitle, ModelItem, usd } from '../widgets/modelItem';
import { trans } from './fakes';

function status(changes: Partial<IStatus> = {}): IStatus {
  return { model: 'scripted/demo', sessionUsd: 0.21, budgetUsd: null, warnUsd: null, running: false, ...changes };
}

describe('itemText', () => {
  it.each<[string, Partial<IStatus>]>([
    ['demo · $0.21', {}],
    ['demo · $0.21/2.00', { budgetUsd: 2 }],
    ['● demo · $0.21', { running: true }],
    ['demo', { sessionUsd: null }],
    ['demo', { sessionUsd: null, budgetUsd: 2 }],
    ['no model', { model: null, sessionUsd: null }],
    ['deep · $0', { model: 'scripted/with/slashes/deep', sessionUsd: 0 }],
    ['demo · $1.70/2.00 · near the budget', { sessionUsd: 1.7, budgetUsd: 2, warnUsd: 1.6 }],
    ['demo · $2.00/2.00 · budget reached', { sessionUsd: 2, budgetUsd: 2, warnUsd: 1.6 }]
  ])('reads %s', (text, changes) => {
    expect(itemText(status(changes), trans)).toBe(text);
  });
});

describe('usd', () => {
  it.each([
    [0, '0'],
    [0.0004, '<0.001'],
    [0.004, '0.004'],
    [0.0994, '0.099'],
    [0.0996, '0.10'],
    [12.5, '12.50']
  ])('writes %d as %s', (amount, text) => {
    expect(usd(amount)).toBe(text);
  });
});

describe('budgetLevel', () => {
  it('warns at the limit, not before', () => {
    expect(budgetLevel(status({ sessionUsd: 1.59, budgetUsd: 2, warnUsd: 1.6 }))).toBe('ok');
    expect(budgetLevel(status({ sessionUsd: 1.6, budgetUsd: 2, warnUsd: 1.6 }))).toBe('warning');
  });

  it('stops a budget of nothing at once', () => {
    expect(budgetLevel(status({ sessionUsd: 0, budgetUsd: 0 }))).toBe('stop');
  });

  it('does not guess while the cost is unknown', () => {
    expect(budgetLevel(status({ sessionUsd: null, budgetUsd: 0 }))).toBe('ok');
  });
});

describe('itemTitle', () => {
  it('names the provider and what is unknown', () => {
    expect(itemTitle(status({ sessionUsd: null }), trans)).toBe(
      'Larik: scripted/demo\nSpent in this session: unknown'
    );
  });

  it('tells the budget and that a turn runs', () => {
    expect(itemTitle(status({ budgetUsd: 2, running: true }), trans)).toBe(
      'Larik: scripted/demo\nSpent in this session: $0.21\nBudget: $2.00\nA turn is under way'
    );
  });
});

class FakeLarik implements ILarikKernel {
  readonly statusChanged = new Signal<this, void>(this);
  status: IStatus | null = null;

  set(next: IStatus | null): void {
    this.status = next;
    this.statusChanged.emit();
  }
}

describe('ModelItem', () => {
  it('is empty until the kernel speaks and again when it has gone', () => {
    const kernel = new FakeLarik();
    const item = new ModelItem(kernel, trans);
    expect(item.node.textContent).toBe('');

    kernel.set(status({ budgetUsd: 0.2 }));
    expect(item.node.textContent).toBe('demo · $0.21/0.20 · budget reached');
    expect(item.node.dataset.level).toBe('stop');

    kernel.set(null);
    expect(item.node.textContent).toBe('');
    expect(item.node.title).toBe('');
    expect(item.node.dataset.level).toBe('ok');
  });

  it('hears nothing after it is disposed', () => {
    const kernel = new FakeLarik();
    const item = new ModelItem(kernel, trans);

    item.dispose();
    kernel.set(status());
    expect(item.node.textContent).toBe('');
  });
});
