//! `querent compare`: every method on every table, cell by cell.

mod cell;
mod collect;
mod options;
mod plan;
mod text;
mod variant;
mod work;

use super::train::EngineName;
use super::{Failure, Talk, say, write_table};
use plan::Plan;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Compare methods on the same rows: trains each on each table, and draws what they reach at which cost.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Problem files, or names of data sets (`querent data list`); none to go on with what is planned in --out.
    tables: Vec<String>,
    /// The methods: `all`, or some of `querent methods`, `tree`, `everything` and `nothing`.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "all")]
    methods: Vec<String>,
    /// Seeds of weights and noise.
    #[arg(long, value_name = "N,M,…", value_parser = seeds, default_value = "0")]
    seeds: Seeds,
    /// The α of methods that are trained for one at a time, and the range of those that are trained for many
    /// [auto: from where much is asked to where little is, by what the classes are like and what features cost].
    #[arg(long, value_name = "auto|A,B,…", value_parser = alphas, default_value = "auto")]
    alphas: Alphas,
    /// Also train methods that learn a range of α for each α alone.
    #[arg(long)]
    separate: bool,
    /// Points of a curve, at most; validation rows choose them, where it bends.
    #[arg(long, value_name = "N", default_value_t = 7)]
    points: usize,
    /// A method under other settings, which --set says, beside the others: an ablation; may be repeated.
    #[arg(long, value_name = "NAME=METHOD")]
    variant: Vec<String>,
    /// Any setting of a method or a variant; may be repeated.
    #[arg(long, value_name = "NAME:FIELD=VALUE")]
    set: Vec<String>,
    /// Minutes of each training, at most: see `querent train`. How long epochs are is then measured, so results differ.
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// Epochs of each stage of a training, at most.
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Training steps of an epoch, at most.
    #[arg(long, value_name = "N")]
    epoch_steps: Option<usize>,
    /// Width of the hidden layers.
    #[arg(long, value_name = "N")]
    hidden: Option<usize>,
    /// Validation and test rows, at most, the same for all methods: rows at even distances.
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// What computes; a cell takes one core.
    #[arg(long, value_enum, default_value = "cpu")]
    engine: EngineName,
    /// Where everything goes.
    #[arg(long, value_name = "DIR", default_value = "runs/compare")]
    out: PathBuf,
    /// Cells at a time [default: as many as there are cores].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Plan the cells, and list them with how far each is; run nothing.
    #[arg(long, conflicts_with_all = ["cell", "collect"])]
    list: bool,
    /// Run one cell of the plan in --out, by its number in --list.
    #[arg(long, value_name = "I", conflicts_with_all = ["collect", "tables"])]
    cell: Option<usize>,
    /// Put the outcomes of all cells of the plan in --out together.
    #[arg(long, conflicts_with = "tables")]
    collect: bool,
    /// Where the catalog's files are [default: QUERENT_DATA, or `querent` in the user's data folder].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// End when standard input does: for cells that another process watches over.
    #[arg(long, hide = true)]
    attended: bool,
}

/// Seeds, each once.
#[derive(Clone, Debug, PartialEq)]
pub struct Seeds(Vec<u64>);

/// Which α.
#[derive(Clone, Debug, PartialEq)]
pub enum Alphas {
    /// Found by the method, or by the table.
    Auto,
    /// Those that were said, from the smallest.
    These(Vec<f64>),
}

// Examples fit 80 columns; a paragraph is one line, which clap breaks where the terminal ends.
const HELP: &str = "\
Examples:
  querent compare clinic.toml                     every method on a table
  querent compare syn1 splice --seeds 0,1,2       two data sets, three seeds
  querent compare clinic.toml --methods nmppg,fixed,tree,everything
  querent compare clinic.toml --epochs 2 --epoch-steps 50     a quick look
  querent compare syn1 --methods nmppg --variant soft=nmppg --set soft:rollout=Soft
  querent compare clinic.toml --list --out cmp    plans, lists the cells
  querent compare --out cmp --cell 3              runs one of them, anywhere
  querent compare --out cmp --collect             puts them together

A cell is one training: a method or a variant, a table, a seed, and, for a method that learns one α at a time, α. Each has a folder in --out \
with its outcome, named by a hash of what it depends on: the table's bytes, the settings and the version. What is there is not \
done again, so that a comparison that was killed goes on, and one with more tables or seeds only does what is new. A cell that \
fails is told and does not stop the others.

--out then has results.csv (a line a point), areas.csv (what lies between two curves, with its standard error), times.csv, \
evaluation.csv.gz (a line a test row and step, as `querent eval --traces` writes them) and report.html.";

fn seeds(said: &str) -> Result<Seeds, String> {
    let mut seeds = Vec::new();
    for word in said.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let seed = word
            .parse()
            .map_err(|_| format!("`{word}` is no seed: it must be a whole number, zero or more"))?;
        if !seeds.contains(&seed) {
            seeds.push(seed);
        }
    }
    Ok(Seeds(seeds))
}

fn alphas(said: &str) -> Result<Alphas, String> {
    if said.trim() == "auto" {
        return Ok(Alphas::Auto);
    }
    let mut alphas = Vec::new();
    for word in said.split(',').map(str::trim) {
        match word.parse::<f64>() {
            Ok(alpha) if alpha.is_finite() && alpha > 0.0 => alphas.push(alpha),
            _ => return Err(format!("`{word}` is no α: it must be a number above 0, or `auto` for all")),
        }
    }
    alphas.sort_by(f64::total_cmp);
    alphas.dedup();
    Ok(Alphas::These(alphas))
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments or a table; that a cell failed; or a file that cannot be written.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let folder = args.out.as_path();
    if let Some(number) = args.cell {
        if args.attended {
            end_with_input();
        }
        let plan = Plan::load(folder)?;
        let Some(cell) = plan.cells.get(number) else {
            return Err(Failure::Refused(format!(
                "there is no cell {number}: they are 0 to {}",
                plan.cells.len().saturating_sub(1)
            )));
        };
        return cell::run(&plan, cell, folder, talk);
    }
    if args.collect {
        let plan = Plan::load(folder)?;
        return collect::run(&plan, folder, &[], out).map(|_| ());
    }
    let plan = if args.tables.is_empty() { Plan::load(folder)? } else { Plan::new(args, talk)? };
    plan.save(folder)?;
    if args.list {
        return list(&plan, folder, out);
    }
    let failed = work::run(&plan, folder, args.jobs, talk)?;
    let failed = collect::run(&plan, folder, &failed, out)?;
    if failed > 0 {
        return Err(Failure::Refused(format!(
            "{failed} of {} cells failed; the results are those of the others. The same command tries them again",
            plan.cells.len()
        )));
    }
    say(talk, format_args!("written: {}", folder.display()));
    Ok(())
}

fn list(plan: &Plan, folder: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let head = ["cell", "table", "method", "seed", "what", "state"].map(String::from).to_vec();
    let rows = plan.cells.iter().enumerate().map(|(number, cell)| {
        let state = cell.state(folder).word().to_string();
        vec![
            number.to_string(),
            cell.table.clone(),
            cell.method.clone(),
            cell.seed.to_string(),
            cell.what(),
            state,
        ]
    });
    write_table(out, 6, &[head].into_iter().chain(rows).collect::<Vec<_>>())?;
    Ok(())
}

/// From now on this process ends when its standard input does: when whoever started it is gone, however that ended.
fn end_with_input() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(2);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_alphas_are_read() {
        assert_eq!(seeds("2,0,2"), Ok(Seeds(vec![2, 0])));
        assert_eq!(seeds(" , "), Ok(Seeds(Vec::new())));
        assert!(seeds("1,x").expect_err("refused").contains("`x` is no seed"));
        assert_eq!(alphas("auto"), Ok(Alphas::Auto));
        assert_eq!(alphas("0.5, 0.1,0.5"), Ok(Alphas::These(vec![0.1, 0.5])));
        for bad in ["", "0", "-1", "nan", "0.1,all"] {
            assert!(alphas(bad).expect_err("refused").contains("is no α"), "{bad}");
        }
    }
}
