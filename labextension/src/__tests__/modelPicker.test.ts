import { beforeAll, describe, expect, it, vi } from 'vitest';
import { IModelRow } from '../protocol';
import { details, matches, ModelPicker } from '../widgets/modelPicker';
import { trans } from './fakes';

function row(changes: Partial<IModelRow> = {}): IModelRow {
  return {
    spec: 'cloud/big',
    window: '200k',
    price: '$2/$10',
    abilities: ['vision', 'tools'],
    state: 'ok',
    ready: true,
    ends: '',
    ...changes
  };
}

describe('details', () => {
  it.each<[string, Partial<IModelRow>]>([
    ['200k · $2/$10 · vision tools', {}],
    ['price unknown · until 2027-01-01', { window: '', price: 'price unknown', abilities: [], ends: '2027-01-01' }],
    ['200k · $2/$10 · vision tools · no key', { ready: false, state: 'no key' }]
  ])('reads %s', (text, changes) => {
    expect(details(row(changes), trans)).toBe(text);
  });
});

describe('matches', () => {
  it.each<[string, boolean]>([
    ['', true],
    ['BIG', true],
    ['tools cloud', true],
    ['tools small', false]
  ])('%j: %s', (search, expected) => {
    expect(matches('cloud/big vision tools', search)).toBe(expected);
  });
});

describe('ModelPicker', () => {
  beforeAll(() => {
    // jsdom has no layout, hence nothing to scroll.
    Element.prototype.scrollIntoView = () => undefined;
  });

  const ROWS = [row(), row({ spec: 'cloud/small' }), row({ spec: 'local/tiny', abilities: [] })];

  function make(current: string | null = 'cloud/small'): [ModelPicker, HTMLInputElement, () => void] {
    const take = vi.fn();
    const picker = new ModelPicker(current, trans, take);
    const input = picker.node.querySelector('input') as HTMLInputElement;
    return [picker, input, take];
  }

  const press = (input: HTMLInputElement, key: string): boolean =>
    input.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }));

  const type = (input: HTMLInputElement, text: string): void => {
    input.value = text;
    input.dispatchEvent(new Event('input'));
  };

  const note = (picker: ModelPicker): string => picker.node.querySelector('[role=status]')?.textContent ?? '';

  it('has nothing to choose until the models are there', () => {
    const [picker, input] = make();
    press(input, 'ArrowDown');
    expect(picker.getValue()).toBeNull();
    expect(note(picker)).toBe('Asking the providers for their models…');
    picker.fail('the kernel has gone');
    expect(note(picker)).toBe('the kernel has gone');
  });

  it('begins at the current model and goes round with the arrows', () => {
    const [picker, input] = make();
    picker.fill({ models: ROWS, problem: '', asking: false });
    expect(picker.getValue()).toBe('cloud/small');
    expect(press(input, 'ArrowDown')).toBe(false);
    expect(picker.getValue()).toBe('local/tiny');
    press(input, 'ArrowDown');
    expect(picker.getValue()).toBe('cloud/big');
    press(input, 'ArrowUp');
    expect(picker.getValue()).toBe('local/tiny');
    expect(press(input, 'x')).toBe(true);
  });

  it('tells assistive technology which one is active', () => {
    const [picker, input] = make();
    picker.fill({ models: ROWS, problem: '', asking: false });
    const active = picker.node.querySelectorAll('[aria-selected=true]');
    expect(active).toHaveLength(1);
    expect(active[0]?.id).toBe(input.getAttribute('aria-activedescendant'));
  });

  it('keeps the active one while it matches, else takes the first that does', () => {
    const [picker, input] = make();
    picker.fill({ models: ROWS, problem: 'gemini: no key', asking: false });
    type(input, 'cloud');
    expect(picker.getValue()).toBe('cloud/small');
    expect(note(picker)).toBe('2 models · gemini: no key');
    type(input, 'local');
    expect(picker.getValue()).toBe('local/tiny');
    expect(note(picker)).toBe('1 model · gemini: no key');
    type(input, 'nothing');
    expect(picker.getValue()).toBeNull();
    expect(note(picker)).toBe('No model matches · gemini: no key');
  });

  it('stays where the user is when the list grows', () => {
    const [picker, input] = make();
    picker.fill({ models: ROWS, problem: '', asking: true });
    expect(note(picker)).toBe('3 models · asking the providers for more…');
    press(input, 'ArrowDown');
    picker.fill({ models: [row({ spec: 'new/first' }), ...ROWS], problem: '', asking: false });
    expect(picker.getValue()).toBe('local/tiny');
    expect(note(picker)).toBe('4 models');
  });

  it('takes a row that is clicked', () => {
    const [picker, , take] = make();
    picker.fill({ models: ROWS, problem: '', asking: false });
    picker.node.querySelectorAll<HTMLElement>('[role=option]')[2]?.click();
    expect(picker.getValue()).toBe('local/tiny');
    expect(take).toHaveBeenCalledTimes(1);
  });

  it('shows names as text, whatever is in them', () => {
    const [picker] = make(null);
    picker.fill({ models: [row({ spec: 'x/<img src=y onerror=z>' })], problem: '', asking: false });
    expect(picker.node.querySelector('img')).toBeNull();
    expect(picker.node.textContent).toContain('x/<img src=y onerror=z>');
  });
});
