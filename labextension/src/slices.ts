import { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';

const MARKDOWN = 'text/markdown';

/** Formulas up to which an output, or a part of one, is typeset at once, in a few dozen ms: less than anybody notices. */
const FEW = 12;

/** How long one slice takes, in ms, and the paragraph that it ends with. */
const SLICE_MS = 30;

/** How long a page that is not drawn, in a hidden tab for one, waits for its next frame, in ms. */
const UNDRAWN_MS = 100;

/** What only holds other elements. Any other, a paragraph say, is typeset as a whole. */
const HOLDERS = new Set(
  ['ARTICLE', 'BLOCKQUOTE', 'DD', 'DETAILS', 'DIV', 'DL', 'DT', 'LI', 'OL', 'SECTION', 'UL'].concat(
    ['TABLE', 'TBODY', 'TD', 'TFOOT', 'TH', 'THEAD', 'TR']
  )
);

const TEX = /[$\\]/;
const FORMULA = /\$\$?[^$]*\$\$?|\\[([]|\\begin\{/g;

// Where MathJax is told to leave out what is inside, it has to see that it is inside.
const TOLD = /mathjax_/;

// A reference finds an equation further down only when both are typeset together.
const REFERENCE = /\\(?:eq)?ref\{/;

/**
 * Lets the registry's markdown typeset its formulas in slices. Whoever draws it, JupyterLab or another extension,
 * goes on to do so: only the typesetter that it is given differs.
 */
export function sliced(registry: IRenderMimeRegistry): void {
  const factory = registry.getFactory(MARKDOWN);
  if (!factory) {
    return;
  }
  const createRenderer = (options: IRenderMime.IRendererOptions): IRenderMime.IRenderer => {
    const { latexTypesetter: inner } = options;
    return factory.createRenderer(inner ? { ...options, latexTypesetter: new SlicedTypesetter(inner) } : options);
  };
  registry.addFactory({ safe: factory.safe, mimeTypes: [MARKDOWN], createRenderer }, registry.getRank(MARKDOWN));
}

/** Typesets the formulas of a long output in slices, the page's frames between them, and all others at once. */
export class SlicedTypesetter implements IRenderMime.ILatexTypesetter {
  /**
   * @param inner typesets one slice.
   * @param drawn resolves when the page has drawn its next frame.
   * @param now the time, in ms.
   */
  constructor(
    private inner: IRenderMime.ILatexTypesetter,
    private drawn: () => Promise<void> = nextFrame,
    private now: () => number = () => performance.now()
  ) {}

  /** Typesets all formulas in `host`; a later call for the same element, or taking it from the page, ends an earlier one. */
  async typeset(host: HTMLElement): Promise<void> {
    const run = {};
    this.runs.set(host, run);
    if (!isLong(host)) {
      return this.inner.typeset(host);
    }
    const isCurrent = (): boolean => this.runs.get(host) === run && host.isConnected;
    await this.drawn(); // the text is laid out by then, so that no formula waits for that as well
    let until = this.now() + SLICE_MS;
    for (const part of parts(host)) {
      if (this.now() >= until) {
        await this.drawn();
        until = this.now() + SLICE_MS;
      }
      if (!isCurrent()) {
        return;
      }
      await this.inner.typeset(part);
    }
  }

  private runs = new WeakMap<HTMLElement, object>();
}

/** Whether it is an output whose formulas would be felt if they were typeset at once, and may be typeset one by one. */
function isLong(host: HTMLElement): boolean {
  return hasMany(host) && host.closest('.jp-OutputArea') !== null && !REFERENCE.test(host.textContent ?? '');
}

function hasMany(element: Element): boolean {
  return (element.textContent?.match(FORMULA)?.length ?? 0) > FEW;
}

/** Small elements, in order, that hold all formulas between them: no formula reaches from one into another. */
function parts(element: HTMLElement): HTMLElement[] {
  if (!TEX.test(element.textContent ?? '')) {
    return [];
  }
  return hasMany(element) && holds(element) ? ([...element.children] as HTMLElement[]).flatMap(parts) : [element];
}

/** Whether all its formulas are those of the elements in it. */
function holds(element: HTMLElement): boolean {
  return HOLDERS.has(element.tagName) && !TOLD.test(element.className) && ![...element.childNodes].some(isTex);
}

function isTex(node: Node): boolean {
  return node.nodeType === Node.TEXT_NODE && TEX.test(node.nodeValue ?? '');
}

/** Resolves once the next frame is drawn, or soon in a page that is not. */
export function nextFrame(): Promise<void> {
  return new Promise(resolve => {
    const late = setTimeout(resolve, UNDRAWN_MS);
    requestAnimationFrame(() => {
      clearTimeout(late);
      setTimeout(resolve);
    });
  });
}
