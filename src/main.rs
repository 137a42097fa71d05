//! The `querent` command: parses the arguments, runs one of [`commands`], turns what went wrong into
//! a message and an exit code.

mod commands;

use clap::{Parser, Subcommand};
use commands::{Failure, info};
use std::io::Write;
use std::process::ExitCode;

/// Learns which measurement to ask for next, and when to stop asking.
#[derive(Parser)]
#[command(version, about, after_help = HELP)]
struct Args {
    /// Say more about what is done, on standard error.
    #[arg(long, short, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Info(info::Args),
}

const HELP: &str = "\
Examples:
  querent info                      what this machine offers, and how fast it trains
  querent help info                 what else `info` can do

Results go to standard output, everything else to standard error. The exit code is 0 if all went
well and 2 if something was wrong with the arguments, a file or a device.
RUST_LOG sets the log level in more detail than --verbose.";

/// What goes wrong ends with this.
const WRONG: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    let level = if args.verbose { "info" } else { "warn" };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level))
        .format_timestamp(None)
        .init();
    let mut out = std::io::stdout().lock();
    let done = match args.command {
        Command::Info(args) => info::run(&args, &mut out),
    };
    match done.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever was reading has seen enough (`querent info | head -1`).
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // If even this cannot be said, the exit code still can.
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::from(WRONG)
        }
    }
}
