// SPDX-License-Identifier: Apache-2.0
// Upkeep of a volume: scrub, check, repair with its plan first, rotation of the key, backup. Rotation
// and scrub of a mounted volume belong to its daemon; their progress comes with the volume's state.
import { pathField } from './chooser.js';
import * as commands from './commands.js';
import { fill, h, setPart, setText } from './dom.js';
import { check, choices, field, select } from './fields.js';
import { bytes, dateTime, duration, percent, rate } from './format.js';
import { t, tOr } from './i18n.js';
import { icon } from './icons.js';
import { openerFields } from './opener.js';
import { taskOf } from './page_volumes.js';
import { findings, plan } from './results.js';
import { engine, isActive, start, volumes, whenEnded } from './store.js';
import { button, commandDetails, dialog, errorNote, forgetDraft, note, toast } from './ui.js';
import { finish, isMounted, nameOfVolume } from './volume_state.js';

export function careTab(context) {
  const make = (id, sign, action) => {
    const status = h('div.stack.tight');
    const go = button(t(`care.${id}.go`), () => action(context.now()), { 'data-care': id });
    const node = h('section.item.care', { 'aria-label': t(`care.${id}`) }, h('span.avatar', icon(sign)),
      h('div.grow.stack.tight', h('div', h('h3', t(`care.${id}`)), h('p.muted.small', t(`care.${id}.text`))), status), go);
    return { node, status, go };
  };
  const parts = { scrub: make('scrub', 'check', scrub), check: make('check', 'inspect', checkVolume), repair: make('repair', 'repair', repair),
    rotate: make('rotate', 'rotate', rotate), backup: make('backup', 'backup', backup) };
  context.listen((volume) => {
    const mounted = isMounted(volume);
    const usable = mounted || volume.state === 'not_mounted';
    for (const [id, part] of Object.entries(parts)) {
      const fits = usable && (mounted ? id !== 'check' && id !== 'repair' : true);
      part.go.disabled = !fits;
      if (id === 'check' || id === 'repair') fill(part.status, mounted ? h('p.small.muted', t('care.unmount_first')) : null);
    }
    const task = taskOf(volume);
    showTask(parts.rotate, task?.kind === 'rotation' ? task : null, volume, '/api/volumes/rotate');
    showTask(parts.scrub, task?.kind === 'scrub' ? task : null, volume, '/api/volumes/scrub');
    if (task?.kind !== 'scrub' && volume.scrub?.ended) showLastScrub(parts.scrub, volume.scrub);
  });
  return h('div.card.flush.divided', Object.values(parts).map((part) => part.node));
}

function showTask(part, found, volume, path) {
  part.go.hidden = Boolean(found);
  if (!found) {
    if (part.view) fill(part.status);
    part.view = null;
    return;
  }
  if (part.view?.state !== found.state) {
    const words = h('div.small');
    const bar = h('span');
    const act = (action) => button(t(`task.${action}`), () => start(path, { path: volume.path, action }).then((job) => finish(job)).then(() => volumes.refresh())
      .catch((error) => toast(error.what, 'bad')), { kind: 'small' });
    part.view = { state: found.state, words, bar };
    fill(part.status, words, h('div.bar', { role: 'progressbar', 'aria-label': t(`task.${found.kind}.${found.state}`) }, bar),
      h('div.row', act(found.state === 'paused' ? 'resume' : 'pause'), found.kind === 'scrub' ? act('stop') : null));
  }
  const { task } = found;
  setPart(part.view.bar, found.share);
  setText(part.view.words, [t(`task.${found.kind}.${found.state}`), percent(found.share), t('job.of', { done: bytes(task.done_bytes), total: bytes(task.total_bytes) }),
    task.bytes_per_second ? rate(task.bytes_per_second) : '', task.eta_seconds ? t('job.left', { time: duration(task.eta_seconds) }) : ''].filter(Boolean).join(' · '));
}

function showLastScrub(part, scrub) {
  const key = `${scrub.ended} ${scrub.damage_count}`;
  if (part.last === key && part.status.firstChild) return;
  part.last = key;
  const when = dateTime(Date.parse(scrub.ended) / 1000);
  fill(part.status, scrub.damage_count ? [note('bad', t('care.scrub.damage', { n: scrub.damage_count, when })), findings(scrub.places)]
    : h('p.small', t('care.scrub.clean', { when, size: bytes(scrub.done_bytes) })));
}

// Starts a job and closes the dialog; its progress is in the list below. What was chosen is kept until
// the job has ended well.
async function begin(path, body, draft) {
  const job = await start(path, body);
  volumes.refresh();
  whenEnded(job.id).then((done) => {
    if (done.state === 'done' || isActive(done)) forgetDraft(draft);
  });
  return true;
}

const draftOf = (kind, volume) => `${kind} ${volume.path}`;

async function scrub(volume) {
  const limit = rateField();
  const body = () => ({ path: volume.path, action: 'begin', ...(limit.control.value ? { rate: limit.control.value } : {}) });
  const draft = draftOf('scrub', volume);
  await dialog({ title: t('care.scrub.title', { name: nameOfVolume(volume) }), form: true, draft, body: [h('p', t('care.scrub.explain')), limit, commandDetails(() => commands.scrub(body()))],
    actions: [{ label: t('ui.cancel'), run: () => null }, { label: t('care.scrub.go'), kind: 'primary', run: () => begin('/api/volumes/scrub', body(), draft) }] });
}

const rateField = () => field(t('care.rate'), select([['', t('care.rate.none')], ['16M', '16 MiB/s'], ['64M', '64 MiB/s'], ['256M', '256 MiB/s']].map(([value, label]) => ({ value, label })), ''), { hint: t('care.rate.hint') });

async function checkVolume(volume) {
  const opener = openerFields({ onchange: () => details.renew() });
  const depth = choices(t('care.depth'), ['checksums', 'structure', 'deep'].map((value) => ({ value, label: t(`care.depth.${value}`), text: t(`care.depth.${value}.text`) })), 'checksums', () => show());
  const show = () => {
    opener.node.hidden = depth.value === 'checksums';
    details.renew();
  };
  const body = () => {
    const made = { path: volume.path, depth: depth.value };
    if (depth.value !== 'checksums') opener.addTo(made);
    return made;
  };
  const details = commandDetails(() => commands.check(body()));
  show();
  const draft = draftOf('check', volume);
  await dialog({ title: t('care.check.title', { name: nameOfVolume(volume) }), form: true, draft, body: [depth, opener.node, details],
    actions: [{ label: t('ui.cancel'), run: () => null }, { label: t('care.check.go'), kind: 'primary', run: async () => {
      const sent = body();
      if (depth.value !== 'checksums') {
        if (!opener.isValid()) return false;
        await opener.giveTo(sent);
      }
      return begin('/api/volumes/check', sent, draft);
    } }] });
}

// First the plan, which changes nothing; then, with the plan in view, the repair.
async function repair(volume) {
  const ask = async (title, content, label, path, extra, isPlan) => {
    const opener = openerFields({ first: true, onchange: () => details.renew() });
    const body = () => {
      const made = { path: volume.path, ...extra() };
      opener.addTo(made);
      return made;
    };
    const details = commandDetails(() => commands.repair(body(), isPlan));
    return dialog({ title, form: true, wide: !isPlan, body: [content, opener.node, details],
      actions: [{ label: t('ui.cancel'), run: () => null }, { label, kind: isPlan ? 'primary' : 'danger.primary', run: async () => {
        if (!opener.isValid()) return false;
        const sent = body();
        await opener.giveTo(sent);
        try {
          return await finish(await start(path, sent));
        } catch (error) {
          if (error.hint !== 'plan_again') throw error;
          return { changed: error };
        }
      } }] });
  };
  const drop = check(t('repair.drop_damaged'), false, null, t('repair.drop_damaged.hint'));
  const planned = await ask(t('repair.title', { name: nameOfVolume(volume) }), [h('p', t('repair.explain')), note('warn', t('repair.copy_first')), drop],
    t('repair.make_plan'), '/api/volumes/repair_plan', () => ({ drop_damaged: drop.input.checked }), true);
  if (!planned) return;
  const { result } = planned;
  if (!result.plan?.length) {
    await dialog({ title: t('repair.plan'), body: plan(result), actions: [{ label: t('ui.close'), kind: 'primary' }] });
    return;
  }
  const done = await ask(t('repair.confirm_title', { name: nameOfVolume(volume) }), [plan(result), note('warn', t('repair.confirm_note'))], t('repair.go'), '/api/volumes/repair',
    () => ({ drop_damaged: drop.input.checked, plan_id: result.plan_id, plan_hash: result.plan_hash }), false);
  if (!done?.changed) return;
  const again = await dialog({ title: t('repair.changed'), body: errorNote(done.changed),
    actions: [{ label: t('ui.close'), run: () => null }, { label: t('care.repair.go'), kind: 'primary', run: () => true }] });
  if (again) await repair(volume);
}

async function rotate(volume) {
  const known = await engine();
  const opener = openerFields({ first: true, onchange: () => details.renew() });
  const keep = { value: '', label: t('care.keep') };
  const cipher = select([keep, ...known.ciphers.filter((one) => !one.is_legacy).map((one) => ({ value: one.name, label: tOr(`cipher.${one.name}`, one.name) }))], '', () => details.renew());
  const codec = select([keep, ...known.codecs.map((one) => ({ value: one.name, label: tOr(`codec.${one.name}`, one.name) }))], '', () => details.renew());
  const limit = rateField();
  const body = () => {
    const made = { path: volume.path, action: 'begin' };
    for (const [name, control] of [['cipher', cipher], ['codec', codec], ['rate', limit.control]]) if (control.value) made[name] = control.value;
    opener.addTo(made);
    return made;
  };
  const details = commandDetails(() => commands.rotate(body()));
  const draft = draftOf('rotate', volume);
  await dialog({ title: t('care.rotate.title', { name: nameOfVolume(volume) }), form: true, draft,
    body: [h('p', t('care.rotate.explain')), opener.node, h('details', h('summary', t('files.more')), h('div.stack', h('div.grid-2', field(t('files.cipher'), cipher), field(t('files.codec'), codec)), limit)), details],
    actions: [{ label: t('ui.cancel'), run: () => null }, { label: t('care.rotate.go'), kind: 'primary', run: async () => {
      if (!opener.isValid()) return false;
      const sent = body();
      await opener.giveTo(sent);
      return begin('/api/volumes/rotate', sent, draft);
    } }] });
}

async function backup(volume) {
  const target = pathField(t('backup.target'), { hint: t('backup.target.hint'), onchange: () => details.renew() });
  const verify = check(t('backup.verify'), false, () => details.renew(), t('backup.verify.hint'));
  const body = () => ({ path: isMounted(volume) ? volume.mountpoint : volume.path, target: target.path(), verify: verify.input.checked });
  const details = commandDetails(() => commands.backup(body()));
  const draft = draftOf('backup', volume);
  await dialog({ title: t('care.backup.title', { name: nameOfVolume(volume) }), form: true, draft, body: [h('p', t('care.backup.explain')), target, verify, details],
    actions: [{ label: t('ui.cancel'), run: () => null }, { label: t('care.backup.go'), kind: 'primary', run: () => {
      if (!target.path()) return target.fail(t('field.needed')) ?? false;
      return begin('/api/volumes/backup', body(), draft);
    } }] });
}
