/**
 * SHA-256, since the browser's own is there on secure pages only, and answers too late to change a cell in one step.
 *
 * Source: FIPS 180-4, sections 4.1.2, 5.1.1 and 6.2.2.
 */

/** The first 32 bits of the fractional parts of a root of the first primes. */
function roots(count: number, power: number): Uint32Array {
  const found = new Uint32Array(count);
  for (let n = 2, at = 0; at < count; n += 1) {
    if (isPrime(n)) {
      const root = Math.pow(n, power);
      found[at] = (root - Math.floor(root)) * 0x100000000;
      at += 1;
    }
  }
  return found;
}

function isPrime(n: number): boolean {
  for (let d = 2; d * d <= n; d += 1) {
    if (n % d === 0) {
      return false;
    }
  }
  return true;
}

const ROUND = roots(64, 1 / 3);
const START = roots(8, 1 / 2);

/** The digest of a text's UTF-8, in hex. */
export function sha256(text: string): string {
  const blocks = padded(new TextEncoder().encode(text));
  const hash = Uint32Array.from(START);
  const words = new Uint32Array(64);
  for (let at = 0; at < blocks.byteLength; at += 64) {
    for (let i = 0; i < 16; i += 1) {
      words[i] = blocks.getUint32(at + 4 * i);
    }
    compress(hash, words);
  }
  return Array.from(hash, word => word.toString(16).padStart(8, '0')).join('');
}

function padded(bytes: Uint8Array): DataView {
  const length = (((bytes.length + 8) >> 6) + 1) << 6;
  const whole = new Uint8Array(length);
  whole.set(bytes);
  whole[bytes.length] = 0x80;
  const view = new DataView(whole.buffer);
  view.setUint32(length - 8, Math.floor(bytes.length / 0x20000000));
  view.setUint32(length - 4, bytes.length << 3);
  return view;
}

function compress(hash: Uint32Array, words: Uint32Array): void {
  for (let i = 16; i < 64; i += 1) {
    words[i] = spread1(word(words, i - 2)) + word(words, i - 7) + spread0(word(words, i - 15)) + word(words, i - 16);
  }
  let [a, b, c, d, e, f, g, h] = hash as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i += 1) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + word(ROUND, i) + word(words, i)) | 0;
    const second = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((value, i) => {
    hash[i] = word(hash, i) + value;
  });
}

function spread0(x: number): number {
  return turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
}

function spread1(x: number): number {
  return turn(x, 17) ^ turn(x, 19) ^ (x >>> 10);
}

function turn(x: number, by: number): number {
  return (x >>> by) | (x << (32 - by));
}

function word(words: Uint32Array, at: number): number {
  return words[at] ?? 0;
}
