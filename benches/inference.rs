//! What a trained model takes to answer: the latency of a single decision, and instances a second where
//! 10,000 are answered at once; by `Session`, by the batch evaluator and by peers.
//!
//!     cargo bench --bench inference
//!     cargo bench --bench inference -- --shapes syn1 --batches 1 --peers pytorch,jax --json inference.json
//!
//! A decision is all that happens between an answer and the next question: both networks are evaluated. Every
//! policy here asks to its horizon, so that all do the same work.

mod support;

use clap::Parser;
use querent::data::Part;
use querent::data::{Dataset, Normalization};
use querent::measure::{SHAPES, Shape};
use querent::nmppg::Stepper;
use querent::nn::{Stack, Tensors};
use querent::{Engine, Model, Session, Step};
use serde_json::{Value, json};
use std::path::PathBuf;
use support::contest::{self, Contender};
use support::peers::{self, Peer, Recipe};
use support::stats::{or_dash, short, table};
use support::{Machine, Outcome, write_json};

/// How fast a model answers, ours and others'.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench inference --")]
struct Arguments {
    /// Shapes: syn1, diabetes, cube, mnist [default: syn1, mnist]
    #[arg(long, value_delimiter = ',')]
    shapes: Vec<Shape>,
    /// Instances that are answered at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10_000])]
    batches: Vec<usize>,
    /// Peers to measure in turn with ours: pytorch, jax, or all.
    #[arg(long, value_delimiter = ',', num_args = 0..=1, default_missing_value = "all",
          value_parser = peers::parse)]
    peers: Vec<Vec<Recipe>>,
    /// Rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of a measurement; at least one batch is answered.
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// Writes the results to a file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let shapes =
        if arguments.shapes.is_empty() { vec![SHAPES[0], SHAPES[3]] } else { arguments.shapes.clone() };
    let mut started = Vec::new();
    for recipe in arguments.peers.iter().flatten().filter(|recipe| recipe.infers) {
        started.push(Peer::start(*recipe)?);
    }
    let mut machine = Machine::new();
    let mut results = Vec::new();
    for shape in shapes {
        let network = Network::new(shape)?;
        for &batch in &arguments.batches {
            results.push(network.measure(batch, &mut started, &mut machine, &arguments)?);
        }
    }
    println!("\n{}", machine.describe());
    if let Some(path) = &arguments.json {
        write_json(
            path,
            &json!({ "engine": Engine::cpu().to_string(), "rounds": arguments.rounds,
                                  "seconds": arguments.seconds, "cases": results }),
        )?;
    }
    Ok(())
}

/// A model of random weights that never stops before its horizon.
struct Network {
    shape: Shape,
    policy: Vec<Tensors>,
    predictor: Vec<Tensors>,
    model: Model,
}

impl Network {
    fn new(shape: Shape) -> Outcome<Self> {
        let weights = |outputs, which| {
            let stack = Stack::new(0, &[shape.columns + shape.d, shape.hidden, shape.hidden, outputs]);
            stack.unpack(&stack.init(1, which))
        };
        let (mut policy, predictor) = (weights(shape.d + 1, 0), weights(shape.classes, 1));
        policy[2].bias[shape.d] = -1e6;
        let normalization = Normalization::identity(shape.columns);
        let model = querent::nmppg::model(
            shape.problem()?,
            normalization,
            shape.config(128),
            policy.clone(),
            predictor.clone(),
            Vec::new(),
        )?;
        Ok(Self { shape, policy, predictor, model })
    }

    fn measure(
        &self,
        batch: usize,
        started: &mut [Peer],
        machine: &mut Machine,
        arguments: &Arguments,
    ) -> Outcome<Value> {
        let shape = self.shape;
        println!(
            "\n{} (d {}, k {}, C {}, h {}), batch {batch}",
            shape.name, shape.d, shape.k, shape.classes, shape.hidden
        );
        let data = shape.table(128, batch)?;
        let columns = columns_of(&data);
        let mut session = self.model.session();
        let mut stepper = Stepper::new(&Engine::cpu(), &data, shape.config(128))?;
        stepper.set_weights(&self.policy, &self.predictor);
        let asked = stepper.evaluate_blocking(Part::Test)?.acquisitions;
        if asked != shape.k as f64 {
            return Err(format!("{asked} questions an instance, but {} were expected", shape.k).into());
        }
        let mut contenders = vec![
            Contender::ours("session", |times| {
                (0..times).try_for_each(|_| answer_all(&mut session, &data, &columns))
            })?,
            Contender::ours("evaluator", move |times| {
                for _ in 0..times {
                    stepper.evaluate_blocking(Part::Test)?;
                }
                Ok(())
            })?,
        ];
        let request = json!({ "do": "inference", "shape": shape.to_json(), "batch": batch });
        for peer in started {
            match peer.prepare(&request) {
                Ok(()) => contenders.push(Contender::peer(peer)),
                Err(error) => println!("not measured: {error}"),
            }
        }
        contest::run(&mut contenders, machine, arguments.rounds, arguments.seconds)?;
        Ok(self.report(batch, &contenders))
    }

    /// Prints a table, and returns the same as JSON.
    fn report(&self, batch: usize, contenders: &[Contender]) -> Value {
        let (shape, gigaflops) = (self.shape, self.shape.greedy_flops() / 1e9);
        let head =
            ["", "µs a decision", "instances/s", "GFLOP/s", "session is × faster", "evaluator is × faster"];
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        for (index, contender) in contenders.iter().enumerate() {
            let per_second = contender.median().map(|rate| rate * batch as f64);
            let decision = per_second.map(|rate| 1e6 / (rate * shape.k as f64));
            let flops = per_second.map(|rate| rate * gigaflops);
            let ratios = [0, 1].map(|our| contenders[our].times(contender).filter(|_| index > 1));
            rows.push(vec![
                contender.name.clone(),
                or_dash(decision),
                or_dash(per_second),
                or_dash(flops),
                ratios[0].map_or(String::new(), short),
                ratios[1].map_or(String::new(), short),
            ]);
            all.push(json!({ "name": contender.name, "microseconds_a_decision": decision,
                             "instances_per_second": per_second, "session_is_times_faster": ratios[0],
                             "evaluator_is_times_faster": ratios[1],
                             "batches_per_second_by_round": contender.rates }));
        }
        print!("{}", table(&head, &rows));
        json!({ "shape": shape.to_json(), "batch": batch, "results": all })
    }
}

/// The columns of each feature; here they lie side by side.
fn columns_of(data: &Dataset) -> Vec<std::ops::Range<usize>> {
    let groups = data.problem().group_of_column();
    let first = |feature: usize| groups.partition_point(|&group| (group as usize) < feature);
    (0..data.problem().features().len()).map(|feature| first(feature)..first(feature + 1)).collect()
}

/// One instance after the other through a session, to the answer.
fn answer_all(session: &mut Session, data: &Dataset, columns: &[std::ops::Range<usize>]) -> Outcome<()> {
    for row in data.splits()[2].x.chunks_exact(data.problem().columns()) {
        session.reset();
        while let Step::Acquire(feature) = session.next() {
            session.observe(feature, &row[columns[feature].clone()])?;
        }
        std::hint::black_box(session.best());
    }
    Ok(())
}
