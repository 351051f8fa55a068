// `shredway completion`: prints a completion script for a shell.
//
// The scripts contain everything: a Tab starts no program.

import { readAction } from "../terminal/actions.ts";
import { type Command, exitCodes } from "../terminal/command.ts";
import { bashCompletion } from "./bash-completion.ts";
import { fishCompletion } from "./fish-completion.ts";
import { zshCompletion } from "./zsh-completion.ts";

const actions = {
  bash: { help: "print the script for bash" },
  zsh: { help: "print the script for zsh" },
  fish: { help: "print the script for fish" },
} as const;

const scripts: Readonly<Record<keyof typeof actions, (commands: readonly Command[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** `load` returns all commands, including this one. */
export function completionCommand(load: () => Promise<readonly Command[]>): Command {
  return {
    name: "completion",
    summary: "print a completion script for bash, zsh or fish",
    usage: ["completion bash", "completion zsh", "completion fish"],
    description: `
Prints a script with which the shell completes commands, actions, options, their values and file names.
Repeat the installation after an upgrade of shredway.

bash, for the current shell only:
  source <(shredway completion bash)
bash, permanently (needs the package bash-completion); for all users: /etc/bash_completion.d/shredway
  mkdir -p ~/.local/share/bash-completion/completions
  shredway completion bash > ~/.local/share/bash-completion/completions/shredway
zsh, as a file _shredway in a folder of fpath:
  mkdir -p ~/.zfunc && shredway completion zsh > ~/.zfunc/_shredway
zsh, in ~/.zshrc, unless it contains these lines already:
  fpath=(~/.zfunc $fpath)
  autoload -U compinit && compinit
fish:
  shredway completion fish > ~/.config/fish/completions/shredway.fish`,
    actions,
    options: {},
    examples: [
      "source <(shredway completion bash)",
      "shredway completion zsh > ~/.zfunc/_shredway",
      "shredway completion fish > ~/.config/fish/completions/shredway.fish",
    ],
    run: async (args, terminal) => {
      const { action } = readAction(args, { name: "completion", actions, options: {} });
      terminal.line(scripts[action](await load()).trimEnd());
      return exitCodes.ok;
    },
  };
}
