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
import { awaited, isActive, isStep, jobs } from './store.js';
import { announce, button, commandBox, confirm, empty, errorNote, iconButton, note, pill, toast } from './ui.js';

const pillKinds = { done: 'ok', failed: 'bad', cancelled: '', running: 'accent', queued: '' };
// Of several files or keys the server tells the number.
const titleOf = (job) => (job.title ?? '').replace(/^(\d+) (files|keys)$/, (_, n, what) => t(`job.${what}`, { n: Number(n) }));
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
      file.output && file.state !== 'failed' && file.state !== 'cancelled' ? h('div.muted.small.wrap-anywhere', t('job.output', { path: shown(file.output) })) : null,
      sizes ? h('div.muted.small', sizes) : null),
    file.can_download ? button(t('job.download'), () => download(job.id, index).catch((error) => toast(error.what, 'bad')),
      { kind: 'small', name: 'download', 'aria-label': t('job.download_file', { name: file.name }) }) : null),
  file.warning ? note('warn', file.warning) : null,
  file.error ? errorNote(file.error) : null);
}

const stateWord = (job) => t(`job.state.${job.state}`);

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
    this.forget = iconButton(t('job.forget'), 'close', () => forgetJobs([job]), true);
    this.node = h('li.item', { 'data-job': job.id, 'data-kind': job.kind }, h('div.stack.tight.grow',
      h('div.row.nowrap', h('div.grow', h('div.title.wrap-anywhere', h('span', kindName(job.kind)), job.title ? `: ${titleOf(job)}` : ''),
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
    this.forget.hidden = active && !job.is_handed_over;
    this.state.hidden = active;
    const key = `${job.state} ${active ? job.is_handed_over : job.ended}`;
    if (this.key === key) return;
    this.key = key;
    if (job.is_handed_over && active) {
      this.forget.title = t('job.unwatch');
      this.forget.setAttribute('aria-label', t('job.unwatch'));
    }
    fill(this.state, pill(stateWord(job), pillKinds[job.state]));
    fill(this.end, !active ? outcome(job) : job.is_handed_over ? resultOf(job) : null);
  }
}

async function forgetJobs(list) {
  try {
    for (const job of list) await remove(`/api/jobs/${job.id}`);
  } catch (error) {
    toast(error.what, 'bad');
  }
  jobs.refresh();
}

async function clearEnded(list) {
  const hasDownloads = list.some((job) => job.files?.some((file) => file.can_download));
  if (hasDownloads && !await confirm(t('jobs.clear'), t('jobs.clear.downloads'), t('jobs.clear'), { danger: true })) return;
  forgetJobs(list);
}

// A list of the jobs that `wanted` names: those that run and the `recent` last ones; older ones are
// folded away. bare: without jobs it is hidden. Returns {node, renew, stop}.
export function jobList({ wanted = () => true, title = t('jobs.title'), hint = t('jobs.empty'), bare = false, recent = 3 } = {}) {
  const list = h('ul.divided', { 'aria-label': title });
  const older = h('ul.divided', { 'aria-label': t('jobs.older_list') });
  const summary = h('summary');
  const rest = h('details.older', { hidden: true }, summary, older);
  const none = empty('activity', t('jobs.none'), hint);
  let endedJobs = [];
  const clear = button(t('jobs.clear'), () => clearEnded(endedJobs), { kind: 'quiet.small', 'data-clear': true });
  const node = h('section.card.flush', h('div.item.jobs-head', h('h2.grow', title), clear), none, list, rest);
  const draw = (value, error) => {
    const shownJobs = (value ?? []).filter((job) => wanted(job) && !(isStep(job) && job.state === 'done'));
    endedJobs = shownJobs.filter((job) => !isActive(job));
    const old = new Set(endedJobs.slice(recent));
    none.hidden = shownJobs.length > 0;
    node.hidden = bare && shownJobs.length === 0;
    clear.hidden = endedJobs.length === 0;
    rest.hidden = old.size === 0;
    setText(summary, t('jobs.older', { n: old.size }));
    if (!value && error) return;
    const make = (job) => new JobCard(job);
    reconcile(list, shownJobs.filter((job) => !old.has(job)), (job) => job.id, make);
    reconcile(older, [...old], (job) => job.id, make);
  };
  const stop = jobs.subscribe(draw);
  return { node, stop, renew: () => draw(jobs.value, jobs.error) };
}

function isInView(node) {
  if (!node?.checkVisibility()) return false;
  const { top, bottom } = node.getBoundingClientRect();
  return top >= 0 && bottom <= window.innerHeight;
}

// Says aloud when a job ends, on every page.
export function watchEnds() {
  const running = new Set();
  jobs.subscribe((list) => {
    for (const job of list ?? []) {
      if (isActive(job)) running.add(job.id);
      else if (running.delete(job.id)) {
        if (isStep(job) && job.state === 'done') continue;
        const text = t('job.ended', { kind: kindName(job.kind), title: titleOf(job), state: stateWord(job).toLowerCase() }).replace(':  –', ' –');
        announce(text);
        const isSeen = (awaited.has(job.id) && !job.is_handed_over) || isInView(document.querySelector(`[data-job="${job.id}"] .title`));
        if (!isSeen) toast(text, job.state === 'failed' ? 'bad' : 'ok');
      }
    }
  });
}
