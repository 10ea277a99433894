// SPDX-License-Identifier: Apache-2.0
// Compare: one file through each codec and cipher, on the CPU and the GPU. Time, ratio and rate.
import { post } from './api.js';
import * as commands from './commands.js';
import { fill, h, setPart } from './dom.js';
import { check, field, select } from './fields.js';
import { bytes, dash, duration, number, rate, ratio } from './format.js';
import { t, tOr } from './i18n.js';
import { Inputs, inputsField } from './inputs.js';
import { engine, isActive, jobs, start } from './store.js';
import { button, commandDetails, empty, errorNote, named, note, pageHead, skeleton } from './ui.js';

const inputs = new Inputs();
const sizes = [16, 64, 256, 1024].map((mebibytes) => mebibytes * 1048576);

export function comparePage() {
  const form = h('div', skeleton(4));
  const results = h('div.stack');
  const page = { node: h('div.page', pageHead(t('compare.title'), t('compare.text')), form, results) };
  let files = null;
  engine().then((known) => {
    files = inputsField(inputs, { multiple: false, folders: false, text: t('compare.drop') });
    form.replaceWith(compareForm(known, files.node));
  }).catch((error) => fill(form, errorNote(error)));
  const stopJobs = jobs.subscribe((list) => draw(results, (list ?? []).find((job) => job.kind === 'compare')));
  page.stop = () => {
    stopJobs();
    files?.stop();
  };
  return page;
}

function group(title, entries, prefix) {
  const boxes = entries.map((entry) => {
    const box = check(prefix === 'engine' ? named(prefix, entry.name) : entry.name, entry.is_available !== false && !entry.is_off);
    box.input.disabled = entry.is_available === false;
    box.input.value = entry.name;
    box.title = tOr(`${prefix}.${entry.name}`, entry.name);
    return box;
  });
  const node = h('fieldset.field', h('legend', title), h('div.chips', boxes));
  node.chosen = () => boxes.filter((box) => box.input.checked).map((box) => box.input.value);
  return node;
}

function compareForm(known, filesNode) {
  const codecs = group(t('compare.codecs'), known.codecs.filter((one) => one.name !== 'none' && one.name !== 'auto'), 'codec');
  const ciphers = group(t('compare.ciphers'), known.ciphers, 'cipher');
  const rsa = group(t('compare.rsa'), known.rsa.sizes.map((bits) => ({ name: String(bits), is_off: bits !== 2048 })), 'rsa');
  const engines = group(t('files.engine'), known.engines.filter((one) => one.name !== 'auto'), 'engine');
  const size = select(sizes.map((value) => ({ value: String(value), label: bytes(value) })), String(sizes[1]));
  const fault = h('div');
  const body = () => ({ input: inputs.body[0], codecs: codecs.chosen(), ciphers: ciphers.chosen(), engines: engines.chosen(), rsa_bits: rsa.chosen().map(Number), bytes_max: Number(size.value) });
  const submit = button(t('compare.go'), async () => {
    fault.replaceChildren();
    if (!inputs.items.length || inputs.isUploading) return fill(fault, note('bad', t(inputs.isUploading ? 'files.fault.uploading' : 'compare.no_file')));
    const sent = body();
    if (!sent.engines.length || !(sent.codecs.length || sent.ciphers.length || sent.rsa_bits.length)) return fill(fault, note('bad', t('compare.nothing_chosen')));
    submit.disabled = true;
    try {
      await start('/api/files/compare', sent);
    } catch (error) {
      fill(fault, errorNote(error));
    } finally {
      submit.disabled = false;
    }
    return null;
  }, { kind: 'primary', 'data-submit': 'compare' });
  return h('section.card', { 'aria-label': t('compare.title') },
    h('div.section.stack', filesNode, codecs, ciphers, rsa, h('div.grid-2', engines, field(t('compare.size'), size))),
    h('div.section.stack', fault, h('div.form-foot', commandDetails(() => commands.compare({ input: inputs.items[0] })), submit)));
}

function draw(place, job) {
  if (!job) {
    if (!place.firstChild) place.append(h('section.card', empty('compare', t('compare.none'), t('compare.none.text'))));
    return;
  }
  const rows = job.result?.rows ?? [];
  const key = `${job.id} ${job.state} ${rows.length}`;
  if (place.drawn === key) return;
  place.drawn = key;
  const active = isActive(job);
  const cancel = active && job.is_cancellable ? button(t('job.cancel'), () => post(`/api/jobs/${job.id}/cancel`).then(() => jobs.refresh()), { kind: 'small' }) : null;
  const share = job.progress?.total ? job.progress.done / job.progress.total : 0;
  const bar = h('span');
  setPart(bar, share);
  fill(place, h('section.card.stack', { 'data-job': job.id, 'data-state': job.state }, h('div.row.apart', h('div', h('h2', job.title || t('compare.result')),
    h('p.muted.small', job.result ? t(job.result.is_whole_file === false ? 'compare.part' : 'compare.whole', { size: bytes(job.result.bytes) }) : '')), cancel),
  h('div.row', h('span.key', named('engine', 'cpu')), rows.some((row) => row.engine === 'cuda') ? h('span.key.second', named('engine', 'cuda')) : null),
  active ? h('div.bar', { role: 'progressbar', 'aria-label': t('compare.title') }, bar) : null, job.error ? errorNote(job.error) : null),
  rows.some((row) => row.operation === 'compress') ? ratios(rows) : null,
  [['compress', 'decompress'], ['encrypt', 'decrypt'], ['rsa_encrypt', 'rsa_decrypt'], ['rsa_generate']].map((pair) => h('div.grid-2', pair.map((operation) => rates(rows.filter((row) => row.operation === operation), operation)))));
}

function bar(share, second) {
  const node = h(`span.compare-bar${second ? '.second' : ''}`, { 'aria-hidden': 'true' });
  setPart(node, share);
  return node;
}

function table(title, hint, head, body) {
  return h('section.card', h('h2', title), h('p.muted.small', hint), h('div.table-frame', h('table',
    h('thead', h('tr', head.map(([text, isNumber]) => h(`${text ? 'th' : 'td'}${isNumber ? '.number' : ''}${text === t('compare.time') ? '.wide-only' : ''}`, { scope: text ? 'col' : null }, text)))), h('tbody', body))));
}

function ratios(rows) {
  const seen = new Map();
  for (const row of rows) if (row.operation === 'compress' && !row.error && !seen.has(row.method)) seen.set(row.method, row);
  const list = [...seen.values()].sort((a, b) => b.ratio - a.ratio);
  return table(t('compare.ratio'), t('compare.ratio.hint'), [[t('compare.method')], [t('compare.ratio'), true], [t('compare.size_after'), true], ['']],
    list.map((row) => h('tr', h('th', { scope: 'row' }, row.method), h('td.number', ratio(row.ratio)), h('td.number', bytes(row.output_bytes)), h('td.bar-cell', bar(row.output_bytes / Math.max(row.input_bytes, row.output_bytes))))));
}

function rates(rows, operation) {
  if (!rows.length) return null;
  const most = Math.max(...rows.map((row) => row.rate ?? 0), 1);
  const order = [...rows].sort((a, b) => a.method.localeCompare(b.method, 'en', { numeric: true }) || a.engine.localeCompare(b.engine));
  const counts = rows[0].unit === 'operations';
  return table(t(`compare.${operation}`), t(counts ? 'compare.count.hint' : 'compare.rate.hint'), [[t('compare.method')], [t('files.engine')], [t('compare.rate'), true], [t('compare.time'), true], ['']],
    order.map((row, index) => {
      const isFirst = order[index - 1]?.method !== row.method;
      const isJoined = order[index + 1]?.method === row.method;
      const span = order.filter((other) => other.method === row.method).length;
      return h(`tr${isJoined ? '.joined' : ''}`, isFirst ? h(`th${index + span === order.length ? '.last' : ''}`, { scope: 'rowgroup', rowspan: span }, row.method) : null, h('td.inner', named('engine', row.engine)),
        row.error ? h('td.muted', { colspan: 3 }, typeof row.error === 'string' ? row.error : row.error.what ?? dash)
          : [h('td.number', counts ? t('job.per_second', { rate: number(row.rate, row.rate < 10 ? 1 : 0) }) : rate(row.rate)), h('td.number.wide-only', duration(row.seconds)), h('td.bar-cell', bar(row.rate / most, row.engine === 'cuda'))]);
    }));
}
