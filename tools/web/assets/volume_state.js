// SPDX-License-Identifier: Apache-2.0
// A volume's state as the server tells it, and the one main action that fits each state.
import { post, session } from './api.js';
import * as commands from './commands.js';
import { pathField } from './chooser.js';
import { h } from './dom.js';
import { check, field, textInput } from './fields.js';
import { t, tOr } from './i18n.js';
import { openerFields } from './opener.js';
import { join, parentOf, shown } from './paths.js';
import { ended, isActive, start, volumes } from './store.js';
import { button, commandDetails, confirm, dialog, errorNote, pill, toast } from './ui.js';

const kinds = { mounted: 'ok', not_mounted: 'hollow', in_use: 'warn', daemon_ended: 'bad', missing: 'warn', not_a_volume: 'bad', elsewhere: 'warn' };

export const nameOfVolume = (volume) => volume.label || volume.name || shown(volume.path);
export const statePill = (volume) => pill(tOr(`state.${volume.state}`, volume.state), kinds[volume.state]);
export const isMounted = (volume) => volume.state === 'mounted';

// Waits for a job and throws its error, so that dialogs show it in place.
export async function finish(job) {
  const done = await ended(job.id);
  if (done.state === 'done' || isActive(done)) return done;
  throw Object.assign(new Error(), done.error ?? { code: 'cancelled', what: t('job.state.cancelled'), where: '', next: '', command: '' });
}

// The main button: mount, unmount, or what the state needs.
export function mainButton(volume, { kind = 'primary' } = {}) {
  const label = (text) => ({ kind, 'data-main': volume.state, 'aria-label': `${text}: ${nameOfVolume(volume)}` });
  switch (volume.state) {
    case 'mounted':
      return volume.is_mine === false ? null : button(t('volume.unmount'), (event) => unmount(volume, event.currentTarget), { ...label(t('volume.unmount')), kind: '', name: 'lock' });
    case 'daemon_ended':
      return button(t('volume.detach'), () => detach(volume), { ...label(t('volume.detach')), kind: 'danger' });
    case 'not_mounted':
      return button(t('volume.mount'), () => mount(volume), { ...label(t('volume.mount')), name: 'unlock' });
    default:
      return null;
  }
}

export async function mount(volume) {
  const opener = openerFields({ first: true, onchange: () => details.renew() });
  const usual = volume.last_mountpoint || join(parentOf(volume.path) === '/' ? session.home : parentOf(volume.path), `${volume.path.split('/').pop()}-open`);
  const place = pathField(t('mount.place'), { value: usual, hint: t('mount.place.hint'), onchange: () => details.renew() });
  const readOnly = check(t('mount.read_only'), false, () => details.renew());
  const older = check(t('mount.accept_older'), false, () => details.renew(), t('mount.accept_older.hint'));
  const fingerprint = textInput('', { oninput: () => details.renew() });
  const body = () => {
    const made = { path: volume.path, mountpoint: place.path(), make_mountpoint: true, read_only: readOnly.input.checked, accept_older_state: older.input.checked };
    const hex = fingerprint.value.replace(/\s/g, '');
    if (hex) made.fingerprint = hex;
    opener.addTo(made);
    return made;
  };
  const details = commandDetails(() => commands.mount(body()));
  const done = await dialog({ title: t('mount.title', { name: nameOfVolume(volume) }), form: true,
    body: [opener.node, place, h('details', h('summary', t('files.more')), h('div.stack.tight', readOnly, older, field(t('mount.fingerprint'), fingerprint, { hint: t('mount.fingerprint.hint') }))), details],
    actions: [{ label: t('ui.cancel'), run: () => null }, { label: t('volume.mount'), kind: 'primary', run: async () => {
      if (!opener.isValid()) return false;
      const sent = body();
      await opener.giveTo(sent);
      return finish(await start('/api/volumes/mount', sent));
    } }] });
  volumes.refresh();
  if (done) toast(t('mount.done', { place: shown(body().mountpoint) }), 'ok');
}

export async function unmount(volume, control) {
  control.disabled = true;
  try {
    await finish(await start('/api/volumes/unmount', { mountpoint: volume.mountpoint }));
  } catch (error) {
    const detachIt = await dialog({ title: t('unmount.failed', { name: nameOfVolume(volume) }), body: [errorNote(error), h('p.muted', t('unmount.busy'))],
      actions: [{ label: t('volume.detach'), kind: 'danger', run: () => true }, { label: t('ui.close'), kind: 'primary', run: () => null }] });
    if (detachIt) await detach(volume);
  } finally {
    control.disabled = false;
    volumes.refresh();
  }
}

async function detach(volume) {
  if (!await confirm(t('detach.title', { name: nameOfVolume(volume) }), t('detach.text'), t('volume.detach'), { danger: true })) return;
  try {
    await finish(await start('/api/volumes/detach', { mountpoint: volume.mountpoint }));
  } catch (error) {
    toast(error.what, 'bad');
  }
  volumes.refresh();
}

export async function openFolder(volume) {
  try {
    await post('/api/volumes/open', { mountpoint: volume.mountpoint });
    toast(t('volume.opened', { place: shown(volume.mountpoint) }));
  } catch (error) {
    await dialog({ title: t('volume.open'), body: errorNote(error), actions: [{ label: t('ui.close'), kind: 'primary' }] });
  }
}
