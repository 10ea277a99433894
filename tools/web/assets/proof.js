// SPDX-License-Identifier: Apache-2.0
// What the page keeps of its session, and the proof that the server is the one that began it. If
// that server ends, another user of the machine can listen at its port: so the server shows that it
// has the session's proof key before each request that has the token. API.md, "Proof of the server".

const names = { token: 'nacre.token', session: 'nacre.session', proof_key: 'nacre.proof_key' };
const purpose = new TextEncoder().encode('nacre web proof');
const nonceSize = 32;

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
  return crypto.subtle.verify('HMAC', key, fromHex(answer.proof), new Uint8Array([...purpose, ...nonce]));
}
