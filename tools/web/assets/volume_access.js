// SPDX-License-Identifier: Apache-2.0
// Who can open a volume: passphrases and public keys; recovery key; change of a passphrase.
import { get, giveSecret } from './api.js';
import { pathField } from './chooser.js';
import * as commands from './commands.js';
import { fill, h } from './dom.js';
import { check, choices, field, passphrase, textInput } from './fields.js';
import { fingerprint } from './format.js';
import { currentLanguage, t } from './i18n.js';
import { icon } from './icons.js';
import { openerFields } from './opener.js';
import { keyPrint, showRecoveryKey } from './results.js';
import { start } from './store.js';
import { button, commandDetails, dialog, errorNote, named, note, skeleton, toast } from './ui.js';
import { finish, nameOfVolume } from './volume_state.js';

export function accessTab(context) {
  const list = h('div', skeleton(3));
  const load = async () => {
    try {
      const found = await get('/api/volumes/keys', { path: context.now().path });
      fill(list, h('ul.divided', { 'aria-label': t('access.list') }, found.recipients.map((one) => row(context.now(), one, found.recipients.length, load))),
        found.is_verified ? null : h('p.muted.small', t('access.unverified')));
    } catch (error) {
      fill(list, errorNote(error));
    }
  };
  load();
  return h('section.card.stack', h('div.card-head', h('div', h('h2', t('access.title')), h('p.muted.small', t('access.text'))),
    h('div.row', button(t('access.passphrase'), () => changePassphrase(context.now(), load), { kind: 'small' }),
      button(t('access.recovery'), () => add(context.now(), load, 'recovery'), { kind: 'small', name: 'print' }),
      button(t('access.add'), () => add(context.now(), load), { kind: 'primary.small', name: 'plus' }))), list);
}

function row(volume, one, count, reload) {
  const label = one.label === one.kind ? '' : one.label;
  const name = label || fingerprint(one.fingerprint, 16);
  return h('li.item.tight', { 'data-recipient': one.fingerprint }, h('span.avatar', icon(one.kind === 'rsa' ? 'people' : 'key')),
    h('div.grow', h('div.wrap-anywhere', h('strong', label || named('recipient', one.kind))),
      h('div.muted.small', label ? `${named('recipient', one.kind)} · ` : '', h('code', fingerprint(one.fingerprint, 16)), since(one.created))),
    button(t('access.remove'), () => removeOne(volume, one, name, reload), { kind: 'small', disabled: count < 2, 'aria-label': t('access.remove_name', { name }) }));
}

function since(created) {
  const time = typeof created === 'number' ? created * 1000 : Date.parse(created ?? '');
  return Number.isFinite(time) ? ` · ${t('access.since', { date: new Date(time).toLocaleDateString(currentLanguage(), { dateStyle: 'medium' }) })}` : '';
}

async function act(path, body, done, reload) {
  const job = await finish(await start(path, body));
  toast(t(done), 'ok');
  await reload();
  return job;
}

async function add(volume, reload, kindWanted = 'passphrase') {
  const opener = openerFields({ first: kindWanted === 'recovery', onchange: () => details.renew() });
  const secret = passphrase(t('access.new_passphrase'), { isNew: true });
  const recipient = pathField(t('access.public_key'), { mode: 'files', hint: t('access.public_key.hint'), onchange: (path) => {
    fill(print, path ? keyPrint(path) : null);
    details.renew();
  } });
  const print = h('div');
  const label = textInput(kindWanted === 'recovery' ? t('recovery.label') : '', { oninput: () => details.renew() });
  const kind = choices(t('access.kind'), ['passphrase', 'rsa', 'recovery'].map((value) => ({ value, label: t(`access.kind.${value}`), text: t(`access.kind.${value}.text`) })), kindWanted, () => show());
  const show = () => {
    secret.node.hidden = kind.value !== 'passphrase';
    recipient.hidden = print.hidden = kind.value !== 'rsa';
    if (kind.value === 'recovery' && !label.value) label.value = t('recovery.label');
    details.renew();
  };
  const body = () => {
    const made = { path: volume.path, label: label.value.trim() };
    if (kind.value === 'recovery') made.recovery = true;
    if (kind.value === 'rsa') made.recipient = recipient.path();
    opener.addTo(made);
    return made;
  };
  const details = commandDetails(() => commands.keyAdd(body()));
  show();
  const job = await dialog({ title: t(kindWanted === 'recovery' ? 'access.recovery' : 'access.add'), form: true,
    body: [kindWanted === 'recovery' ? h('p', t('recovery.text')) : kind, secret.node, recipient, print, field(t('access.label'), label, { hint: t('access.label.hint') }),
      h('hr'), h('p.muted.small', t('access.prove')), opener.node, details],
    actions: [{ label: t('ui.cancel'), run: () => null }, { label: t('access.add_go'), kind: 'primary', run: async () => {
      if (kind.value === 'rsa' && !recipient.path()) return recipient.fail(t('field.needed')) ?? false;
      if ((kind.value === 'passphrase' && !secret.isValid()) || !opener.isValid()) return false;
      const sent = body();
      if (kind.value === 'passphrase') sent.new_secret = await giveSecret(secret.take());
      await opener.giveTo(sent);
      return act('/api/volumes/keys/add', sent, 'access.added', reload);
    } }] });
  if (job?.result?.secret) await showRecoveryKey(job.result.secret, volume.path);
}

async function removeOne(volume, one, name, reload) {
  const opener = openerFields({ onchange: () => details.renew() });
  const revoke = check(t('access.revoke'), true, () => details.renew(), t('access.revoke.hint'));
  const body = () => {
    const made = { path: volume.path, recipient: one.fingerprint || one.label, revoke: revoke.input.checked };
    opener.addTo(made);
    return made;
  };
  const details = commandDetails(() => commands.keyRemove(body()));
  await dialog({ title: t('access.remove_title', { name, volume: nameOfVolume(volume) }), form: true,
    body: [revoke, note('warn', t('access.remove_note')), h('p.muted.small', t('access.prove')), opener.node, details],
    actions: [{ label: t('ui.cancel'), run: () => null }, { label: t('access.remove'), kind: 'danger.primary', run: async () => {
      if (!opener.isValid()) return false;
      const sent = body();
      await opener.giveTo(sent);
      return act('/api/volumes/keys/remove', sent, 'access.removed', reload);
    } }] });
}

async function changePassphrase(volume, reload) {
  const old = passphrase(t('access.old_passphrase'), { first: true });
  const secret = passphrase(t('access.new_passphrase'), { isNew: true });
  await dialog({ title: t('access.passphrase'), form: true, body: [old.node, secret.node, commandDetails(() => commands.keyPassphrase({ path: volume.path }))],
    actions: [{ label: t('ui.cancel'), run: () => null }, { label: t('access.change_go'), kind: 'primary', run: async () => {
      if (!old.isValid() || !secret.isValid()) return false;
      const body = { path: volume.path, secret: await giveSecret(old.take()), new_secret: await giveSecret(secret.take()) };
      return act('/api/volumes/keys/passphrase', body, 'access.changed', reload);
    } }] });
}
