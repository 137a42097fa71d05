//! The `querent` command: parses the arguments, runs one of [`commands`], turns what went wrong into
//! a message and an exit code.

// Each says why it is sound.
#![deny(clippy::undocumented_unsafe_blocks)]
// What goes wrong is a message and an exit code; only tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod commands;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::{
    Failure, Talk, ask, compare, completions, data, eval, flags, info, init, methods, page, predict, report,
    train,
};
use std::io::Write;
use std::process::ExitCode;

/// Learns which measurement to ask for next, and when to stop asking.
#[derive(Parser)]
#[command(name = "querent", version, about, after_help = HELP)]
struct Args {
    /// Say more about what is done, on standard error.
    #[arg(long, short, global = true)]
    verbose: bool,
    /// Say nothing but results and errors.
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Args),
    Train(train::Args),
    Eval(eval::Args),
    Ask(ask::Args),
    Predict(predict::Args),
    Page(page::Args),
    Report(report::Args),
    Compare(compare::Args),
    Data(data::Args),
    Methods(methods::Args),
    Info(info::Args),
    Completions(completions::Args),
}

const HELP: &str = "\
Examples:
  querent init clinic.csv --target diagnosis           looks at a table, writes problem.toml; put prices in
  querent train problem.toml --alpha 0.05              learns what to ask, leaves runs/NAME
  querent ask runs/NAME/model.safetensors              asks you about one case
  querent predict runs/NAME/model.safetensors new.csv  asks through a table without labels
  querent page runs/NAME/model.safetensors             makes one HTML file that asks
  querent report runs/NAME                             draws the run as one HTML page
  querent eval runs/NAME/model.safetensors new.csv     how it does on other rows
  querent compare problem.toml                         every method, and what it reaches at which cost
  querent data list                                    data sets that can be trained on by name
  querent methods                                      the methods, and what can be set
  querent info                                         what this machine offers, and how fast it trains
  querent help train                                   all about a command

Results go to standard output, everything else to standard error. The exit code is 0 if all went
well and 2 if something was wrong with the arguments, a file or a device, or if it was interrupted.
RUST_LOG sets the log level in more detail than --verbose.";

/// What goes wrong ends with this.
const WRONG: u8 = 2;

fn main() -> ExitCode {
    let matches = flags::with_clear_numbers(Args::command()).get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let level = match (args.verbose, args.quiet) {
        (true, _) => "info",
        (_, true) => "error",
        _ => "warn",
    };
    let talk = if args.quiet { Talk::Quiet } else { Talk::Plain };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level))
        .format_timestamp(None)
        .init();
    let mut out = std::io::stdout().lock();
    let done = match args.command {
        Command::Init(args) => init::run(&args, talk, &mut out),
        Command::Train(args) => train::run(&args, talk, &mut out),
        Command::Eval(args) => eval::run(&args, talk, &mut out),
        Command::Ask(args) => ask::run(&args, talk, &mut out),
        Command::Predict(args) => predict::run(&args, talk, &mut out),
        Command::Page(args) => page::run(&args, talk, &mut out),
        Command::Report(args) => report::run(&args, talk, &mut out),
        Command::Compare(args) => compare::run(&args, talk, &mut out),
        Command::Data(args) => data::run(&args, talk, &mut out),
        Command::Methods(args) => methods::run(&args, &mut out),
        Command::Info(args) => info::run(&args, talk, &mut out),
        Command::Completions(args) => completions::run(&args, Args::command(), &mut out),
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
