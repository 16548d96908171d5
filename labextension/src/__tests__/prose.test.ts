import { StringStream } from '@codemirror/language';
import { Text } from '@codemirror/state';
import { describe, expect, it } from 'vitest';
import { isProse } from '../prose/highlight';
import { next, start } from '../prose/scan';

/** The pieces of a cell that are not plain, `kind:text`; neighbours of one kind are joined. */
function pieces(cell: string): string[] {
  const found: [string | null, string][] = [];
  const state = start();
  for (const line of cell.split('\n')) {
    const stream = new StringStream(line, 4, 2);
    found.push([null, '']);
    while (!stream.eol()) {
      const from = stream.pos;
      const kind = next(stream, state);
      expect(stream.pos).toBeGreaterThan(from);
      const last = found[found.length - 1];
      const text = line.slice(from, stream.pos);
      if (last && last[0] === kind) {
        last[1] += text;
      } else {
        found.push([kind, text]);
      }
    }
  }
  return found.filter(([kind]) => kind !== null).map(([kind, text]) => `${kind}:${text}`);
}

const body = (text: string): string[] => pieces(`%%larik\n${text}`).slice(1);

describe('the magic line', () => {
  it.each<[string, string[]]>([
    ['%%larik', ['magic:%%larik']],
    ['%%larik -m fast --new', ['magic:%%larik', 'option:-m', 'value:fast', 'option:--new']],
    ['%%larik --effort=low', ['magic:%%larik', 'option:--effort', 'value:low']],
    ['%%larik --system "be {kind}" -o x', ['magic:%%larik', 'option:--system', 'value:"be {kind}"', 'option:-o', 'value:x']],
    ['%larik what about {df} - really', ['magic:%larik', 'name:{df}']],
    ['%larik -m fast why -x', ['magic:%larik', 'option:-m', 'value:fast']]
  ])('%s', (line, expected) => {
    expect(pieces(line)).toEqual(expected);
  });
});

describe('names and files', () => {
  it.each<[string, string[]]>([
    ['{df}', ['name:{df}']],
    ['a{df}b', ['name:{df}']],
    ['{df!stats} {Out[3]!image} {df!} {!a}', ['name:{df!stats}', 'name:{Out[3]!image}']],
    ['{df.shape[0]} {row["a b"]} {größe}', ['name:{df.shape[0]}', 'name:{row["a b"]}', 'name:{größe}']],
    ['{{df}} {"a": 1} {a: 1} {df', []],
    ['see @data/sales.csv, @src/', ['file:@data/sales.csv', 'file:@src/']],
    ['(@a.py) @"my notes.md".', ['file:@a.py', 'file:@"my notes.md"']],
    ['me@home.org, @ five, a @', []]
  ])('%s', (line, expected) => {
    expect(body(line)).toEqual(expected);
  });
});

describe('markdown', () => {
  it.each<[string, string[]]>([
    ['# One *two*', ['mark:#', 'heading: One ', 'emphasis:*two*']],
    ['#tag and # no', []],
    ['- a **b c** d', ['mark:-', 'strong:**b c**']],
    ['  1. first', ['mark:1.']],
    ['> quoted _word_', ['quote:> ', 'emphasis:_word_']],
    ['---', ['mark:---']],
    ['snake_case_name, 2 * 3 * 4', []],
    ['`{df}` and ``a`b``', ['code:`{df}`', 'code:``a`b``']],
    ['a `left open', []],
    ['[text](https://x.org) https://y.org/a.', ['link:[text](https://x.org)', 'link:https://y.org/a.']],
    ["it's {df}'s", ['name:{df}']]
  ])('%s', (line, expected) => {
    expect(body(line)).toEqual(expected);
  });

  it('sees no markdown in a fenced block, and ends it at its own mark', () => {
    expect(body('```python\n# {df}\n~~~\n``\n```\n# after')).toEqual([
      'fence:```python',
      'code:# {df}',
      'code:~~~',
      'code:``',
      'fence:```',
      'mark:#',
      'heading: after'
    ]);
  });

  it('ends a heading with its line', () => {
    expect(body('# Head\nbody')).toEqual(['mark:#', 'heading: Head']);
  });

  it('gets to the end of long lines of marks that nothing closes', () => {
    for (const line of ['*'.repeat(10_000), '`'.repeat(10_000), '{a['.repeat(3_000), '['.repeat(10_000)]) {
      expect(body(line)).toBeDefined();
    }
  });
});

describe('isProse', () => {
  it.each<[string, boolean]>([
    ['%%larik\nhi', true],
    ['%%larik', true],
    ['\n\n  %%larik -m x\nhi', true],
    ['%larik hi', true],
    ['%larik hi\n\n', true],
    ['%larik hi\nx = 1', false],
    ['x = 1\n%%larik', false],
    ['%%larikx', false],
    ['%%time\n%larik hi', false],
    ['', false],
    ['# %%larik', false]
  ])('%j: %s', (text, expected) => {
    expect(isProse(Text.of(text.split('\n')))).toBe(expected);
  });
});
