// SPDX-License-Identifier: Apache-2.0
// What the page keeps of its session, and the proof that the server is the one that began it. If
// that server ends, another user of the machine can listen at its port: so the server shows that it
// has the session's proof key before each request that has the token. API.md, "Proof of the server".

const names = { token: 'nacre.token', session: 'nacre.session', proof_key: 'nacre.proof_key' };
const utf8 = new TextEncoder();
const proofPurpose = utf8.encode('nacre web proof');
const secretPurpose = utf8.encode('nacre web secret');
const nonceSize = 32;
const sealNonceSize = 12;

export const kept = (name) => sessionStorage.getItem(names[name]);
export const hasSession = () => Object.keys(names).every((name) => kept(name) !== null);

// answer: what the server answered when it began the session. Takes the keys out of it.
export function keepSession(answer) {
  for (const name of Object.keys(names)) {
    sessionStorage.setItem(names[name], answer[name]);
    delete answer[name];
  }
}

export function forgetSession() {
  for (const name of Object.values(names)) sessionStorage.removeItem(name);
}

const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

function fromHex(text) {
  if (!/^([0-9a-f]{2})+$/.test(text)) return new Uint8Array();
  return Uint8Array.from(text.match(/../g), (digits) => parseInt(digits, 16));
}

// True if the server proves itself, false if it does not. Throws if nothing answers. The request
// reveals nothing: the session's ID opens nothing, and the nonce is random.
export async function isProved() {
  const [id, proofKey] = [kept('session'), kept('proof_key')];
  if (!id || !proofKey) return false;
  const nonce = crypto.getRandomValues(new Uint8Array(nonceSize));
  const query = new URLSearchParams({ session: id, nonce: toHex(nonce) });
  const response = await fetch(`/api/session/proof?${query}`,
    { cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer' });
  if (!response.ok) return false;
  const answer = await response.json().catch(() => null);
  if (typeof answer?.proof !== 'string') return false;
  const key = await crypto.subtle.importKey('raw', fromHex(proofKey), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  return crypto.subtle.verify('HMAC', key, fromHex(answer.proof), new Uint8Array([...proofPurpose, ...nonce]));
}

// Encrypts the bytes of a secret for the server that began the session: a nonce, AES-256-GCM, tag.
// The nonce is random and not counted, since a tab that the user duplicates has the same key.
export async function seal(bytes) {
  const material = await crypto.subtle.importKey('raw', fromHex(kept('proof_key')), 'HKDF', false, ['deriveKey']);
  const key = await crypto.subtle.deriveKey({ name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: secretPurpose },
    material, { name: 'AES-GCM', length: 256 }, false, ['encrypt']);
  const nonce = crypto.getRandomValues(new Uint8Array(sealNonceSize));
  const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv: nonce }, key, bytes));
  return new Uint8Array([...nonce, ...sealed]);
}
