// Passkeys: what the server asks, and what the browser answers, in the JSON form of WebAuthn.
// `PublicKeyCredential.toJSON` and `parseCreationOptionsFromJSON` do the same, but not in every browser in use.

interface Descriptor {
  type: 'public-key';
  id: string;
  transports?: AuthenticatorTransport[];
}

/** `PublicKeyCredentialRequestOptionsJSON`. */
export interface RequestOptions {
  challenge: string;
  timeout: number;
  rpId: string;
  allowCredentials: Descriptor[];
  userVerification: UserVerificationRequirement;
}

/** `PublicKeyCredentialCreationOptionsJSON`. */
export interface CreationOptions {
  rp: { id: string; name: string };
  user: { id: string; name: string; displayName: string };
  challenge: string;
  pubKeyCredParams: PublicKeyCredentialParameters[];
  timeout: number;
  excludeCredentials: Descriptor[];
  authenticatorSelection: AuthenticatorSelectionCriteria;
  attestation: AttestationConveyancePreference;
}

/** What the server checks: `PublicKeyCredential.toJSON()`. */
export type Answer = Record<string, unknown>;

/** Whether this page may use passkeys. `origin`: where the server says that they work. */
export const passkeysWork = (origin: string | null | undefined): boolean =>
  origin === window.location.origin && 'PublicKeyCredential' in window;

/** Make a passkey on a device that the user chooses. */
export async function makePasskey(options: CreationOptions): Promise<Answer> {
  const publicKey: PublicKeyCredentialCreationOptions = {
    ...options,
    challenge: bytesOf(options.challenge),
    user: { ...options.user, id: bytesOf(options.user.id) },
    excludeCredentials: options.excludeCredentials.map(described),
  };
  const credential = await asked(() => navigator.credentials.create({ publicKey }));
  const response = credential.response as AuthenticatorAttestationResponse;
  return answer(credential, {
    clientDataJSON: textOf(response.clientDataJSON),
    attestationObject: textOf(response.attestationObject),
    transports: response.getTransports?.() ?? [],
  });
}

/** Answer a question by a passkey that the user chooses. */
export async function usePasskey(options: RequestOptions): Promise<Answer> {
  const publicKey: PublicKeyCredentialRequestOptions = {
    ...options,
    challenge: bytesOf(options.challenge),
    allowCredentials: options.allowCredentials.map(described),
  };
  const credential = await asked(() => navigator.credentials.get({ publicKey }));
  const response = credential.response as AuthenticatorAssertionResponse;
  return answer(credential, {
    clientDataJSON: textOf(response.clientDataJSON),
    authenticatorData: textOf(response.authenticatorData),
    signature: textOf(response.signature),
    userHandle: response.userHandle ? textOf(response.userHandle) : null,
  });
}

async function asked(ask: () => Promise<Credential | null>): Promise<PublicKeyCredential> {
  let credential: Credential | null;
  try {
    credential = await ask();
  } catch (problem) {
    const name = problem instanceof DOMException ? problem.name : '';
    if (name === 'InvalidStateError') throw new Error('This device already has a passkey for your account.');
    if (name === 'NotAllowedError') throw new Error('No passkey was used: you cancelled, or none was found.');
    throw problem;
  }
  if (!(credential instanceof PublicKeyCredential)) throw new Error('The browser has no passkey.');
  return credential;
}

const answer = (credential: PublicKeyCredential, response: Record<string, unknown>): Answer => ({
  id: credential.id,
  rawId: textOf(credential.rawId),
  type: credential.type,
  authenticatorAttachment: credential.authenticatorAttachment,
  clientExtensionResults: {},
  response,
});

const described = ({ id, ...others }: Descriptor): PublicKeyCredentialDescriptor => ({ ...others, id: bytesOf(id) });

/** Base64 of URLs, without padding. */
export function textOf(value: ArrayBuffer): string {
  const letters = Array.from(new Uint8Array(value), (byte) => String.fromCharCode(byte)).join('');
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}
