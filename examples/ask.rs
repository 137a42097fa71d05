//! Asks you, in the terminal, what a trained model wants to know: the smallest deployment.
//!
//! `cargo run --release --example ask -- runs/syn1/model.safetensors`
//! Answer with a number (in the table's units), `n/a` if it cannot be had, or end the input.

use querent::{Model, Result, Step};
use std::io::{BufRead, Write};
use std::process::ExitCode;

fn believe(session: &querent::Session<'_>) {
    for (class, p) in session.model().problem().classes().iter().zip(session.predict()) {
        println!("    {class:>10} {:5.1}% {}", 100.0 * p, "█".repeat((p * 40.0).round() as usize));
    }
}

fn run(path: &str) -> Result<()> {
    let model = Model::load(path)?;
    let mut session = model.session();
    let mut lines = std::io::stdin().lock().lines();
    while let Step::Acquire(feature) = session.next() {
        let asked = &model.problem().features()[feature];
        believe(&session);
        print!("{} (cost {})? ", asked.name, asked.cost);
        // A terminal that cannot be written to will show in the next print as well.
        let _ = std::io::stdout().flush();
        let Some(Ok(line)) = lines.next() else { break };
        let answer = line.trim();
        let told = if answer == "n/a" {
            session.unavailable(feature)
        } else {
            match answer.parse::<f32>() {
                Ok(value) => session.observe(feature, value),
                Err(_) => {
                    println!("`{answer}` is not a number; answer with one, or n/a");
                    continue;
                }
            }
        };
        if let Err(error) = told {
            println!("{error}");
        }
    }
    println!("\nanswer: {} after spending {}", session.label(), session.spent());
    believe(&session);
    Ok(())
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: ask MODEL.safetensors");
        return ExitCode::from(2);
    };
    match run(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
