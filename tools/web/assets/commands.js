// SPDX-License-Identifier: Apache-2.0
// The command line of each action before it is run. After an action, the server's own text is shown.
import { parentOf, quote } from './paths.js';

const option = (name, value, usual) => (value && value !== usual ? `${name} ${value}` : '');
const line = (...words) => words.flat().filter(Boolean).join(' ');
const file = (input) => quote(input.path ?? input.name);
const secret = (body) => (body.identity ? `--identity ${quote(body.identity)}` : '');

function outputs(body) {
  return [body.output?.kind === 'folder' ? `-C ${quote(body.output.path)}` : '', body.recursive ? '-r' : '',
    body.replace ? '-f' : '', body.remove_input ? '--remove' : '', option('--engine', body.engine, 'auto')];
}

export function encrypt(body) {
  return line('nacre crypt encrypt', body.recipients.map((path) => `--recipient ${quote(path)}`),
    option('--cipher', body.cipher, 'aes-256-gcm'), body.allow_legacy_cipher ? '--allow-legacy-cipher' : '',
    option('--codec', body.codec, 'lz77'), body.level ? `--level ${body.level}` : '',
    option('--padding', body.padding, 'none'), outputs(body), body.inputs.map(file));
}
export const decrypt = (body) => line('nacre crypt decrypt', secret(body), outputs(body), body.inputs.map(file));
export const inspect = (body) => line('nacre crypt inspect', secret(body), body.inputs.map(file));
export const compare = (body) => line('nacre bench all', body.input ? file(body.input) : 'FILE');
export const keygen = (body) => line('nacre crypt keygen', `--bits ${body.bits}`,
  body.count > 1 ? `--count ${body.count}` : '', body.no_passphrase ? '--no-passphrase' : '',
  option('--engine', body.engine, 'auto'), quote(`${body.folder}/${body.name}`));

export function make(body) {
  return line('mkfs.nacre', option('--codec', body.codec, 'lz77'), option('--cipher', body.cipher, 'aes-256-gcm'),
    body.allow_legacy_cipher ? '--allow-legacy-cipher' : '', option('--chunk-size', body.chunk_size, '64K'),
    option('--padding', body.padding, 'none'), body.label ? `--label ${quote(body.label)}` : '', quote(body.path));
}
export const mount = (body) => line('mount.nacre', body.read_only ? '-o ro' : '', secret(body),
  body.accept_older_state ? '--accept-older-state' : '', option('--fingerprint', body.fingerprint), option('--engine', body.engine, 'auto'),
  quote(body.path), quote(body.mountpoint));
export const unmount = (body) => line('nacre umount', quote(body.mountpoint));
export const keyAdd = (body) => line('nacre key add', quote(body.path), body.recovery ? '--recovery' : '',
  body.recipient ? `--recipient ${quote(body.recipient)}` : '', body.label ? `--label ${quote(body.label)}` : '', secret(body));
export const keyRemove = (body) => line('nacre key remove', quote(body.path), quote(body.recipient),
  body.revoke ? '--revoke' : '', secret(body));
export const keyPassphrase = (body) => line('nacre key passphrase', quote(body.path));
export const rotate = (body) => line('nacre key rotate',
  body.action === 'pause' ? '--pause' : body.action === 'resume' ? '--resume' : '',
  option('--cipher', body.cipher), option('--codec', body.codec), option('--rate', body.rate), secret(body), quote(body.path));
export const scrub = (body) => line('nacre scrub', body.action === 'begin' ? '' : `--${body.action}`,
  option('--rate', body.rate), quote(body.path));
export const check = (body) => line('fsck.nacre', body.depth === 'checksums' ? '--scrub' : body.depth === 'deep' ? '--deep' : '',
  secret(body), quote(body.path));
export const repair = (body, dry) => line('fsck.nacre --repair', dry ? '--dry-run' : '',
  body.drop_damaged ? '--drop-damaged' : '', option('--expect-plan', body.plan_hash), secret(body), quote(body.path));
export const backup = (body) => line('nacre backup', body.verify ? '--verify' : '', quote(body.path), quote(body.target));
// The settings, the keyring and the unit, a line each.
export function atLogin(state, source, body) {
  const setting = (name, value) => quote(`${name}="${value.replace(/["\\$`]/g, '\\$&')}"`);
  const instance = state.unit.replace(/^nacre-mount@|\.service$/g, '');
  return [`mkdir -p ${quote(parentOf(state.settings))}`,
    line("printf '%s\\n'", setting('NACRE_VOLUME', body.path), setting('NACRE_MOUNTPOINT', body.mountpoint), setting('NACRE_PASSPHRASE_COMMAND', source.command), '>', quote(state.settings)),
    source.name === 'keyring' ? line('secret-tool store', `--label=${quote(`Nacre: ${instance}`)}`, 'nacre', instance) : '',
    `systemctl --user enable ${quote(state.unit)}`];
}
