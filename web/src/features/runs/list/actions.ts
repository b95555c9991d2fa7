// What a menu offers.

interface Command {
  text: string;
  hint?: string;
  danger?: boolean;
  disabled?: boolean;
  run: () => void;
}

interface Switch {
  text: string;
  checked: boolean;
  disabled?: boolean;
  run: () => void;
}

/** A command, something to switch on and off, or a line between them. */
export type Action = Command | Switch | 'line';
