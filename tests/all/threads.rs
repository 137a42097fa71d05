//! What a host keeps can go to its other threads and be shared with them. That this compiles is the test.

use querent::data::Dataset;
use querent::nmppg::{Checkpoint, Config, Trainer};
use querent::{Budget, Encoding, Engine, Error, ErrorKind, Model, Problem, Session};

fn is_shared<T: Send + Sync + 'static>() {}
fn goes<T: Send>(_: &T) {}

#[test]
fn what_a_host_keeps_can_go_to_other_threads() {
    is_shared::<Engine>();
    is_shared::<Trainer>();
    is_shared::<Checkpoint>();
    is_shared::<Config>();
    is_shared::<Model>();
    is_shared::<Session<'static>>();
    is_shared::<Dataset>();
    is_shared::<Encoding>();
    is_shared::<Problem>();
    is_shared::<Budget>();
    is_shared::<Error>();
    is_shared::<ErrorKind>();
    // An engine can be opened by an executor that moves its tasks from thread to thread.
    goes(&Engine::auto());
    goes(&Engine::gpu());
}
