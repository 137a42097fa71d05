//! A future for what was submitted to a device.

use super::Gpu;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// What the device's callback and whoever waits tell each other.
#[derive(Default)]
struct Told {
    is_done: bool,
    waiting: Option<Waker>,
}

impl Gpu {
    /// Is there when the device has done what was submitted so far. Does not poll it: in a browser nobody has to, elsewhere
    /// somebody else must.
    pub(crate) fn submitted(&self) -> impl Future<Output = ()> + use<> {
        let told = Arc::new(Mutex::new(Told::default()));
        let callback = Arc::clone(&told);
        self.queue().on_submitted_work_done(move || {
            let mut told = callback.lock().unwrap_or_else(PoisonError::into_inner);
            told.is_done = true;
            if let Some(waker) = told.waiting.take() {
                waker.wake();
            }
        });
        poll_fn(move |context| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.is_done {
                return Poll::Ready(());
            }
            told.waiting = Some(context.waker().clone());
            Poll::Pending
        })
    }
}
