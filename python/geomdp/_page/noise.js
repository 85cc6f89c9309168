"use strict";
// Intervals of sums of discrete Laplace noise: the script of published pages and of the planner.

/** The Fourier transform of a power of two of numbers, in place. */
function transform(real, imaginary) {
  const size = real.length;
  for (let i = 1, j = 0; i < size; i += 1) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let length = 2; length <= size; length <<= 1) {
    const half = length >> 1;
    const cosines = Float64Array.from({ length: half }, (_, k) => Math.cos((2 * Math.PI * k) / length));
    const sines = Float64Array.from({ length: half }, (_, k) => Math.sin((2 * Math.PI * k) / length));
    for (let start = 0; start < size; start += length) {
      for (let k = 0; k < half; k += 1) {
        const at = start + k;
        const to = at + half;
        const re = real[to] * cosines[k] + imaginary[to] * sines[k];
        const im = imaginary[to] * cosines[k] - real[to] * sines[k];
        real[to] = real[at] - re;
        imaginary[to] = imaginary[at] - im;
        real[at] += re;
        imaginary[at] += im;
      }
    }
  }
}

/** More than the errors of the transform, and of the sampled distribution of each cell. */
const SLACK = 1e-9;
const LOST = 2 ** -50;
/** The longest transform: a tenth of a second. */
const LONGEST = 2 ** 22;
const known = new Map();

/**
 * The least t with P(|sum of the noise of n cells| > t) <= alpha, or null where that takes too long.
 *
 * The noise of a cell is discrete Laplace with this rate. Its characteristic function is known, so a
 * Fourier transform gives the distribution of the sum.
 */
function reach(rate, n, alpha) {
  const level = alpha - SLACK - n * LOST;
  const key = `${rate} ${n} ${alpha}`;
  if (!known.has(key)) known.set(key, n === 0 ? 0 : found(rate, n, level));
  return known.get(key);
}

function found(rate, n, level) {
  const q = Math.exp(-rate);
  if (level <= 0) return null;
  if (n === 1) {
    // P(|Z| > t) = 2 q^(t + 1) / (1 + q)
    return Math.max(0, Math.ceil(Math.log((level * (1 + q)) / 2) / -rate - 1));
  }
  const deviation = Math.sqrt(2 * n * q) / (1 - q);
  let size = 64;
  // Beyond 24 deviations and 40 means of one cell there is less than the slack.
  while (size < 48 * deviation + 80 / rate) size *= 2;
  if (size > LONGEST) return null;
  const real = new Float64Array(size);
  const imaginary = new Float64Array(size);
  for (let j = 0; j < size; j += 1) {
    const half = Math.sin((Math.PI * j) / size);
    // (1 - q)^2 / (1 - 2 q cos + q^2)
    real[j] = Math.exp(-n * Math.log1p((4 * q * half * half) / ((1 - q) * (1 - q))));
  }
  transform(real, imaginary);
  let inside = real[0] / size;
  let t = 0;
  while (inside < 1 - level && t < size / 2) {
    t += 1;
    inside += (2 * real[t]) / size;
  }
  return t < size / 2 ? t : null;
}
