//! A session allocates when it is made, and never after: counted by an allocator, and a process has
//! only one.

mod counting;

use counting::allocations_here as allocations;
use querent::data::Normalization;
use querent::nmppg::Config;
use querent::nn::Stack;
use querent::{Feature, Model, Problem, Session, Step};

/// Features of one, two and three columns in turn.
fn model() -> Model {
    let groups = [0, 1, 1, 2, 2, 2, 3, 4, 4, 5, 5, 5];
    let features = (0..6).map(|i| Feature { name: format!("x{i}"), cost: 1.0 });
    let problem = Problem::new(features.collect(), groups.to_vec(), ["a", "b", "c"].map(Into::into).into());
    let network = |outputs, which| {
        let stack = Stack::new(0, &[18, 32, 32, outputs]);
        stack.unpack(&stack.init(1, which))
    };
    let (mut policy, predictor) = (network(7, 0), network(3, 1));
    policy[2].bias[6] = -9.0; // it never stops by itself
    let config = Config::default().with(|c| {
        c.networks.policy = [32, 32];
        c.networks.predictor = [32, 32];
        c.unavailable = 0.0;
    });
    querent::nmppg::model(
        problem.expect("valid"),
        Normalization::identity(12),
        config,
        policy,
        predictor,
        Vec::new(),
    )
    .expect("fits")
}

/// Everything a session does with an instance, to the last feature.
fn instance(session: &mut Session<'_>, values: &[f32]) -> f32 {
    session.reset();
    session.known(3, 0.5).expect("taken");
    session.unavailable(1).expect("taken");
    let mut sum = 0.0;
    while let Step::Acquire(feature) = session.next() {
        let question = session.question().expect("the same");
        sum += question.probabilities[0] + question.name.len() as f32;
        let len = question.values;
        session.observe(feature, &values[..len]).expect("taken");
        sum += session.predict()[session.best()] + session.label().len() as f32;
    }
    session.observe(1, [0.25, 0.5]).expect("taken");
    for event in session.trace() {
        sum += event.probabilities[1] + event.values.iter().sum::<f32>() + event.cost as f32;
    }
    assert_eq!((session.acquisitions(), session.trace().len()), (5, 7));
    sum
}

#[test]
fn a_session_allocates_only_when_it_is_made() {
    let model = model();
    let values = [0.1, 0.2, 0.3];
    let mut session = None;
    let making = allocations(|| session = Some(model.session()));
    assert!(making > 0, "the counter counts");
    let mut session = session.expect("made");
    let mut sum = 0.0;
    let using = allocations(|| {
        for _ in 0..10 {
            sum += instance(&mut session, &values);
        }
    });
    assert!(sum.is_finite());
    assert_eq!(using, 0, "allocations in ten instances, from the first on");
    assert!(allocations(|| drop(session.observe(99, 0.0))) > 0, "an error is told with words");
}
