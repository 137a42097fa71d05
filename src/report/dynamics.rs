//! The training dynamics: objective, loss and cost over the epochs.

use super::axis::{Frame, Range, Scale, X_AXIS, Y_AXIS, short, shown};
use super::canvas::{Canvas, Key, NOTE, PLAIN, legend_height, title_height};
use super::font;
use super::labels::Taken;
use super::style::{BAND, INK, MARGIN, SMALL, TRAIN, VALIDATION};
use crate::policy::history::{Epoch, Phase};

const WIDTH: f64 = 900.0;
const PANEL: f64 = 160.0;
const GAP: f64 = 22.0;
/// Where the names of warm-up and stages stand.
const STRIP: f64 = 20.0;
/// The colour of a stage's beginning.
const STAGE: &str = "#9c9c9c";

/// One of the three plots.
struct Panel {
    name: &'static str,
    train: fn(&Epoch) -> f64,
    validation: fn(&Epoch) -> f64,
    zero: bool,
}

const PANELS: [Panel; 3] = [
    Panel {
        name: "objective (nats)",
        // In the warm-up there is no rollout.
        train: |epoch| if staged(epoch) { loss_and_cost(epoch) } else { f64::NAN },
        validation: |epoch| if surveyed(epoch) { f64::NAN } else { epoch.validation.objective },
        zero: false,
    },
    Panel {
        name: "loss (nats)",
        train: |epoch| epoch.train["prediction_loss"],
        validation: |epoch| if surveyed(epoch) { f64::NAN } else { epoch.validation.loss },
        zero: false,
    },
    Panel { name: "mean cost", train: |_| f64::NAN, validation: |epoch| epoch.validation.cost, zero: true },
];

/// Whether the policy was trained.
/// What training lowers, without what only makes it try things where a method tells the two apart.
fn loss_and_cost(epoch: &Epoch) -> f64 {
    epoch.train.get("loss_and_cost").unwrap_or(epoch.train["objective"])
}

/// Whether the validation was of no policy, but of nothing and everything seen.
fn surveyed(epoch: &Epoch) -> bool {
    !staged(epoch) && !epoch.passes.is_empty()
}

fn staged(epoch: &Epoch) -> bool {
    matches!(epoch.phase, Phase::Stage(_))
}

/// Objective, loss and cost over the epochs of a run, on the training and on the validation rows.
///
/// On the training rows, the objective is the rollout's expected loss and cost without the entropy
/// bonus (in the warm-up there is none), and the loss is the predictor's over all steps of the paths;
/// on the validation rows both are the greedy policy's. The warm-up is set apart, each stage begins
/// at a line with its `tau_soft`, and the epoch whose weights were kept (the last that was
/// [`best`](Epoch::best)) is marked. Epochs whose metrics are of no instances are left out.
pub fn dynamics(title: &str, history: &[Epoch]) -> String {
    let chosen = history.iter().rfind(|epoch| epoch.best);
    let legend = legend(history, chosen);
    let inner = WIDTH - 2.0 * MARGIN;
    let head = title_height(title, WIDTH);
    let first = head + legend_height(&legend, inner) + 10.0 + STRIP;
    let height = first + 3.0 * PANEL + 2.0 * GAP + X_AXIS + MARGIN - 6.0;
    let mut canvas = Canvas::new(title, WIDTH, height);
    canvas.legend((MARGIN, head), inner, &legend);

    let epochs = Range::of(history.iter().map(|epoch| epoch.index as f64));
    let epochs = epochs.unwrap_or(Range { low: 0.0, high: 0.0 });
    let epochs = Range { low: epochs.low - 0.5, high: epochs.high + 0.5 };
    let (left, right) = (MARGIN + Y_AXIS - 8.0, WIDTH - MARGIN - 12.0);
    let x = Scale { range: epochs, from: left, to: right };
    let spans = spans(history, x);
    strip(&mut canvas, &spans, first - STRIP / 2.0);
    for (i, panel) in PANELS.iter().enumerate() {
        let top = first + i as f64 * (PANEL + GAP);
        let values = history.iter().flat_map(|epoch| [panel.train(epoch), panel.validation(epoch)]);
        let range = Range::of(values).map(|range| if panel.zero { range.with_zero() } else { range });
        let range = range.map_or(Range { low: 0.0, high: 1.0 }, Range::padded);
        let frame = Frame::new((left, top), (right, top + PANEL), epochs, range);
        panel.draw(&mut canvas, frame, history, &spans, chosen);
        if i + 1 == PANELS.len() && !history.is_empty() {
            frame.x_axis(&mut canvas, "epoch", true, false);
        } else {
            frame.base(&mut canvas);
        }
    }
    canvas.finish()
}

/// What the lines and marks mean, as far as they occur.
fn legend(history: &[Epoch], chosen: Option<&Epoch>) -> Vec<(Key, String)> {
    let mut entries = vec![
        (Key::Line(TRAIN), "training".to_string()),
        (Key::Line(VALIDATION), "validation, greedy policy".to_string()),
    ];
    if history.iter().any(staged) {
        entries.push((Key::Dashes(STAGE), "new stage, τ = tau_soft".into()));
    }
    if let Some(epoch) = chosen {
        entries.push((Key::Ring, format!("chosen epoch: {}", epoch.index)));
    }
    entries
}

/// Consecutive epochs of the same phase, from pixel to pixel.
struct Span {
    from: f64,
    to: f64,
    staged: bool,
    name: String,
}

fn spans(history: &[Epoch], x: Scale) -> Vec<Span> {
    history
        .chunk_by(|a, b| a.phase == b.phase)
        .map(|part| {
            let name = match part[0].phase {
                Phase::WarmUp => "warm-up".into(),
                Phase::Stage(stage) => match part[0].settings.get("tau_soft") {
                    Some(&tau) => format!("τ {}", temperature(tau)),
                    None => (stage + 1).to_string(),
                },
            };
            let from = x.at(part[0].index as f64 - 0.5);
            let to = x.at(part[part.len() - 1].index as f64 + 0.5);
            Span { from, to, staged: staged(&part[0]), name }
        })
        .collect()
}

/// A temperature with up to three digits and no trailing zeros.
fn temperature(value: f64) -> String {
    let text = short(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

/// The names of the spans above the plots; those without room are left out.
fn strip(canvas: &mut Canvas, spans: &[Span], y: f64) {
    let mut taken = 0.0;
    for span in spans {
        let wide = font::width(&span.name, SMALL);
        let from = if span.staged { span.from + 2.0 } else { span.from.midpoint(span.to) - wide / 2.0 };
        let from = from.min(WIDTH - MARGIN - wide).max(span.from.min(WIDTH - MARGIN - wide));
        if from >= taken {
            canvas.text(from, y, &span.name, NOTE);
            taken = from + wide + 4.0;
        }
    }
}

impl Panel {
    fn train(&self, epoch: &Epoch) -> f64 {
        if epoch.train["instances"] == 0.0 { f64::NAN } else { (self.train)(epoch) }
    }

    fn validation(&self, epoch: &Epoch) -> f64 {
        if epoch.validation.instances == 0.0 { f64::NAN } else { (self.validation)(epoch) }
    }

    fn draw(
        &self,
        canvas: &mut Canvas,
        frame: Frame,
        history: &[Epoch],
        spans: &[Span],
        chosen: Option<&Epoch>,
    ) {
        let (top, bottom) = (frame.top(), frame.bottom());
        for span in spans.iter().filter(|span| !span.staged) {
            canvas.rect((span.from, top), (span.to - span.from, bottom - top), BAND);
        }
        let train: Vec<f64> = history.iter().map(|epoch| self.train(epoch)).collect();
        let validation: Vec<f64> = history.iter().map(|epoch| self.validation(epoch)).collect();
        if train.iter().chain(&validation).any(|&value| shown(value)) {
            frame.y_axis(canvas, self.name);
        } else {
            frame.y_name(canvas, self.name);
            let middle = (frame.left().midpoint(frame.right()), top.midpoint(bottom));
            canvas.nothing(middle, if history.is_empty() { "no epochs yet" } else { "nothing measured" });
        }
        for span in spans.iter().filter(|span| span.staged) {
            canvas.dashes((span.from, top), (span.from, bottom), STAGE, 1.0);
        }
        if let Some(epoch) = chosen {
            let x = frame.x.at(epoch.index as f64);
            canvas.line((x, top), (x, bottom), INK, 1.0);
        }
        let mut taken = Taken::new(frame);
        taken.right = WIDTH - 4.0;
        for (values, colour) in [(train, TRAIN), (validation, VALIDATION)] {
            trace(canvas, &mut taken, history, &values, colour);
        }
        let Some((epoch, value)) = chosen.map(|epoch| (epoch, self.validation(epoch))) else { return };
        if shown(value) {
            let (x, y) = frame.at(epoch.index as f64, value);
            canvas.ring((x, y));
            taken.mark((x, y));
            // Beside the line that marks the epoch: above or below, right or left.
            let text = short(value);
            let side = font::width(&text, PLAIN.size) / 2.0 + 7.0;
            let places = [-14.0, 14.0, -22.0, 22.0].map(|down| [(x + side, y + down), (x - side, y + down)]);
            taken.write(canvas, places.as_flattened(), &text, PLAIN);
        }
    }
}

/// A line through the values, broken where there are none.
fn trace(canvas: &mut Canvas, taken: &mut Taken, history: &[Epoch], values: &[f64], colour: &'static str) {
    let few = history.len() <= 40;
    let points: Vec<Option<(f64, f64)>> = history
        .iter()
        .zip(values)
        .map(|(epoch, &value)| shown(value).then(|| taken.frame.at(epoch.index as f64, value)))
        .collect();
    for part in points.split(Option::is_none) {
        let part: Vec<(f64, f64)> = part.iter().copied().flatten().collect();
        if part.len() > 1 {
            canvas.polyline(&part, colour, 1.75);
        }
        if few || part.len() == 1 {
            part.iter().for_each(|&point| canvas.dot(point, 2.4, colour));
        }
        taken.line(&part);
    }
}
