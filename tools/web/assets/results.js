// SPDX-License-Identifier: Apache-2.0
// What a finished job says: key pairs, containers, checks, plans, backups.
import { get, takeSecret } from './api.js';
import { append, h } from './dom.js';
import { bytes, dash, fingerprint, number, sentence } from './format.js';
import { t } from './i18n.js';
import { icon } from './icons.js';
import { nameOf, quote, shown } from './paths.js';
import { button, commandBox, copyText, dialog, errorNote, named, note, pill, toast } from './ui.js';

export function facts(pairs) {
  return h('dl.facts', pairs.filter((pair) => pair && pair[1] !== undefined && pair[1] !== null && pair[1] !== '')
    .map(([name, value]) => [h('dt', name), h('dd', value)]));
}

const mono = (text) => h('code', text);

// The size and fingerprint of a public key file, to compare with what its owner reads out; or why not.
export function keyPrint(path) {
  const node = h('div.small.muted.wrap-anywhere');
  get('/api/keys/public', { path }).then((key) => append(node, [t('keys.size', { bits: String(key.bits) }), ' · ', mono(fingerprint(key.fingerprint))]))
    .catch((error) => append(node, sentence(error.what)));
  return node;
}

async function showPublicKey(path) {
  try {
    const key = await get('/api/keys/public', { path });
    await dialog({ title: nameOf(path), wide: true, body: [
      facts([[t('keys.bits'), number(key.bits)], [t('keys.fingerprint'), mono(fingerprint(key.fingerprint))]]),
      h('div.command', h('pre', { tabindex: '0' }, key.pem))],
    actions: [{ label: t('keys.copy_pem'), kind: 'primary', run: async () => {
      await copyText(key.pem);
      return false;
    } }, { label: t('ui.close') }] });
  } catch (error) {
    toast(error.what, 'bad');
  }
}

function keygen(result) {
  const row = (key) => h('li.row.nowrap', icon('key'), h('div.grow', h('div.wrap-anywhere', nameOf(key.public)),
    h('div.muted.small.wrap-anywhere', t('keys.private_at', { path: shown(key.private) })),
    h('div.muted.small', mono(fingerprint(key.fingerprint, 32)))),
  button(t('keys.show'), () => showPublicKey(key.public), { kind: 'small' }));
  const rows = (result.keys ?? []).map(row);
  return h('div.stack.tight',
    note('ok', t('keys.made', { n: result.key_count ?? rows.length, bits: result.bits }), ' ',
      t(result.encrypted ? 'keys.is_encrypted' : 'keys.is_plain')),
    h('ul.stack.tight', rows.slice(0, 3)),
    rows.length > 3 ? h('details', h('summary', t('job.more', { n: rows.length - 3 })), h('ul.stack.tight', rows.slice(3))) : null);
}

function container(found) {
  const state = !found.ok ? pill(t('inspect.damaged'), 'bad')
    : found.verified ? pill(t('inspect.verified'), 'ok') : pill(t('inspect.structure'), 'accent');
  return h('li.stack.tight', h('div.row.nowrap', icon('lock'), h('strong.grow.wrap-anywhere', shown(nameOf(found.file))), state),
    found.error ? note('bad', found.error.message ?? found.error.what) : null,
    facts([[t('inspect.cipher'), found.cipher],
      [t('inspect.stored'), found.stored_bytes === undefined ? null : bytes(found.stored_bytes)],
      [t('inspect.plain'), found.plain_bytes === undefined ? null : bytes(found.plain_bytes)],
      [t('inspect.name'), found.name], [t('inspect.mode'), found.mode], [t('inspect.modified'), found.modified],
      [t('inspect.opened_by'), found.recipients ? h('ul', found.recipients.map((one) => h('li',
        `${named('recipient', one.kind)} `, mono(fingerprint(one.fingerprint, 16))))) : null]]),
    found.ok && !found.verified ? h('p.muted.small', t('inspect.proof')) : null);
}

export function findings(list) {
  return h('ul.stack.tight', (list ?? []).slice(0, 100).map((found) => {
    const kind = found.severity === 'error' || !found.severity ? 'bad' : 'warn';
    return h('li', note(kind, h('strong', sentence(found.what)), found.file ? h('div.small.mono', found.file) : null,
      found.paths?.length ? h('div.small', t('check.affects', { paths: found.paths.join(', ') })) : null));
  }));
}

function report(result) {
  const report = result.report ?? (result.scrub?.state ? result.scrub : result);
  // A scrub that the daemon has only begun says nothing about the volume yet.
  if (['running', 'paused', 'none'].includes(report.state)) return note('', t('care.scrub.begun'));
  const list = report.findings ?? report.places ?? [];
  const errors = report.error_count ?? report.damage_count ?? list.length;
  const structure = report.structure ?? {};
  const scrub = report.scrub ?? (report.segment_bytes === undefined ? {} : report);
  const records = report.records ?? {};
  return h('div.stack.tight',
    errors ? note('bad', t('check.errors', { n: errors })) : note('ok', t('check.clean')),
    facts([[t('check.files'), structure.inode_count === undefined ? null : number(structure.inode_count)],
      [t('check.names'), structure.name_count === undefined ? null : number(structure.name_count)],
      [t('check.data'), structure.data_bytes === undefined ? null : bytes(structure.data_bytes)],
      [t('check.records'), scrub.record_count ? number(scrub.record_count) : null],
      [t('check.verified'), scrub.segment_bytes + (scrub.database_bytes ?? 0) ? bytes(scrub.segment_bytes + (scrub.database_bytes ?? 0)) : report.done_bytes ? bytes(report.done_bytes) : null],
      [t('check.opened'), records.opened_count ? number(records.opened_count) : null]]),
    findings(list));
}

// A step of a plan: what is done and why, which files it concerns, and bytes that are lost by it.
function planLine(step) {
  const isLoss = step.kind === 'lost' || step.kind === 'dropped';
  const text = step.why || step.kind;
  return h('li.row.nowrap.top', icon(isLoss ? 'warning' : 'repair'), h('div.grow', h('div', sentence(text)),
    step.paths?.length ? h('div.small.mono.wrap-anywhere', step.paths.slice(0, 8).map(shown).join(', ')) : null,
    Number.isFinite(step.size) ? h('div.small.muted', t('repair.bytes', { size: bytes(step.size), offset: number(step.offset ?? 0) })) : null));
}

export function plan(result) {
  const lines = result.plan ?? [];
  const left = result.left ?? [];
  return h('div.stack.tight',
    lines.length ? [h('h3', t('repair.plan')), h('ol.plan.stack.tight', lines.map(planLine))] : note(left.length ? 'warn' : 'ok', t(left.length ? 'repair.cannot' : 'repair.nothing')),
    left.length ? [h('h3', t('repair.left')), findings(left)] : null,
    lines.length && result.plan_hash ? h('p.muted.small.wrap-anywhere', t('repair.hash'), ' ', mono(fingerprint(result.plan_hash))) : null);
}

// What a rotation leaves to do for people.
function newFingerprint(hex) {
  return note('', h('strong', t('volume.new_fingerprint')), h('div.wrap-anywhere', { 'data-fingerprint': hex }, mono(fingerprint(hex))),
    h('p.small', t('rotate.tell')), button(t('ui.copy'), () => copyText(hex), { kind: 'small', name: 'copy' }));
}

function repaired(result, volume) {
  const left = result.left ?? [];
  return h('div.stack.tight',
    note(left.length ? 'warn' : 'ok', t(result.is_changed ? 'repair.done' : 'repair.nothing', { n: result.step_count ?? 0 })),
    result.lost_count ? note('warn', t('repair.lost', { n: result.lost_count })) : null,
    left.length ? [h('h3', t('repair.left')), findings(left)] : null,
    result.saved_plan ? h('details', h('summary', t('repair.undo')), commandBox(`fsck.nacre --undo ${result.saved_plan} ${quote(volume)}`)) : null);
}

function backup(result) {
  return h('div.stack.tight', note(result.damage_count ? 'warn' : 'ok', t('backup.done', { target: shown(result.target ?? '') })),
    facts([[t('backup.total'), bytes(result.total_bytes)], [t('backup.copied'), bytes(result.copied_bytes)],
      [t('backup.files'), number(result.file_count)], [t('backup.removed'), number(result.removed_file_count)],
      [t('backup.damage'), result.damage_count ? number(result.damage_count) : null]]));
}

function recovery(result) {
  if (!result.secret) return null;
  const place = h('div');
  place.append(button(t('recovery.show'), async (event) => {
    const control = event.currentTarget;
    control.disabled = true;
    await showRecoveryKey(result.secret);
    place.replaceChildren(h('p.muted.small', t('recovery.shown_once')));
  }, { kind: 'primary', name: 'key' }));
  return place;
}

// Fetches a recovery key, once, and shows it to be printed or copied.
export async function showRecoveryKey(id, volume = '') {
  let text;
  try {
    text = (await takeSecret(id)).trim();
  } catch (error) {
    await dialog({ title: t('recovery.title'), body: errorNote(error), actions: [{ label: t('ui.close') }] });
    return;
  }
  await dialog({ title: t('recovery.title'), wide: true, stays: true, body: [h('p', t('recovery.text')),
    h('div.recovery', { 'data-recovery': true, tabindex: '0' }, text),
    h('p.muted.small', volume ? t('recovery.for', { volume: shown(volume) }) : null),
    note('warn', t('recovery.once'))],
  actions: [{ label: t('ui.copy'), run: async () => {
    await copyText(text);
    return false;
  } }, { label: t('recovery.print'), run: () => {
    window.print();
    return false;
  } }, { label: t('recovery.kept'), kind: 'primary', run: () => true }] });
}

export function resultOf(job) {
  const { result } = job;
  if (!result) return null;
  switch (job.kind) {
    case 'keygen': return keygen(result);
    case 'inspect': return h('ul.stack', (result.containers ?? []).map(container));
    case 'check': return report(result);
    case 'scrub': return result.findings || result.segment_bytes !== undefined || result.scrub || result.report ? report(result) : null;
    case 'repair_plan': return plan(result);
    case 'repair': return repaired(result, job.volume);
    case 'backup': return backup(result);
    case 'key_add': return recovery(result);
    case 'compare': return h('a', { href: '#/compare' }, t('compare.show', { n: result.rows?.length ?? 0, size: bytes(result.bytes) }));
    case 'rotate': case 'key_remove': return result.fingerprint ? newFingerprint(result.fingerprint) : null;
    case 'make': return result.volume ? h('a', { href: `#/volumes/${encodeURIComponent(result.volume.path)}` }, t('wizard.show', { name: result.volume.name || dash })) : null;
    default: return null;
  }
}
