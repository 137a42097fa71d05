//! A training step on the CPU engine makes no host allocation: counted by an allocator, and on all
//! threads, because the lanes run on all of them. It is the only test here, so that nothing else runs.

mod counting;

use counting::allocations;
use querent::Engine;
use querent::data::synthetic;
use querent::nmppg::{Config, Stepper};

#[test]
fn a_training_step_on_the_cpu_allocates_nothing() {
    let settings = [("as published", Config::paper(0.02)), ("by default", Config::new(0.02))];
    for (name, config) in settings {
        let data = synthetic::syn1(1, [2048, 64, 64]).expect("valid");
        let config = config.with(|c| {
            c.networks.policy = [64, 64];
            c.networks.predictor = [64, 64];
            c.batch = 256;
        });
        let mut stepper = None;
        let making = allocations(|| stepper = Some(Stepper::new(&Engine::cpu(), &data, config)));
        assert!(making > 0, "the counter counts");
        let mut stepper = stepper.expect("made").expect("fits");
        let step = stepper.program().plan().find_section("step").expect("there").calls();
        // Threads start, and each makes room for the packed operands of its products, once.
        stepper.steps(50);
        // Entering rayon's pool from outside allocates a block of its queue every 63 times: not a matter of
        // the step, so it is counted from inside.
        let count = rayon::scope(|_| allocations(|| stepper.program_mut().run(step, 20)));
        assert_eq!(count, 0, "{name}: allocations in 20 steps");
        // Whatever was asked for, it was trained.
        assert!(stepper.means_blocking().expect("finite")["instances"] >= 70.0 * 256.0);
    }
}
