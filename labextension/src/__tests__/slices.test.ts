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
  const host = document.createElement('div');
  host.innerHTML = html;
  document.body.append(host);
  return host;
}

const MANY = '<p>then $x$ and <em>so</em> $y$</p>'.repeat(12);

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

  it('are found wherever markdown puts them, in the order of the text', async () => {
    const { inner, outer } = typesetter();
    const cell = '<table><tbody><tr><td>$a$</td><td>b</td></tr></tbody></table>';
    const list = '<ul><li>$c$<ul><li>$d$</li></ul></li><li><p>\\(e\\)</p></li></ul>';
    const block = '<blockquote><h2>$f$</h2></blockquote><details><summary>$g$</summary></details>';
    const host = shown(`${cell}${list}${block}\\begin{align}h\\end{align}<p>none</p>`);
    const few = shown(`${cell}${list}${block}${MANY}`);
    await outer.typeset(few);
    expect(tags(inner.calls).slice(0, 5)).toEqual(['td', 'li', 'p', 'h2', 'summary']);
    expect(inner.calls[1]?.textContent).toBe('cd'); // an item with text of its own is a part as a whole
    expect(few.textContent).not.toContain('$');

    inner.calls.length = 0;
    host.insertAdjacentHTML('beforeend', MANY);
    await outer.typeset(host);
    expect(inner.calls).toEqual([host]); // text of the output itself is nobody else's
  });

  it('are typeset at once when they are few, as are references to one another', async () => {
    const { inner, frame, outer } = typesetter();
    const few = shown('<p>$x$</p>'.repeat(12));
    const plain = shown('<p>costs nothing</p>');
    const refers = shown(`${MANY}<p>by \\eqref{last} $z$</p>`);
    await Promise.all([few, plain, refers].map(host => outer.typeset(host)));
    expect(inner.calls).toEqual([few, plain, refers]);
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
    const first = outer.typeset(host);
    host.remove();
    await first;
    document.body.append(host);
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
