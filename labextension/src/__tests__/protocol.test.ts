import { JSONValue } from '@lumino/coreutils';
import { describe, expect, it } from 'vitest';
import { parse } from '../protocol';
import { message } from './fakes';

const INSERT = { type: 'insert', id: '1', cell_id: null, cells: [{ kind: 'markdown', source: '# x' }] };
const REPLACE = { type: 'replace', id: '2', cell_id: 'c', digest: 'd', source: 's' };
const ROW = { spec: 'a/b', window: '1M', price: '$2/$10', abilities: ['tools', 3], state: 'ok', ready: true };

describe('parse', () => {
  it('reads a state', () => {
    expect(parse(message({ at_least: true, level: 'warn' }))).toEqual({
      type: 'state',
      status: {
        model: 'scripted/demo',
        sessionUsd: 0.21,
        atLeast: true,
        budgetUsd: 2,
        level: 'warn',
        running: false
      }
    });
  });

  it('reads what is to be changed', () => {
    expect(parse(INSERT)).toEqual({
      type: 'insert',
      id: '1',
      cellId: null,
      cells: [{ kind: 'markdown', source: '# x' }]
    });
    expect(parse(REPLACE)).toEqual({ type: 'replace', id: '2', cellId: 'c', digest: 'd', source: 's' });
    expect(parse({ type: 'open_picker', more: 1 })).toEqual({ type: 'open_picker' });
  });

  it('reads the models it can, and leaves out the others', () => {
    expect(parse({ type: 'models', models: [ROW, { spec: 7 }, 'a/c', { spec: 'a/d' }], problem: 'p', asking: true })).toEqual({
      type: 'models',
      listed: {
        models: [
          { spec: 'a/b', window: '1M', price: '$2/$10', abilities: ['tools'], state: 'ok', ready: true, ends: '' },
          { spec: 'a/d', window: '', price: '', abilities: [], state: '', ready: false, ends: '' }
        ],
        problem: 'p',
        asking: true
      }
    });
  });

  it.each<[string, unknown]>([
    ['another version', message({ version: 1 })],
    ['no version', message({ version: undefined })],
    ['a model that is no text', message({ model: 7 })],
    ['a missing model', message({ model: undefined })],
    ['a cost that is no number', message({ session_usd: '0.21' })],
    ['an unknown cost', message({ session_usd: null })],
    ['a negative cost', message({ session_usd: -1 })],
    ['an endless budget', message({ budget_usd: Infinity })],
    ['a level that is none', message({ level: 'fine' })],
    ['running that is no truth value', message({ running: 1 })],
    ['cells that are none', { ...INSERT, cells: 'x' }],
    ['one cell of a strange kind', { ...INSERT, cells: [...INSERT.cells, { kind: 'raw', source: '' }] }],
    ['an insert without a number', { ...INSERT, id: 1 }],
    ['a replacement of nothing', { ...REPLACE, cell_id: null }],
    ['a replacement of any text', { ...REPLACE, digest: undefined }],
    ['a list', [1]],
    ['nothing', null],
    ['text', 'scripted/demo']
  ])('refuses %s', (_, data) => {
    expect(parse(data as JSONValue)).toBeNull();
  });
});
