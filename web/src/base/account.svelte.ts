// Who is signed in, on a server with accounts. Without accounts, nothing is requested.

import { currentPath } from './address';
import { get, send, type Account, type Preferences } from './api';
import { dateStyle } from './dateStyle.svelte';
import { here } from './route.svelte';
import { theme } from './theme.svelte';

class Me {
  /** Null: nobody is signed in. Undefined: not known yet. */
  account = $state.raw<Account | null | undefined>(undefined);

  /** Whoever is not signed in may read what is public. */
  visitorsRead = $state(false);

  async load(): Promise<void> {
    const { account, visitors_read } = await get<{ account: Account | null; visitors_read?: boolean }>('auth/session');
    this.visitorsRead = visitors_read ?? true; // an older server does not say so
    this.account = account;
    if (this.account) this.#apply(this.account);
  }

  /** Store preferences of the user, and follow them at once. */
  async prefer(changes: Partial<Preferences>): Promise<void> {
    await send('PATCH', 'account/profile', changes);
    if (!this.account) return;
    this.account = { ...this.account, ...changes };
    this.#apply(this.account);
  }

  #apply({ time_zone, locale, theme: chosen }: Account): void {
    dateStyle.set(time_zone, locale);
    if (chosen) theme.set(chosen);
  }

  /** Whether the user may do this in the organisation. */
  may(action: string): boolean {
    return this.account?.may.includes(action) ?? false;
  }

  get administrator(): boolean {
    return this.account?.org_role === 'admin';
  }

  async signOut(): Promise<void> {
    await send('POST', 'auth/logout');
    this.account = null;
    here.go('/-/login');
  }
}

export const me = new Me();

/** The session has ended: to the page where users sign in. */
export function signOutHere(): void {
  me.account = null;
  if (here.route.page !== 'entry') here.go(signInHref());
}

/** The sign-in page, which leads back to the current view. */
export function signInHref(): string {
  const back = currentPath() + window.location.search;
  return back === '/' ? '/-/login' : `/-/login?next=${encodeURIComponent(back)}`;
}

/** Where to go after signing in: a path of this server only. */
export function nextView(query: URLSearchParams): string {
  const next = query.get('next') ?? (me.account?.landing_page || '/');
  // A step up would leave the path that the server is below.
  return /^\/(?![/\\])[^\s\\]*$/.test(next) && !/^[^?#]*\/(\.|%2e){2}([/?#]|$)/i.test(next) && !next.startsWith('/-/login') ? next : '/';
}
