// Who sees a project, in words.

import type { Visibility } from '../accounts/accounts';

interface Text {
  name: string;
  /** Of a project in a team, and in a user's own space. */
  team: string;
  own: string;
}

export const VISIBILITY_TEXT: Record<Visibility, Text> = {
  private: { name: 'Private', team: 'Only its owner.', own: 'Only you.' },
  restricted: { name: 'Restricted', team: 'Its owner, and members of the team who are added.', own: '' },
  team: { name: 'Team', team: 'Everyone in the team.', own: 'Only you.' },
  organisation: { name: 'Organisation', team: 'Everyone who is signed in can look.', own: 'Everyone who is signed in can look.' },
  public: {
    name: 'Public',
    team: 'Everyone on this server can look; visitors too, if the organisation lets them.',
    own: 'Everyone on this server can look; visitors too, if the organisation lets them.',
  },
  open: { name: 'Open', team: 'As public, and everyone who is signed in can send runs.', own: 'As public, and everyone who is signed in can send runs.' },
};

const WIDTH: Record<Visibility, number> = { private: 0, restricted: 1, team: 2, organisation: 3, public: 4, open: 5 };

/** Whether others see the project than before, who did not. */
export const isWider = (before: Visibility, after: Visibility): boolean => WIDTH[after] > WIDTH[before];
/** Whether everyone on the server sees it. */
export const isForAll = (visibility: Visibility): boolean => WIDTH[visibility] > WIDTH.team;

/** What a change means, and for whom. */
export function changeText(before: Visibility, after: Visibility, own: boolean): string {
  if (after === 'restricted') return 'Members of the team lose access at once, except those who were added. You become a member.';
  if (after === 'private') return 'Everyone but its owner loses access at once, administrators of the team too.';
  if (!isWider(before, after)) return own ? 'Everyone but you loses access at once.' : 'Who is not in the team loses access at once.';
  if (after === 'team') return 'Everyone in the team sees its runs, with their consoles, configurations and host names.';
  if (after === 'open') return 'Everyone who is signed in sees its runs, and can send runs to it.';
  return after === 'public' ? 'Everyone on this server sees its runs. Visitors do too, if the organisation lets them.' : 'Everyone who is signed in sees its runs.';
}
