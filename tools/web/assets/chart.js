// SPDX-License-Identifier: Apache-2.0
// Two kinds of charts in SVG: values over time, and spans of latency on a logarithmic scale.
import { fill, h, setText, svg } from './dom.js';
import { clock, number } from './format.js';

const height = 160;
const inset = { left: 64, right: 8, top: 8, bottom: 24 };

// The next "round" number at or above a value, in powers of two or ten.
function ceiling(value, base) {
  if (!(value > 0)) return 1;
  const steps = base === 2 ? [1, 2, 4, 8] : [1, 2, 5, 10];
  const unit = base === 2 ? 16 : 10;
  let scale = unit ** Math.floor(Math.log(value) / Math.log(unit));
  for (;; scale *= unit) for (const step of steps) if (step * scale >= value) return step * scale;
}

// The time that the axis covers: as long as the history, so that a short one fills the picture.
const spans = [60, 120, 300, 600];
const spanOf = (samples, now) => spans.find((span) => now - (samples[0]?.time ?? now) <= span) ?? 600;

// series: [{label, of(sample), second}]. Gaps (null) break the line. format(value) labels the axis.
export class TimeChart {
  constructor({ label, series, format, least = 0, base = 2 }) {
    Object.assign(this, { series, format, least, base, samples: [], now: 0 });
    this.picture = svg('svg', { class: 'chart', role: 'img', 'aria-label': label, height });
    this.readout = h('div.small.muted.number', { 'aria-hidden': 'true' });
    this.legend = series.map((one) => h(`span.key${one.second ? '.second' : ''}`, one.label));
    this.node = h('figure', h('div.row.apart', h('figcaption.row', this.legend), this.readout), this.picture);
    this.picture.addEventListener('pointermove', (event) => {
      const box = this.picture.getBoundingClientRect();
      this.pointer = event.clientX - box.left;
      this.draw();
    });
    this.picture.addEventListener('pointerleave', () => {
      this.pointer = undefined;
      this.draw();
    });
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.picture);
  }

  set(samples, now) {
    this.samples = samples;
    this.now = now;
    this.span = spanOf(samples, now);
    this.draw();
  }

  draw() {
    const width = Math.round(this.picture.getBoundingClientRect().width);
    if (!width || !this.span) return;
    this.picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const [left, right, top, bottom] = [inset.left, width - inset.right, inset.top, height - inset.bottom];
    const values = this.samples.flatMap((sample) => this.series.map((one) => one.of(sample))).filter((value) => Number.isFinite(value));
    const most = ceiling(Math.max(this.least, ...values), this.base);
    const x = (time) => right - ((this.now - time) / this.span) * (right - left);
    const y = (value) => bottom - (Math.min(value, most) / most) * (bottom - top);
    const parts = [0, 0.5, 1].flatMap((share) => [svg('line', { class: 'rule', x1: left, x2: right, y1: y(most * share), y2: y(most * share) }),
      svg('text', { x: left - 8, y: y(most * share) + 4, 'text-anchor': 'end' }, this.format(most * share))]);
    const count = width > 480 ? 5 : 2;
    for (let index = 0; index <= count; index++) {
      const ago = Math.round(this.span * (1 - index / count));
      const text = !ago ? clock(this.now) : ago % 60 ? `−${number(ago)} s` : `−${number(ago / 60)} min`;
      parts.push(svg('text', { x: x(this.now - ago), y: height - 6, 'text-anchor': !index ? 'start' : index < count ? 'middle' : 'end' }, text));
    }
    for (const one of this.series) parts.push(...this.curve(one, x, y, bottom));
    parts.push(...this.cursor(x, top, bottom));
    fill(this.picture, parts);
  }

  curve(one, x, y, bottom) {
    const runs = [[]];
    let before = null;
    for (const sample of this.samples) {
      const value = one.of(sample);
      if (this.now - sample.time > this.span) continue;
      if (!Number.isFinite(value) || (before !== null && sample.time - before > 10)) runs.push([]);
      before = sample.time;
      if (Number.isFinite(value)) runs[runs.length - 1].push(`${x(sample.time).toFixed(1)},${y(value).toFixed(1)}`);
    }
    const kind = one.second ? ' second' : '';
    return runs.filter((run) => run.length > 1).flatMap((run) => [
      svg('path', { class: `area${kind}`, d: `M${run[0].split(',')[0]},${bottom}L${run.join('L')}L${run[run.length - 1].split(',')[0]},${bottom}Z` }),
      svg('path', { class: `line${kind}`, d: `M${run.join('L')}` })]);
  }

  cursor(x, top, bottom) {
    const last = this.samples[this.samples.length - 1];
    let at = last;
    if (this.pointer !== undefined) {
      at = this.samples.reduce((best, sample) => (Math.abs(x(sample.time) - this.pointer) < Math.abs(x(best.time) - this.pointer) ? sample : best), last ?? {});
    }
    this.series.forEach((one, index) => setText(this.legend[index], at ? `${one.label} ${this.format(one.of(at))}` : one.label));
    setText(this.readout, this.pointer !== undefined && at ? clock(at.time) : '');
    return this.pointer === undefined || !at ? [] : [svg('line', { class: 'cursor', x1: x(at.time), x2: x(at.time), y1: top, y2: bottom })];
  }

  stop() {
    this.sizes.disconnect();
  }
}

// A span from the median to the 99th percentile, with a mark at the 90th; 1 µs to 10 s.
export function latencySpan({ p50_ns: p50, p90_ns: p90, p99_ns: p99 }) {
  const at = (ns) => Math.max(0, Math.min(1, Math.log10(Math.max(ns, 1000) / 1000) / 7)) * 200;
  return svg('svg', { class: 'chart', viewBox: '0 0 200 16', height: 16, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('line', { class: 'rule', x1: 0, x2: 200, y1: 8, y2: 8 }),
    svg('rect', { class: 'span', x: at(p50), y: 4, width: Math.max(2, at(p99) - at(p50)), height: 8, rx: 2 }),
    svg('rect', { class: 'mark', x: at(p50) - 1, y: 2, width: 2.5, height: 12 }),
    svg('rect', { class: 'mark', x: at(p90) - 0.5, y: 4, width: 1.5, height: 8 }));
}
