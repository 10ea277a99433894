// SPDX-License-Identifier: Apache-2.0
// Cards of jobs: progress, rate, time left, cancel; then the result. Jobs belong to the server, so a
// page that was reloaded shows the same ones.
import { download, post, remove } from './api.js';
import { fill, h, reconcile, setPart, setText } from './dom.js';
import { bytes, clock, duration, number, percent, rate } from './format.js';
import { t, tOr } from './i18n.js';
import { icon } from './icons.js';
import { shown } from './paths.js';
import { resultOf } from './results.js';
import { awaited, isActive, jobs } from './store.js';
import { announce, button, commandBox, empty, errorNote, iconButton, note, pill, toast } from './ui.js';

const pillKinds = { done: 'ok', failed: 'bad', cancelled: '', running: 'accent', queued: '' };
export const kindName = (kind) => tOr(`job.${kind}`, kind);

function progressText(job) {
  const { progress } = job;
  if (!progress || job.state === 'queued') return t('job.state.queued');
  const { done, total, unit } = progress;
  const show = unit === 'bytes' ? bytes : number;
  const parts = [tOr(`stage.${progress.stage}`, progress.stage)];
  if (total) parts.push(percent(done / total), t('job.of', { done: show(done), total: show(total) }));
  else if (done) parts.push(show(done));
  if (progress.rate) parts.push(unit === 'bytes' ? rate(progress.rate) : t('job.per_second', { rate: number(progress.rate) }));
  if (progress.seconds_left !== null && progress.seconds_left !== undefined) parts.push(t('job.left', { time: duration(progress.seconds_left) }));
  return parts.filter(Boolean).join(' · ');
}

function fileRow(job, file, index) {
  const [from, to] = job.kind === 'decrypt' ? [file.stored_bytes, file.plain_bytes] : [file.plain_bytes, file.stored_bytes];
  const sizes = file.stored_bytes && file.plain_bytes !== null ? t('job.sizes', { plain: bytes(from), stored: bytes(to) }) : '';
  return h('li.stack.tight', h('div.row.nowrap',
    icon(file.state === 'failed' ? 'warning' : 'file'),
    h('div.grow', h('div.wrap-anywhere', file.name),
      file.output ? h('div.muted.small.wrap-anywhere', t('job.output', { path: shown(file.output) })) : null,
      sizes ? h('div.muted.small', sizes) : null),
    file.can_download ? button(t('job.download'), () => download(job.id, index).catch((error) => toast(error.what, 'bad')),
      { kind: 'small', name: 'download', 'aria-label': t('job.download_file', { name: file.name }) }) : null),
  file.warning ? note('warn', file.warning) : null,
  file.error ? errorNote(file.error) : null);
}

// A rotation or scrub of a mounted volume is the daemon's: the job ends when it has begun.
const isHandedOver = (job) => job.state === 'done' && ['rotate', 'scrub'].includes(job.kind) &&
  / --(no-wait|background)\b/.test(job.command);
const stateWord = (job) => t(isHandedOver(job) ? 'job.state.begun' : `job.state.${job.state}`);

function outcome(job) {
  const parts = [];
  const failed = job.files?.filter((file) => file.error) ?? [];
  if (job.error && !(failed.length === 1 && failed[0].error.what === job.error.what)) parts.push(errorNote(job.error));
  const listed = job.files ?? [];
  if (listed.length && job.kind !== 'inspect' && job.kind !== 'compare') {
    const order = [...listed.keys()].sort((a, b) => Boolean(listed[b].error) - Boolean(listed[a].error) || a - b);
    const rows = order.map((index) => fileRow(job, listed[index], index));
    parts.push(h('ul.stack.tight', rows.slice(0, 4)));
    if (job.file_count > 4) {
      parts.push(h('details', h('summary', t('job.more', { n: job.file_count - 4 })), h('ul.stack.tight', rows.slice(4))));
    }
  }
  parts.push(resultOf(job));
  if (job.messages?.trim()) {
    parts.push(h('details', h('summary', t('job.messages')), h('div.command', h('pre', { tabindex: '0' }, job.messages.trim()))));
  }
  return parts;
}

class JobCard {
  constructor(job) {
    this.bar = h('span');
    this.frame = h('div.bar', { role: 'progressbar', 'aria-label': kindName(job.kind), 'aria-valuemin': 0, 'aria-valuemax': 100 }, this.bar);
    this.words = h('div.small.muted');
    this.state = h('span');
    this.end = h('div.stack.tight');
    this.cancel = button(t('job.cancel'), () => this.stop(job), { kind: 'small' });
    this.forget = iconButton(t('job.forget'), 'close', () => remove(`/api/jobs/${job.id}`).then(() => jobs.refresh()).catch((error) => toast(error.what, 'bad')), true);
    this.node = h('li.item', { 'data-job': job.id, 'data-kind': job.kind }, h('div.stack.tight.grow',
      h('div.row.nowrap', h('div.grow', h('div.title.wrap-anywhere', h('span', kindName(job.kind)), job.title ? `: ${job.title}` : ''),
        this.when = h('div.small.muted', { title: t('job.started') })), this.state, this.cancel, this.forget),
      this.frame, this.words, this.end,
      job.command ? h('details', h('summary', t('ui.show_command')), commandBox(job.command)) : null));
  }

  async stop(job) {
    this.cancel.disabled = true;
    try {
      await post(`/api/jobs/${job.id}/cancel`);
    } catch (error) {
      toast(error.what, 'bad');
      this.cancel.disabled = false;
    }
    jobs.refresh();
  }

  update(job) {
    const active = isActive(job);
    this.node.dataset.state = job.state;
    const share = job.progress?.total ? job.progress.done / job.progress.total : null;
    this.frame.hidden = !active;
    this.frame.classList.toggle('unknown', active && share === null);
    if (share === null) this.frame.removeAttribute('aria-valuenow');
    else this.frame.setAttribute('aria-valuenow', Math.round(share * 100));
    setPart(this.bar, share ?? 0.3);
    this.words.hidden = !active;
    if (active) setText(this.words, progressText(job));
    setText(this.when, clock(job.started) + (active || !job.ended ? '' : ` · ${t('job.took', { time: duration(job.ended - job.started) })}`));
    this.cancel.hidden = !active || !job.is_cancellable;
    this.forget.hidden = active;
    this.state.hidden = active;
    const key = `${job.state} ${active ? '' : job.ended}`;
    if (this.key === key) return;
    this.key = key;
    fill(this.state, pill(stateWord(job), isHandedOver(job) ? 'accent' : pillKinds[job.state]));
    if (active) return;
    fill(this.end, outcome(job));
  }
}

// A list of the jobs that `wanted` names. Returns {node, stop}.
export function jobList({ wanted = () => true, title = t('jobs.title'), hint = t('jobs.empty'), bare = false } = {}) {
  const list = h('ul.divided', { 'aria-label': title });
  const none = empty('activity', t('jobs.none'), hint);
  const node = h('section.card.flush', bare ? null : h('div.item', h('h2', title)), none, list);
  const stop = jobs.subscribe((value, error) => {
    const shownJobs = (value ?? []).filter(wanted);
    none.hidden = shownJobs.length > 0;
    node.hidden = bare && shownJobs.length === 0;
    if (value || !error) reconcile(list, shownJobs, (job) => job.id, (job) => new JobCard(job));
  });
  return { node, stop };
}

// Says aloud when a job ends, on every page.
export function watchEnds() {
  const running = new Set();
  jobs.subscribe((list) => {
    for (const job of list ?? []) {
      if (isActive(job)) running.add(job.id);
      else if (running.delete(job.id)) {
        const text = t('job.ended', { kind: kindName(job.kind), title: job.title || '', state: stateWord(job).toLowerCase() }).replace(':  –', ' –');
        announce(text);
        if (!awaited.has(job.id)) toast(text, job.state === 'failed' ? 'bad' : 'ok');
      }
    }
  });
}
