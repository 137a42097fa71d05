//! Other implementations of the same work, as child processes that answer one request a line.
//!
//! Requests and answers are JSON objects:
//! `{"do": "step", "shape": {…}, "batch": 128, "rows": 4096}` or `{"do": "inference", "shape": {…}, "batch": 1}`
//! prepares (compiles, warms up), answered by `{"ready": true}`; then `{"do": "time", "seconds": 0.5}` works
//! for about so long and is answered by `{"times": 12, "seconds": 0.51}`. `{"error": "…"}` answers what cannot
//! be done. Between requests a peer waits and uses no core, so that rounds can be interleaved.

use super::Outcome;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// How a peer is started.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Its name in tables and on the command line.
    pub name: &'static str,
    /// A script in `benches/peers`, or the crate's program if it does not end in `.py`.
    program: &'static str,
    arguments: &'static [&'static str],
    /// It uses the same adapter as our GPU engine.
    pub on_gpu: bool,
    /// It can be asked for inference.
    pub infers: bool,
}

/// Every peer there is.
pub const PEERS: [Recipe; 6] = [
    Recipe { name: "pytorch", program: "pytorch_eager.py", arguments: &[], on_gpu: false, infers: true },
    Recipe { name: "compiled", program: "pytorch_compiled.py", arguments: &[], on_gpu: false, infers: false },
    Recipe { name: "jax", program: "jax_step.py", arguments: &[], on_gpu: false, infers: true },
    Recipe { name: "jax-derived", program: "jax_derived.py", arguments: &[], on_gpu: false, infers: false },
    Recipe { name: "burn-cpu", program: "burn", arguments: &["cpu"], on_gpu: false, infers: false },
    Recipe { name: "burn-wgpu", program: "burn", arguments: &["wgpu"], on_gpu: true, infers: false },
];

/// The peers of some names, for clap; `all` is all of them.
pub fn parse(name: &str) -> Result<Vec<Recipe>, String> {
    let found: Vec<Recipe> = PEERS.into_iter().filter(|peer| name == "all" || peer.name == name).collect();
    if found.is_empty() {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        return Err(format!("no peer of that name; there are {}, and all", names.join(", ")));
    }
    Ok(found)
}

/// Where the peers are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers")
}

/// Python with the packages of `setup.sh`: its environment, or what `QUERENT_PEERS_PYTHON` says.
fn python() -> PathBuf {
    std::env::var_os("QUERENT_PEERS_PYTHON").map_or_else(|| folder().join(".venv/bin/python"), PathBuf::from)
}

/// The program of the burn crate, as `setup.sh` leaves it.
fn burn() -> PathBuf {
    std::env::var_os("QUERENT_PEERS_BURN")
        .map_or_else(|| folder().join("burn/target/release/querent-peer-burn"), PathBuf::from)
}

/// A peer that is running.
pub struct Peer {
    /// How it was started.
    pub recipe: Recipe,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer; it has nothing to do yet.
    pub fn start(recipe: Recipe) -> Outcome<Self> {
        let script = recipe.program.ends_with(".py");
        let program = if script { python() } else { burn() };
        if !program.exists() {
            let path = program.display();
            return Err(format!("{path} is not there: run `sh benches/peers/setup.sh` first").into());
        }
        let mut command = Command::new(program);
        if script {
            command.arg(folder().join(recipe.program));
        }
        command.args(recipe.arguments).arg("--serve");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take().ok_or("a peer without an input")?;
        let answers = BufReader::new(child.stdout.take().ok_or("a peer without an output")?);
        Ok(Self { recipe, child, requests, answers })
    }

    fn ask(&mut self, request: &Value) -> Outcome<Value> {
        writeln!(self.requests, "{request}")?;
        self.requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(
                format!("{} ended without an answer: {}", self.recipe.name, self.child.wait()?).into()
            );
        }
        let answer: Value = serde_json::from_str(&line)
            .map_err(|error| format!("{} answered {line:?}: {error}", self.recipe.name))?;
        match answer.get("error") {
            Some(error) => Err(format!("{}: {error}", self.recipe.name).into()),
            None => Ok(answer),
        }
    }

    /// Prepares some work.
    pub fn prepare(&mut self, request: &Value) -> Outcome<()> {
        self.ask(request).map(drop)
    }

    /// Works for about so many seconds; returns how often the work was done in a second.
    pub fn rate(&mut self, seconds: f64) -> Outcome<f64> {
        let answer = self.ask(&json!({ "do": "time", "seconds": seconds }))?;
        let number = |key: &str| {
            answer.get(key).and_then(Value::as_f64).ok_or_else(|| format!("{answer} has no {key}"))
        };
        Ok(number("times")? / number("seconds")?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
