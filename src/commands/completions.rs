//! `querent completions`: completions for a shell.

use clap_complete::Shell;
use std::io::Write;

/// Write completions for a shell to standard output.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

const HELP: &str = "\
Examples:
  querent completions bash > ~/.local/share/bash-completion/completions/querent
  querent completions zsh > ~/.zfunc/_querent
  querent completions fish > ~/.config/fish/completions/querent.fish";

/// Runs the command.
///
/// # Errors
/// The output cannot be written.
pub fn run(args: &Args, mut command: clap::Command, out: &mut impl Write) -> Result<(), super::Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "querent", &mut text);
    out.write_all(&text)?;
    Ok(())
}
