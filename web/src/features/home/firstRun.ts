// The first-run guide: what to type to send a run to this server.

export interface Way {
  title: string;
  text: string;
  /** What to copy. */
  code: string;
}

export interface GuideFor {
  /** A server of many machines; otherwise this is the page over the journals of this machine. */
  shared: boolean;
  /** Users sign in, so machines need a key. */
  accounts: boolean;
  /** Requests need a token. */
  tokens: boolean;
  /** The address of this server. */
  origin: string;
}

/** What is done once on a machine that trains; nothing is needed on this machine itself. */
export function preparation({ shared, accounts, tokens, origin }: GuideFor): Way | null {
  if (!shared) return null;
  const lines = ['pip install runvitals'];
  if (accounts || tokens) lines.push(`runvitals login ${origin}`);
  lines.push(`export RUNVITALS_SERVER=${origin}`);
  const texts = ['Once on the machine that trains.'];
  if (accounts) texts.push('The login shows a code: confirm it in this browser, and the machine gets a key of its own.');
  else if (tokens) texts.push('The login asks for a token of this server.');
  return { title: 'Set up a machine', text: texts.join(' '), code: lines.join('\n') };
}

/** Three ways to send a run. */
export function ways({ shared, origin }: GuideFor): [Way, Way, Way] {
  return [
    {
      title: 'Any command',
      text: 'In any language, without a change of the program. It records the machine, the output and how the run ends.',
      code: 'runvitals run --project demo -- python train.py',
    },
    {
      title: 'From Python',
      text: 'To log metrics of your own beside those of the machine.',
      code: ['import runvitals', '', 'run = runvitals.init(project="demo", config={"lr": 0.1})', 'for step in range(100):', '    run.log({"loss": 1 / (step + 1)})', 'run.finish()'].join('\n'),
    },
    shared
      ? {
          title: 'Runs that exist already',
          text: 'Runs that were recorded without this server, or by W&B.',
          code: [`runvitals sync --all --to ${origin}`, '', '# files of W&B', 'runvitals import wandb/', `runvitals sync --all --to ${origin}`].join('\n'),
        }
      : { title: 'Runs of W&B', text: 'Run files that W&B wrote become runs here. The files are not changed.', code: 'runvitals import wandb/' },
  ];
}
