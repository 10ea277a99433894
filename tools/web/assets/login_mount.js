// SPDX-License-Identifier: Apache-2.0
// Mounting at login: what the user's own systemd says of a volume's unit, and the button that
// switches it on and off.
import { get, giveSecret, session } from './api.js';
import { pathField } from './chooser.js';
import * as commands from './commands.js';
import { fill, h } from './dom.js';
import { choices, passphrase } from './fields.js';
import { sentence } from './format.js';
import { t, tOr } from './i18n.js';
import { join, parentOf, shown } from './paths.js';
import { facts } from './results.js';
import { start } from './store.js';
import { button, commandDetails, dialog, errorNote, note, pill, skeleton, toast } from './ui.js';
import { finish, nameOfVolume } from './volume_state.js';

// The card asks again whenever the volume's state comes, so it shows changes that others made.
export function loginCard(context) {
  const place = h('div', skeleton(2));
  const sign = h('span');
  const action = h('div');
  let key = '';
  let isAsking = false;
  const look = async () => {
    if (isAsking) return;
    isAsking = true;
    try {
      const state = (await get('/api/volumes/at_login', { path: context.now().path })).at_login;
      const now = JSON.stringify(state);
      if (now !== key) draw(state);
      key = now;
    } catch (error) {
      key = '';
      fill(sign, pill(t('login.unavailable'), 'warn'));
      fill(place, errorNote(error));
      fill(action);
    }
    isAsking = false;
  };
  const draw = (state) => {
    fill(sign, state.is_available ? pill(t(state.is_enabled ? 'login.on' : 'login.off'), state.is_enabled ? 'ok' : 'hollow') : pill(t('login.unavailable'), 'hollow'));
    fill(place, state.is_available ? null : note('', h('strong', t('login.unknown')), sentence(state.why)),
      state.is_enabled ? facts([[t('login.place'), state.mountpoint ? shown(state.mountpoint) : null], [t('login.source'), state.source ? t(`login.source.${state.source}`) : null],
        [t('login.state'), tOr(`login.active.${state.active}`, state.active)], [t('login.unit'), h('code', state.unit)]]) : null);
    fill(action, !state.is_available ? null : state.is_enabled
      ? button(t('login.turn_off'), (event) => turnOff(context.now(), event.currentTarget, look), { 'data-login': 'off' })
      : button(t('login.turn_on'), () => turnOn(context.now(), state, look), { 'data-login': 'on' }));
  };
  context.listen(look);
  return h('section.card.stack.tight', { 'data-card': 'login' }, h('div.card-head', h('div', h('div.row', h('h2', t('login.title')), sign),
    h('p.muted.small', t('login.text'))), action), place);
}

async function turnOn(volume, state, look) {
  const usual = state.mountpoint || volume.last_mountpoint || volume.mountpoint ||
    join(parentOf(volume.path) === '/' ? session.home : parentOf(volume.path), `${volume.path.split('/').pop()}-open`);
  const place = pathField(t('login.place'), { value: usual, onchange: () => details.renew() });
  const secret = passphrase(t('opener.passphrase'), { hint: t('login.needs_passphrase') });
  const usable = state.sources.filter((one) => one.is_available);
  const missing = state.sources.filter((one) => !one.is_available);
  const source = usable.length ? choices(t('login.source'), usable.map(({ name }) => ({ value: name, label: t(`login.source.${name}`), text: t(`login.source.${name}.text`) })),
    usable[0].name, () => show()) : note('warn', h('strong', t('login.source.none')));
  const show = () => {
    secret.node.hidden = source.value !== 'keyring';
    details.renew();
  };
  const details = commandDetails(() => commands.atLogin(state, usable.find((one) => one.name === source.value) ?? state.sources[0],
    { path: volume.path, mountpoint: place.path() }));
  show();
  const done = await dialog({ title: `${t('login.title')}: ${nameOfVolume(volume)}`, form: true,
    body: [place, source, missing.map((one) => h('p.muted.small', `${t(`login.source.${one.name}`)}: ${one.why}.`)), secret.node, details],
    actions: [{ label: t('ui.cancel'), run: () => null }, ...(usable.length ? [{ label: t('login.turn_on').replace('…', ''), kind: 'primary', run: async () => {
      if (!place.path()) return place.fail(t('field.needed')) ?? false;
      const body = { path: volume.path, mountpoint: place.path(), enabled: true, source: source.value };
      if (source.value === 'keyring') {
        if (!secret.isValid()) return false;
        body.secret = await giveSecret(secret.take());
      }
      return finish(await start('/api/volumes/at_login', body));
    } }] : [])] });
  await look();
  if (done) toast(t('login.done'), 'ok');
}

async function turnOff(volume, control, look) {
  control.disabled = true;
  try {
    await finish(await start('/api/volumes/at_login', { path: volume.path, enabled: false }));
    toast(t('login.undone'), 'ok');
  } catch (error) {
    await dialog({ title: t('login.turn_off'), body: errorNote(error), actions: [{ label: t('ui.close'), kind: 'primary' }] });
  } finally {
    control.disabled = false;
  }
  await look();
}
