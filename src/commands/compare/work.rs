//! All cells on one machine: as many at a time as there are cores, each a process of its own with one core, so that one that
//! fails, or is killed, takes no other with it.

use super::plan::Plan;
use crate::commands::{Failure, Talk, say};
use indicatif::{ProgressBar, ProgressStyle};
use querent::Error;
use querent::compare::{Cell, State, Times};
use std::collections::VecDeque;
use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// What a cell says on its way.
const LOG: &str = "log.txt";

/// What a worker tells.
enum News {
    Begun(usize),
    Ended(usize, Result<(), String>),
}

/// Runs what is not done. Cells that fail are told, and given back with the reason; the others go on.
///
/// # Errors
/// The program's own file is not found.
pub fn run(
    plan: &Plan,
    out: &Path,
    jobs: Option<usize>,
    talk: Talk,
) -> Result<Vec<(usize, String)>, Failure> {
    let program = std::env::current_exe()?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut eta = Eta::default();
    let mut open = VecDeque::new();
    for (number, cell) in plan.cells.iter().enumerate() {
        match cell.state(out) {
            State::Done(outcome) => eta.learn(cell, outcome.1),
            _ => open.push_back(number),
        }
    }
    let jobs = jobs.unwrap_or(cores).min(open.len());
    let (all, before) = (plan.cells.len(), plan.cells.len() - open.len());
    say(talk, format_args!("{all} cells, {before} done before, {jobs} at a time"));
    let mut board = Board::new(plan, out, talk, before, jobs);
    board.open = open.iter().copied().collect();
    let queue = Mutex::new(open);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (tell, queue, program) = (tell.clone(), &queue, &program);
            scope.spawn(move || {
                while let Some(number) = queue.lock().ok().and_then(|mut queue| queue.pop_front()) {
                    // If nobody listens any more, there is nothing to tell.
                    let _ = tell.send(News::Begun(number));
                    let done = child(program, &plan.cells[number], out, number);
                    let _ = tell.send(News::Ended(number, done.map_err(|error| error.to_string())));
                }
            });
        }
        drop(tell);
        loop {
            match told.recv_timeout(Duration::from_secs(1)) {
                Ok(news) => board.hear(news, &mut eta),
                Err(mpsc::RecvTimeoutError::Timeout) => board.show(&eta),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    board.bar.finish_and_clear();
    Ok(board.failed)
}

/// Runs one cell in a process of its own.
fn child(program: &Path, cell: &Cell, out: &Path, number: usize) -> Result<(), Failure> {
    let folder = out.join(&cell.folder);
    std::fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
    let log = folder.join(LOG);
    let log = File::create(&log).map_err(|error| Error::io(&log, error))?;
    let mut child = Command::new(program)
        .arg("compare")
        .arg("--out")
        .arg(out)
        .args(["--cell", &number.to_string(), "--attended"])
        .env("RAYON_NUM_THREADS", "1")
        // It ends when this is closed, which it is when this process is gone, by whatever signal.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()?;
    // Not `wait` alone, which closes it.
    let attended = child.stdin.take();
    let status = child.wait()?;
    drop(attended);
    match cell.state(out) {
        State::Done(_) => Ok(()),
        State::Failed(why) if status.code().is_some() => Err(Failure::Refused(why)),
        _ => {
            Err(Failure::Refused(format!("its process ended with {status}; {LOG} in its folder may say why")))
        }
    }
}

/// What cells take, learned from those that are done.
#[derive(Default)]
struct Eta {
    known: Vec<(String, String, f64)>,
}

impl Eta {
    fn learn(&mut self, cell: &Cell, times: Times) {
        self.known.push((cell.table.clone(), cell.method.clone(), times.all));
    }

    /// What a cell may take: as those of the same method and table did, or of the method, or all.
    fn of(&self, cell: &Cell) -> Option<f64> {
        let mean = |is: &dyn Fn(&(String, String, f64)) -> bool| {
            let alike: Vec<f64> = self.known.iter().filter(|known| is(known)).map(|known| known.2).collect();
            (!alike.is_empty()).then(|| alike.iter().sum::<f64>() / alike.len() as f64)
        };
        mean(&|known| known.0 == cell.table && known.1 == cell.method)
            .or_else(|| mean(&|known| known.1 == cell.method))
            .or_else(|| mean(&|_| true))
    }

    /// Seconds that are left for some cells, each of which has run for so long already, at so many at a time.
    fn left<'a>(&self, cells: impl Iterator<Item = (&'a Cell, f64)>, jobs: usize) -> Option<f64> {
        let left = cells.map(|(cell, since)| Some((self.of(cell)? - since).max(0.0)));
        Some(left.sum::<Option<f64>>()? / jobs.max(1) as f64)
    }
}

/// Shows how far everything is: a bar on a terminal, elsewhere a line a cell.
struct Board<'a> {
    plan: &'a Plan,
    out: &'a Path,
    talk: Talk,
    bar: ProgressBar,
    terminal: bool,
    done: usize,
    jobs: usize,
    open: Vec<usize>,
    running: Vec<(usize, Instant)>,
    failed: Vec<(usize, String)>,
}

impl<'a> Board<'a> {
    fn new(plan: &'a Plan, out: &'a Path, talk: Talk, done: usize, jobs: usize) -> Self {
        let terminal = std::io::stderr().is_terminal() && talk > Talk::Quiet;
        let bar = if terminal { ProgressBar::new(plan.cells.len() as u64) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} cells, {msg}") {
            bar.set_style(style);
        }
        bar.set_position(done as u64);
        Self {
            plan,
            out,
            talk,
            bar,
            terminal,
            done,
            jobs,
            open: Vec::new(),
            running: Vec::new(),
            failed: Vec::new(),
        }
    }

    fn hear(&mut self, news: News, eta: &mut Eta) {
        match news {
            News::Begun(number) => self.running.push((number, Instant::now())),
            News::Ended(number, result) => {
                self.done += 1;
                self.open.retain(|&open| open != number);
                self.running.retain(|(running, _)| *running != number);
                let cell = &self.plan.cells[number];
                let took = match cell.state(self.out) {
                    State::Done(outcome) => {
                        eta.learn(cell, outcome.1);
                        format!("{:.0} s", outcome.1.all)
                    }
                    _ => String::new(),
                };
                let (done, all) = (self.done, self.plan.cells.len());
                let what = match result {
                    Ok(()) => took,
                    Err(why) => {
                        let told = format!("failed: {why}");
                        self.failed.push((number, why));
                        told
                    }
                };
                let line = format!("{done}/{all} {}: {what}", cell.name());
                if self.terminal {
                    self.bar.println(line);
                } else {
                    say(self.talk, format_args!("{line}{}", self.left(eta)));
                }
            }
        }
        self.show(eta);
    }

    fn left(&self, eta: &Eta) -> String {
        let since = |number: usize| {
            let begun = self.running.iter().find(|(running, _)| *running == number);
            begun.map_or(0.0, |(_, begun)| begun.elapsed().as_secs_f64())
        };
        let cells = self.open.iter().map(|&number| (&self.plan.cells[number], since(number)));
        match eta.left(cells, self.jobs) {
            Some(seconds) if !self.open.is_empty() => format!(", about {} left", minutes(seconds)),
            _ => String::new(),
        }
    }

    fn show(&self, eta: &Eta) {
        let names: Vec<String> =
            self.running.iter().map(|(number, _)| self.plan.cells[*number].name()).collect();
        self.bar.set_position(self.done as u64);
        self.bar.set_message(format!("{}{}", names.join("; "), self.left(eta)));
    }
}

fn minutes(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_learned_from_what_is_alike() {
        let cell = |table: &str, method: &str| Cell {
            table: table.into(),
            method: method.into(),
            seed: 0,
            alpha: None,
            hash: String::new(),
            folder: String::new(),
        };
        let mut eta = Eta::default();
        assert_eq!(eta.of(&cell("a", "m")), None);
        for (table, method, all) in [("a", "m", 10.0), ("a", "m", 30.0), ("b", "m", 5.0), ("b", "n", 100.0)] {
            eta.learn(&cell(table, method), Times { all, ..Times::default() });
        }
        assert_eq!(eta.of(&cell("a", "m")), Some(20.0));
        assert_eq!(eta.of(&cell("c", "m")), Some(15.0));
        assert_eq!(eta.of(&cell("a", "o")), Some(145.0 / 4.0));
        let [one, other] = [cell("a", "m"), cell("b", "n")];
        // One has run for longer than it should have, the other for 40 of 100 s.
        assert_eq!(eta.left([(&one, 25.0), (&other, 40.0)].into_iter(), 2), Some(30.0));
    }
}
