import { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SlicedTypesetter, nextFrame, sliced } from '../slices';

/** Typesets by taking the dollars away; each call takes 10 ms of a clock that nothing else moves. */
class FakeTypesetter implements IRenderMime.ILatexTypesetter {
  readonly calls: HTMLElement[] = [];
  time = 0;

  typeset(element: HTMLElement): Promise<void> {
    this.calls.push(element);
    this.time += 10;
    const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      walk.currentNode.nodeValue = (walk.currentNode.nodeValue ?? '').replace(/\$/g, '');
    }
    return Promise.resolve();
  }
}

function shown(html: string): HTMLElement {
  const area = document.body.appendChild(document.createElement('div'));
  const host = area.appendChild(document.createElement('div'));
  area.className = 'jp-OutputArea';
  host.innerHTML = html;
  return host;
}

const many = (html: string): string => `${html}\n`.repeat(13);
const MANY = '<p>then $x$ and <em>so</em> $y$</p>'.repeat(12); // two in each: what counts is formulas, not dollars

function typesetter(drawn: () => Promise<void> = () => Promise.resolve()) {
  const inner = new FakeTypesetter();
  const frame = vi.fn(drawn);
  return { inner, frame, outer: new SlicedTypesetter(inner, frame, () => inner.time) };
}

const tags = (calls: HTMLElement[]): string[] => calls.map(element => element.tagName.toLowerCase());

afterEach(() => {
  document.body.replaceChildren();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('formulas of a long output', () => {
  it('are typeset one paragraph after the other, with frames between', async () => {
    const { inner, frame, outer } = typesetter();
    const host = shown(`<p>no formula</p>${MANY}<pre><code>x = 1</code></pre>`);
    await outer.typeset(host);
    expect(tags(inner.calls)).toEqual(Array(12).fill('p'));
    expect(host.textContent).not.toContain('$');
    expect(frame).toHaveBeenCalledTimes(4); // one first, then after each 30 ms but the last
  });

  it.each([
    ['a table', `<table><tbody>${many('<tr><td>$a$</td><td>b</td></tr>')}</tbody></table>`, Array(13).fill('tr')],
    ['a list', `<ul>${many('<li>$a$</li>')}</ul>`, Array(13).fill('li')],
    ['few in a list', '<ol><li>$a$</li><li>$b$</li></ol>', ['ol']],
    ['an item with text of its own', `<ul><li>$a$<ul>${many('<li>$b$</li>')}</ul></li></ul>`, ['li']],
    ['a quotation', `<blockquote>${many('<h2>$a$</h2>')}</blockquote>`, Array(13).fill('h2')],
    ['a fold', `<details><summary>$a$</summary>${many('<p>\\(b\\)</p>')}</details>`, ['summary', ...Array(13).fill('p')]],
    ['text to be left out', `<div class="mathjax_ignore">${many('<p>$a$</p>')}</div>`, ['div']]
  ])('are found in %s', async (_, html, found) => {
    const { inner, outer } = typesetter();
    await outer.typeset(shown(`${MANY}${html}<p>no formula</p>`));
    expect(tags(inner.calls)).toEqual([...Array(12).fill('p'), ...found]);
  });

  it('are found in the text of the output itself', async () => {
    const { inner, outer } = typesetter();
    const host = shown(`\\begin{align}a\\end{align}${MANY}`);
    await outer.typeset(host);
    expect(inner.calls).toEqual([host]);
  });

  it('are typeset at once when they are few, refer to one another, or are no output\'s', async () => {
    const { inner, frame, outer } = typesetter();
    const few = shown('<p>$x$</p>'.repeat(12));
    const plain = shown('<p>costs nothing</p>');
    const refers = shown(`${MANY}<p>by \\eqref{last} $z$</p>`);
    const cell = shown(MANY); // a markdown cell, no output
    document.body.append(cell);
    const all = [few, plain, refers, cell];
    await Promise.all(all.map(host => outer.typeset(host)));
    expect(inner.calls).toEqual(all);
    expect(frame).not.toHaveBeenCalled();
  });

  it.each([
    ['taken from the page', (host: HTMLElement) => host.remove()],
    ['drawn anew', (host: HTMLElement, outer: SlicedTypesetter) => void outer.typeset(host)]
  ])('are left alone once the output is %s', async (_, change) => {
    let go = (): void => undefined;
    const { inner, outer } = typesetter(() => new Promise(resolve => (go = resolve)));
    const host = shown(MANY);
    const first = outer.typeset(host);
    const goOn = go;
    change(host, outer);
    goOn();
    await first;
    expect(inner.calls).toEqual([]);
  });

  it('are all typeset when an output comes back to the page', async () => {
    const { inner, outer } = typesetter();
    const host = shown(MANY);
    const area = host.parentElement;
    const first = outer.typeset(host);
    host.remove();
    await first;
    area?.append(host);
    await outer.typeset(host);
    expect(inner.calls).toHaveLength(12);
    expect(host.textContent).not.toContain('$');
  });
});

describe('a page', () => {
  it('goes on after a frame, and in a while when it draws none', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let draw = (): void => undefined;
    vi.stubGlobal('requestAnimationFrame', (callback: () => void) => (draw = callback));
    const done = vi.fn();
    void nextFrame().then(done);
    draw();
    await vi.advanceTimersByTimeAsync(0);
    expect(done).toHaveBeenCalledTimes(1);

    void nextFrame().then(done);
    await vi.advanceTimersByTimeAsync(99);
    expect(done).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(done).toHaveBeenCalledTimes(2);
  });
});

describe('the registry', () => {
  const made: IRenderMime.IRendererOptions[] = [];
  const markdown = {
    safe: true,
    mimeTypes: ['text/markdown', 'text/x-other'],
    createRenderer: (options: IRenderMime.IRendererOptions) => (made.push(options), {} as IRenderMime.IRenderer)
  };

  function registry(factory: IRenderMime.IRendererFactory | undefined) {
    const added = vi.fn();
    const it = { getFactory: () => factory, getRank: () => 60, addFactory: added };
    sliced(it as unknown as IRenderMimeRegistry);
    return added;
  }

  it('keeps whoever draws markdown, in its place, with another typesetter', () => {
    const added = registry(markdown);
    const [factory, rank] = added.mock.calls[0] as [IRenderMime.IRendererFactory, number];
    expect(rank).toBe(60);
    expect(factory).toMatchObject({ safe: true, mimeTypes: ['text/markdown'] });

    const options = { mimeType: 'text/markdown', latexTypesetter: new FakeTypesetter() };
    factory.createRenderer(options as unknown as IRenderMime.IRendererOptions);
    expect(made.pop()).toEqual({ ...options, latexTypesetter: expect.any(SlicedTypesetter) as unknown });
  });

  it('is left as it is without a typesetter, and without markdown', () => {
    const [factory] = registry(markdown).mock.calls[0] as [IRenderMime.IRendererFactory];
    const options = { latexTypesetter: null } as unknown as IRenderMime.IRendererOptions;
    factory.createRenderer(options);
    expect(made.pop()).toBe(options);
    expect(registry(undefined)).not.toHaveBeenCalled();
  });
});
