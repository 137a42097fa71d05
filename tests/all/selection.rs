//! Tier 3, the choice of a feature: its gradient in f64 against central differences and against what the
//! score-function estimator is defined to be; then what hangs on it, the instance's rollouts and the masks
//! drawn from its path.

use crate::rig::{self, Random, Rig, assert_close, differences};
use querent::engine::kernels as k;
use querent::engine::kernels::words::{NEVER, clock, losses};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::nmppg::kernels::{self as own, hyper, scalars};

/// Where a test's acquisition happens.
#[derive(Clone, Copy)]
struct Place {
    rows: usize,
    features: usize,
    step: usize,
    steps: usize,
    soft: bool,
}

impl Place {
    fn pitches(&self) -> (usize, usize) {
        (querent::nn::pitch(self.features + 1), querent::nn::pitch(self.features))
    }

    /// Rows of the tape.
    fn tape(&self) -> usize {
        (self.steps + 1) * self.rows
    }

    /// The first row of this step.
    fn at(&self) -> usize {
        self.step * self.rows
    }

    /// `forward` is the selection, `backward` its gradient.
    fn rig(&self) -> Rig {
        let ((zp, dp), tape) = (self.pitches(), self.tape());
        let mut b = PlanBuilder::new(1);
        let when = b.buffer("when", Elem::U32, self.rows * self.features, Scope::Shared);
        let path = b.buffer("path", Elem::U32, self.steps * self.rows, Scope::Shared);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
        let logits = self.steps * self.rows * zp;
        let (z, gumbel) = (reals("z", logits), reals("gumbel", logits));
        let (relax, tape_scalars) = (reals("relax", tape * 2 * dp), reals("scalars", tape * scalars::LEN));
        let (costs, hyper_id) = (reals("costs", self.features), reals("hyper", hyper::LEN));
        let (m, losses_id) = (reals("m", self.rows * dp), reals("losses", tape * losses::LEN));
        let sizes = [self.rows, self.step, self.steps, self.features, zp, dp].map(|size| size as u32);
        let [rows, step, steps, features, logit_pitch, mask_pitch] = sizes;
        let soft = u32::from(self.soft);
        b.section("forward", |b| {
            b.call(
                own::Select { rows, step, steps, features, logit_pitch, mask_pitch, soft, relaxed: 1 },
                &[z, gumbel, when, relax, path, tape_scalars, costs, hyper_id],
            );
        });
        b.section("backward", |b| {
            b.call(
                own::SelectGrad { rows, step, steps, features, logit_pitch, mask_pitch, relaxed: 1 },
                &[z, relax, m, tape_scalars, losses_id, costs, hyper_id, path],
            );
        });
        Rig::new(b)
    }
}

/// The hyper-parameters of these tests, all others zero.
fn hypers(changes: &[(usize, f64)]) -> Vec<f64> {
    let usual = [
        (hyper::ALPHA, 0.3),
        (hyper::LAMBDA, 0.05),
        (hyper::GUARD, 0.07),
        (hyper::LURE, 0.4),
        (hyper::TAU_HARD, 1.3),
        (hyper::TAU_SOFT, 0.7),
    ];
    let mut values = vec![0.0; hyper::LEN];
    usual.iter().chain(changes).for_each(|&(word, value)| values[word] = value);
    values
}

/// Other α, λ and guard for each instance: what `condition.wgsl` leaves in the rows of the first step. Rollouts of an
/// instance have the same.
fn conditions(tape: &mut [f64], rows: usize, rollouts: usize) -> Vec<f64> {
    let of = |row: usize| 0.6 + 0.3 * (row / rollouts) as f64;
    for row in 0..rows {
        tape[row * scalars::LEN + scalars::FACTOR] = of(row);
    }
    (0..rows).map(of).collect()
}

/// One acquisition: everything J gets from it is a function of the logits,
///   L = s (α g price + q ℓ − λ H) + s g S' + M·m̃' − μ s (½ ln π + ½ ln(1 − π)),
/// at a step where some features are blocked, at one where all but one are, and at one where all are, which leaves no
/// decision, so π = 1 and nothing to guard; with a sampled and with
/// an exact stop, without and with a hazard; each row with α, λ and μ of its own.
#[test]
fn selection() {
    for (features, blocked, tau_soft, tau_hard) in [
        (1, 0, 0.7, 1.0),
        (5, 2, 0.7, 1.0),
        (5, 4, 0.5, 1.3),
        (7, 3, 0.25, 0.8),
        (70, 1, 0.9, 1.0),
        (4, 4, 0.7, 1.2),
    ] {
        for (exact, hazard) in [(0.0, 0.0), (1.0, 0.0), (0.0, 0.2), (1.0, 0.2)] {
            let options = [
                (hyper::TAU_SOFT, tau_soft),
                (hyper::TAU_HARD, tau_hard),
                (hyper::EXACT_STOP, exact),
                (hyper::HAZARD, hazard),
            ];
            one_selection(features, blocked, &hypers(&options));
        }
    }
}

fn one_selection(features: usize, blocked: usize, hypers: &[f64]) {
    let [alpha, lambda, guard] = [hyper::ALPHA, hyper::LAMBDA, hyper::GUARD].map(|word| hypers[word]);
    let [tau_hard, exact, hazard] =
        [hyper::TAU_HARD, hyper::EXACT_STOP, hyper::HAZARD].map(|word| hypers[word]);
    let place = Place { rows: 3, features, step: usize::from(features > 1), steps: 5, soft: true };
    let (rows, steps, tape, at) = (place.rows, place.steps, place.tape(), place.at());
    let (zp, dp) = place.pitches();
    let mut random = Random::new(features as u64);
    let mut whens = vec![NEVER; rows * features];
    for row in 0..rows {
        (0..blocked).for_each(|i| whens[row * features + (row + i) % features] = 0);
    }
    let mut before = random.normals(tape * scalars::LEN);
    let mut masks = random.normals(tape * 2 * dp);
    for row in 0..rows {
        // The first step starts from nothing, whatever the tape holds.
        let first = place.step == 0;
        before[(at + row) * scalars::LEN + scalars::SURVIVAL] =
            if first { 1.0 } else { 0.8 - 0.2 * row as f64 };
        masks[(at + row) * 2 * dp..][..features].fill(if first { 0.0 } else { 0.3 });
    }
    let own = conditions(&mut before, rows, 1);
    let (next_values, carried) = (before.clone(), random.normals(rows * dp));
    let (price_list, all_losses) = (random.positives(features), random.positives(tape * losses::LEN));
    let noise = random.normals(steps * rows * zp);
    let logits = random.normals(steps * rows * zp);
    let mut rig = place.rig();
    rig.set("gumbel", &noise).set("costs", &price_list).set("hyper", hypers);
    rig.set("losses", &all_losses).set("m", &carried);
    // The stop's probability, over what is not blocked.
    let stop = |z: &[f64], row: usize| {
        let open = (0..=features).filter(|&i| i == features || whens[row * features + i] == NEVER);
        let mass: f64 = open.map(|i| (z[row * zp + i] / tau_hard).exp()).sum();
        (z[row * zp + features] / tau_hard).exp() / mass
    };
    let forward = |rig: &mut Rig, z: &[f64]| {
        let mut full = logits.clone();
        full[at * zp..][..rows * zp].copy_from_slice(z);
        rig.set("z", &full).set_words("when", &whens).set("relax", &masks).set("scalars", &before);
        rig.run("forward");
        let (s, relax) = (rig.get("scalars"), rig.get("relax"));
        (0..rows)
            .map(|row| {
                let now = &s[(at + row) * scalars::LEN..][..scalars::LEN];
                let next = at + rows + row;
                let stay = next_values[next * scalars::LEN + scalars::VALUE];
                let loss = all_losses[(at + row) * losses::LEN];
                let (survival, go) = (now[scalars::SURVIVAL], now[scalars::GO]);
                let factor = own[row];
                let here = factor * alpha * go * now[scalars::PRICE] + now[scalars::HALT] * loss
                    - factor * lambda * now[scalars::ENTROPY];
                let onward: f64 =
                    (0..features).map(|i| carried[row * dp + i] * relax[next * 2 * dp + i]).sum();
                let stop = stop(z, row);
                let guarded = match blocked == features {
                    true => 0.0,
                    false => -factor * guard * survival * 0.5 * (stop.ln() + (1.0 - stop).ln()),
                };
                survival * (here + go * stay) + onward + guarded
            })
            .sum::<f64>()
    };
    let values = logits[at * zp..][..rows * zp].to_vec();
    let numeric = differences(&values, |v| forward(&mut rig, v));
    forward(&mut rig, &values);
    rig.run("backward");
    let got = rig::unpadded(&rig.get("z")[at * zp..][..rows * zp], features + 1);
    let what = format!("logits, d = {features}, exact stop {exact}, hazard {hazard}");
    assert_close(&what, &got, &rig::unpadded(&numeric, features + 1));
    for row in 0..rows {
        for i in (0..features).filter(|&i| whens[row * features + i] != NEVER) {
            assert_eq!(got[row * (features + 1) + i], 0.0, "a blocked logit has a gradient");
        }
    }
    // q + g = 1 and the chances sum to one; q is at least the hazard, and exactly p_stop if it is said so.
    let s = rig.get("scalars");
    let relax = rig.get("relax");
    for row in 0..rows {
        let now = &s[(at + row) * scalars::LEN..][..scalars::LEN];
        let (halt, go) = (now[scalars::HALT], now[scalars::GO]);
        assert!((halt + go - 1.0).abs() < 1e-12);
        assert!(halt >= hazard);
        let exactly = hazard + (1.0 - hazard) * stop(&values, row);
        let all_blocked = blocked == features;
        let is_exact = exact > 0.0 || all_blocked;
        assert_eq!((halt - exactly).abs() < 1e-12, is_exact, "q = {halt}, p_stop gives {exactly}");
        let total: f64 = relax[(at + row) * 2 * dp + dp..][..features].iter().sum();
        assert!((total - f64::from(u8::from(!all_blocked))).abs() < 1e-12);
        if all_blocked {
            assert_eq!(rig.words("path")[at + row], features as u32, "nobody's");
            assert_eq!((now[scalars::PRICE], go), (0.0, 0.0));
        }
    }
}

/// The predictor's weights: (1 − submasks) (1 − focus + focus (k + 1) s q), and q = 1 at the end, so that
/// over a rollout they are (1 − submasks) (k + 1) in sum.
#[test]
fn the_predictors_weights() {
    let (rows, steps) = (3, 4);
    for (focus, submasks) in [(0.0, 0.0), (0.5, 0.0), (0.5, 0.7), (0.0, 0.7)] {
        let mut all = vec![0.0; (steps + 1) * rows * scalars::LEN];
        let mut random = Random::new(3);
        for step in 0..steps {
            let place = Place { rows, features: 5, step, steps, soft: false };
            let mut rig = place.rig();
            rig.set(
                "hyper",
                &hypers(&[(hyper::FOCUS, focus), (hyper::SUBMASKS, submasks), (hyper::HAZARD, 0.1)]),
            );
            rig.set_words("when", &[NEVER; 15]).set("scalars", &all);
            rig.set("z", &random.normals(steps * rows * place.pitches().0));
            all = rig.run("forward").get("scalars");
        }
        for row in 0..rows {
            let word = |t: usize, word: usize| all[(t * rows + row) * scalars::LEN + word];
            for t in 0..=steps {
                let halt = if t == steps { 1.0 } else { word(t, scalars::HALT) };
                let stops = (steps + 1) as f64 * word(t, scalars::SURVIVAL) * halt;
                let expected = (1.0 - submasks) * (1.0 - focus + focus * stops);
                assert!((word(t, scalars::WEIGHT) - expected).abs() < 1e-12, "step {t}");
            }
            let sum: f64 = (0..=steps).map(|t| word(t, scalars::WEIGHT)).sum();
            assert!((sum - (1.0 - submasks) * (steps + 1) as f64).abs() < 1e-12, "{sum}");
        }
    }
}

/// The part of REINFORCE against its formula: of the relaxed gradient of r̃ the share 1 − reinforce stays,
///   r̃_j (dr_j − Σ r̃ dr)/(τs τh),  dr_j = s α g c_j + (1 − m̃_j) M_j,
/// and to the rest, which central differences have checked, comes  reinforce s g (Q − b) (1[j chosen] − r_j)/τh.
/// In the middle of the tape and at its end, where S' is the last loss. Of five rows the last has no
/// other rollout, or one rollout less than the others.
#[test]
fn the_part_of_reinforce() {
    for (rollouts, step) in [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)] {
        let place = Place { rows: 5, features: 6, step, steps: 3, soft: false };
        let (rows, features, tape, at) = (place.rows, place.features, place.tape(), place.at());
        let (zp, dp) = place.pitches();
        let mut random = Random::new(rollouts as u64);
        let (mut before, masks) = (random.positives(tape * scalars::LEN), random.positives(tape * 2 * dp));
        let own = conditions(&mut before, rows, rollouts);
        let (carried, prices) = (random.normals(rows * dp), random.positives(features));
        let (all_losses, noise) = (random.positives(tape * losses::LEN), random.normals(3 * rows * zp));
        let logits = random.normals(3 * rows * zp);
        // The first feature is no longer to be had.
        let whens: Vec<u32> =
            (0..rows * features).map(|i| if i % features == 0 { 0 } else { NEVER }).collect();
        let mut rig = place.rig();
        rig.set("gumbel", &noise).set("costs", &prices).set("losses", &all_losses).set("m", &carried);
        let mut run = |reinforce: f64, exact: f64| {
            let options = [
                (hyper::REINFORCE, reinforce),
                (hyper::ROLLOUTS, rollouts as f64),
                (hyper::EXACT_STOP, exact),
                (hyper::HAZARD, 0.1),
            ];
            rig.set("hyper", &hypers(&options)).set("z", &logits).set_words("when", &whens);
            rig.set("relax", &masks).set("scalars", &before).run("forward").run("backward");
            let gradient = rig::unpadded(&rig.get("z")[at * zp..][..rows * zp], features + 1);
            (gradient, rig.get("scalars"), rig.get("relax"), rig.words("path"))
        };
        let (alpha, tau_hard, tau_soft) = (0.3, 1.3, 0.7);
        for (reinforce, exact) in [(1.0, 1.0), (0.4, 1.0), (1.0, 0.0)] {
            let (without, ..) = run(0.0, exact);
            let (got, s, relax, path) = run(reinforce, exact);
            let word = |row: usize, word: usize| s[(at + row) * scalars::LEN + word];
            let ahead = |row: usize| {
                let next = at + rows + row;
                let value = if step == 2 {
                    all_losses[next * losses::LEN]
                } else {
                    before[next * scalars::LEN + scalars::VALUE]
                };
                own[row] * alpha * word(row, scalars::PRICE) + value
            };
            let mut expected = without;
            for row in 0..rows {
                let group = row / rollouts * rollouts..rows.min(row / rollouts * rollouts + rollouts);
                let others: Vec<f64> = group.filter(|&other| other != row).map(ahead).collect();
                assert_eq!(others.is_empty(), rollouts == 1 || (rollouts == 2 && row == 4));
                let share = word(row, scalars::SURVIVAL) * word(row, scalars::GO);
                let mean = others.iter().sum::<f64>() / others.len() as f64;
                let advantage = if others.is_empty() { 0.0 } else { share * (ahead(row) - mean) };
                let p = |i: usize| (logits[(at + row) * zp + i] / tau_hard).exp();
                let mass: f64 = (1..features).map(p).sum();
                let dr = |i: usize| {
                    let mask = relax[(at + row) * 2 * dp + i];
                    own[row] * alpha * share * prices[i] + (1.0 - mask) * carried[row * dp + i]
                };
                let chance = |i: usize| relax[(at + row) * 2 * dp + dp + i];
                let pull: f64 = (1..features).map(|i| chance(i) * dr(i)).sum();
                for i in 1..features {
                    let hit = f64::from(u8::from(path[at + row] as usize == i));
                    let relaxed = chance(i) * (dr(i) - pull) / tau_soft;
                    expected[row * (features + 1) + i] +=
                        reinforce * (advantage * (hit - p(i) / mass) - relaxed) / tau_hard;
                }
            }
            assert_close(
                &format!("rollouts {rollouts}, step {step}, reinforce {reinforce}"),
                &got,
                &expected,
            );
        }
    }
}

/// Why REINFORCE may be used: its mean over the choices is the gradient of the mean cost,
/// whatever the other rollout did. Each feature is chosen in turn, by noise, and weighted by its probability.
#[test]
fn reinforce_is_right_in_the_mean() {
    let place = Place { rows: 2, features: 4, step: 0, steps: 2, soft: false };
    let (features, (zp, dp)) = (place.features, place.pitches());
    let mut random = Random::new(8);
    let (mut before, all_losses) = (random.normals(6 * scalars::LEN), random.positives(6 * losses::LEN));
    let factor = conditions(&mut before, 2, 2)[0];
    let (prices, logits) = (random.positives(features), random.normals(4 * zp));
    let (alpha, lambda, guard, tau_hard, hazard) = (0.3, 0.05, 0.07, 1.3, 0.1);
    let options =
        [(hyper::REINFORCE, 1.0), (hyper::ROLLOUTS, 2.0), (hyper::EXACT_STOP, 1.0), (hyper::HAZARD, hazard)];
    let mut rig = place.rig();
    rig.set("hyper", &hypers(&options)).set("costs", &prices).set("losses", &all_losses);
    rig.set("m", &random.normals(2 * dp));
    let softmax = |z: &[f64]| {
        let mass: f64 = z.iter().map(|z| (z / tau_hard).exp()).sum();
        z.iter().map(|z| (z / tau_hard).exp() / mass).collect::<Vec<f64>>()
    };
    let numeric = differences(&logits[..=features], |z| {
        let p = softmax(z);
        let stop = p[features];
        let price: f64 = (0..features).map(|i| p[i] / (1.0 - stop) * prices[i]).sum();
        let (halt, go) = (hazard + (1.0 - hazard) * stop, (1.0 - hazard) * (1.0 - stop));
        let entropy: f64 = -p.iter().map(|p| p * p.ln()).sum::<f64>();
        let next = before[2 * scalars::LEN + scalars::VALUE];
        let bonus = lambda * entropy + guard * 0.5 * (stop.ln() + (1.0 - stop).ln());
        go * (factor * alpha * price + next) + halt * all_losses[0] - factor * bonus
    });
    let p = softmax(&logits[..=features]);
    for other in 0..features {
        let mut mean = vec![0.0; features + 1];
        for chosen in 0..features {
            let mut noise = vec![0.0; 4 * zp];
            noise[chosen] = 50.0;
            noise[zp + other] = 50.0;
            rig.set("gumbel", &noise).set("z", &logits).set_words("when", &[NEVER; 8]);
            rig.set("scalars", &before).run("forward").run("backward");
            assert_eq!(rig.words("path")[..2], [chosen as u32, other as u32]);
            let gradient = rig.get("z");
            let weight = p[chosen] / (1.0 - p[features]);
            mean.iter_mut().zip(&gradient).for_each(|(mean, g)| *mean += weight * g);
        }
        assert_close(&format!("the mean, the other chose {other}"), &mean, &numeric);
    }
}

/// An instance's rollouts are rows side by side; without rollouts every row is another instance.
#[test]
fn rollouts_are_of_the_same_instance() {
    let (rows, len) = (6usize, 40usize);
    let mut b = PlanBuilder::new(1);
    let mut words = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Shared);
    let (clock_id, data_y, y) = (words("clock", clock::LEN), words("data_y", len), words("y", rows));
    let (data_x, x) = (
        b.buffer("data_x", Elem::F32, len, Scope::Shared),
        b.buffer("x", Elem::F32, rows * 4, Scope::Shared),
    );
    b.section("gather", |b| {
        b.call(
            k::Gather {
                rows: rows as u32,
                columns: 1,
                pitch: 4,
                first: 0,
                batch: rows as u32,
                split_start: 0,
                split_len: len as u32,
                shuffled: 1,
                chunks: 1,
            },
            &[clock_id, data_x, data_y, x, y],
        );
    });
    let mut rig = Rig::new(b);
    rig.set("data_x", &(0..len).map(|i| i as f64).collect::<Vec<_>>());
    rig.set_words("data_y", &(0..len as u32).collect::<Vec<_>>());
    let mut batch = |rollouts: u32, batch: u32| {
        let mut words = [0; clock::LEN];
        words[clock::BATCH] = batch;
        words[clock::COPIES] = rollouts;
        let y = rig.set_words("clock", &words).run("gather").words("y");
        let x: Vec<u32> = rig.get("x").iter().step_by(4).map(|&x| x as u32).collect();
        assert_eq!(x, y);
        y
    };
    let alone: Vec<u32> = (0..3).flat_map(|at| batch(1, at)).collect();
    assert_eq!(alone[..rows], batch(0, 0), "none is one");
    assert!((1..alone.len()).all(|i| !alone[..i].contains(&alone[i])), "{alone:?}");
    for rollouts in [2, 3] {
        let together: Vec<u32> = (0..3).flat_map(|at| batch(rollouts, at)).collect();
        let expected: Vec<u32> = (0..together.len()).map(|i| alone[i / rollouts as usize]).collect();
        assert_eq!(together, expected, "the same order, each instance {rollouts} times");
    }
}

/// Sub-masks of a path: of its first 2 L features about half, and of one row in sixteen none, other ones at every step of
/// the clock; with more features than one draw of random bits has.
#[test]
fn submasks_of_a_path() {
    let (rows, steps, features) = (40usize, 150usize, 150usize);
    let pitch = querent::nn::pitch(features);
    let mut b = PlanBuilder::new(1);
    let clock_id = b.buffer("clock", Elem::U32, clock::LEN, Scope::Shared);
    let when = b.buffer("when", Elem::U32, rows * features, Scope::Shared);
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let tape = (steps + 1) * rows;
    let (hyper_id, tape_scalars) = (reals("hyper", hyper::LEN), reals("scalars", tape * scalars::LEN));
    let relax = reals("relax", rows * 2 * pitch);
    for first in [0, 7] {
        b.section(format!("from {first}"), |b| {
            b.call(
                own::Submask {
                    rows: rows as u32,
                    steps: steps as u32,
                    features: features as u32,
                    pitch: pitch as u32,
                    first,
                },
                &[clock_id, when, hyper_id, tape_scalars, relax],
            );
        });
    }
    let mut rig = Rig::new(b);
    // Row r acquires 7 r, 7 r + 1, … around the circle, but never the last three of it, and asks for
    // L = 0, 2, 4, … features: it survives that many steps.
    let asked = |row: usize| 2 * row;
    let at = |row: usize, feature: usize| (feature + features - 7 * row % features) % features;
    let acquired = |row: usize, feature: usize| at(row, feature) < features - 3;
    let indices = || (0..rows * features).map(|i| (i / features, i % features));
    let whens: Vec<u32> =
        indices().map(|(row, i)| if acquired(row, i) { at(row, i) as u32 } else { NEVER }).collect();
    let mut before = Random::new(1).normals(tape * scalars::LEN);
    for t in 0..=steps {
        for row in 0..rows {
            // A little less than L, and more than L − ½: the last feature within reach is 2 L − 1.
            let survival = if t <= asked(row) { 1.0 - 0.2 / asked(row).max(1) as f64 } else { 0.0 };
            before[(t * rows + row) * scalars::LEN + scalars::SURVIVAL] = survival;
        }
    }
    rig.set("hyper", &hypers(&[(hyper::SUBMASKS, 0.7)])).set_words("when", &whens);
    let mut draw = |step: u32, section: &str| {
        let mut words = [0; clock::LEN];
        words[clock::SEED_LO] = 3;
        words[clock::STEP] = step;
        rig.set_words("clock", &words).set("scalars", &before).set("relax", &vec![9.0; rows * 2 * pitch]);
        rig.run(section);
        let mut expected = before.clone();
        (0..rows).for_each(|row| expected[row * scalars::LEN + scalars::WEIGHT] = 0.7);
        assert_eq!(rig.get("scalars"), expected, "only the weights of the first rows are written");
        let relax = rig.get("relax");
        let masks: Vec<f64> = indices().map(|(row, i)| relax[row * 2 * pitch + i]).collect();
        assert_eq!(relax.iter().filter(|&&v| v == 9.0).count(), rows * (2 * pitch - features));
        masks
    };
    let mask = draw(5, "from 0");
    let within: Vec<bool> =
        indices().map(|(row, i)| acquired(row, i) && at(row, i) < 2 * asked(row)).collect();
    assert!(mask.iter().all(|&v| v == 0.0 || v == 1.0));
    assert!(mask.iter().zip(&within).all(|(&v, &within)| within || v == 0.0), "not a sub-mask of the path");
    let is_empty = |mask: &[f64], row: usize| mask[row * features..][..features].iter().all(|&v| v == 0.0);
    // Every feature within reach is kept some time, the last one as well; and never all of them.
    let (mut often, mut kept, mut counted, mut empty) = (vec![0.0; mask.len()], 0.0, 0, 0);
    let (draws, first_long) = (200, 10); // rows that ask so much are not empty by chance
    for step in 0..draws {
        let mask = draw(step, "from 0");
        for row in first_long..rows {
            empty += u32::from(is_empty(&mask, row));
            let within = &within[row * features..][..features];
            if !is_empty(&mask, row) {
                counted += within.iter().filter(|&&within| within).count();
                kept += mask[row * features..][..features].iter().sum::<f64>();
            }
        }
        often.iter_mut().zip(mask).for_each(|(often, v)| *often += v / f64::from(draws));
    }
    assert!(often.iter().zip(&within).all(|(&often, &within)| (often > 0.0) == within && often < 1.0));
    let share = kept / counted as f64;
    assert!((share - 0.5).abs() < 0.01, "{share} of {counted} are kept");
    let share = f64::from(empty) / f64::from(draws * (rows - first_long) as u32);
    assert!((share - 1.0 / 16.0).abs() < 0.012, "{share} are empty");
    // Half of the features are otherwise at the next step of the clock, of rows that are empty at neither.
    let next = draw(6, "from 0");
    let full: Vec<usize> = (0..rows).filter(|&row| !is_empty(&mask, row) && !is_empty(&next, row)).collect();
    let of = |row: usize| row * features..(row + 1) * features;
    let count: usize = full.iter().map(|&row| within[of(row)].iter().filter(|&&within| within).count()).sum();
    let differ = |row: usize| mask[of(row)].iter().zip(&next[of(row)]).filter(|(a, b)| a != b).count();
    let changed = full.iter().map(|&row| differ(row)).sum::<usize>() as f64 / count as f64;
    assert!((changed - 0.5).abs() < 0.03, "{changed} changed");
    assert_eq!(draw(5, "from 0"), mask);
    // Bits belong to the instance of the batch, not to the row of the micro-batch: rows 7, 8, … of the
    // batch draw the same, seen where both are within reach.
    let later = draw(5, "from 7");
    for row in 0..rows - 7 {
        for i in 0..features {
            let (a, b) = (row * features + i, (row + 7) * features + i);
            assert!(!(within[a] && within[b]) || later[a] == mask[b], "row {row}, feature {i}");
        }
    }
}

/// Bytes, four to a word and rows without a gap, come out divided and in the same order as reals do.
#[test]
fn bytes_are_gathered_as_reals_are() {
    let problem = || querent::Problem::ungrouped(&[1.0; 3], 2).expect("valid");
    let rows = 37usize;
    let bytes: Vec<u8> = (0..rows * 3).map(|i| (i * 89 % 256) as u8).collect();
    let labels: Vec<u32> = (0..rows as u32).map(|row| row % 2).collect();
    let none = || (Vec::new(), Vec::new());
    let few = || (bytes[..15].to_vec(), labels[..5].to_vec());
    let as_bytes =
        querent::data::Dataset::of_bytes(problem(), [(bytes.clone(), labels.clone()), few(), none()]);
    let split = |(x, y): (Vec<u8>, Vec<u32>)| querent::data::Split {
        x: x.into_iter().map(|byte| f32::from(byte) / 255.0).collect(),
        y,
    };
    let as_reals = querent::data::Dataset::new(
        problem(),
        split((bytes.clone(), labels.clone())),
        split(few()),
        split(none()),
    );
    let config = querent::nmppg::Config::new(0.01).with(|c| {
        c.batch = 8;
        c.networks.policy = [4, 4];
        c.networks.predictor = [4, 4];
    });
    let weights = |data: querent::data::Dataset| {
        let mut stepper =
            querent::nmppg::Stepper::new(&querent::Engine::cpu(), &data, config.clone()).expect("fits");
        stepper.steps(20);
        let means = stepper.means_blocking().expect("finite");
        let validation = stepper.evaluate_blocking(querent::data::Part::Validation).expect("evaluates");
        (means, validation)
    };
    assert_eq!(weights(as_bytes.expect("valid")), weights(as_reals.expect("valid")));
}
