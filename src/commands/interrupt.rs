//! Ctrl-C: what is being written is finished, what was reached is kept, and the exit code is 2.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often Ctrl-C was pressed.
static PRESSED: AtomicUsize = AtomicUsize::new(0);
/// What is said when it is pressed first; and whether to end at once then.
static ANSWER: OnceLock<(&'static str, bool)> = OnceLock::new();

/// From now on, Ctrl-C says this; and ends the program if `at_once`, or else when it is pressed again.
pub fn answer(says: &'static str, at_once: bool) {
    if ANSWER.set((says, at_once)).is_err() {
        return;
    }
    // Without a handler, Ctrl-C ends the program as ever: no reason to refuse to work.
    let _ = ctrlc::set_handler(|| {
        let pressed = PRESSED.fetch_add(1, Ordering::SeqCst);
        let &(says, at_once) = ANSWER.get().unwrap_or(&("interrupted", true));
        let _ = writeln!(std::io::stderr(), "\n{}", if pressed == 0 { says } else { "interrupted" });
        if at_once || pressed > 0 {
            std::process::exit(2);
        }
    });
}

/// Whether Ctrl-C was pressed.
pub fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst) > 0
}
