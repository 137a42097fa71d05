//! An allocator that counts. It serves the whole process, so whoever counts with it is a binary of its own, with a
//! single test.
#![allow(dead_code)] // each test counts in its own way

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

static ALL: AtomicUsize = AtomicUsize::new(0);
/// Bytes that are held, and the most that were.
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    ALL.fetch_add(1, Ordering::Relaxed);
    // There is no counter any more while a thread ends.
    let _ = HERE.try_with(|count| count.set(count.get() + 1));
}

fn taken(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(held, Ordering::Relaxed);
}

fn given_back(bytes: usize) {
    HELD.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: everything is the system allocator's; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        taken(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        taken(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        taken(size);
        given_back(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        given_back(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of all threads meanwhile.
pub fn allocations(act: impl FnOnce()) -> usize {
    let before = ALL.load(Ordering::Relaxed);
    act();
    ALL.load(Ordering::Relaxed) - before
}

/// Allocations of this thread: other threads of the test runner do not count.
pub fn allocations_here(act: impl FnOnce()) -> usize {
    let before = HERE.get();
    act();
    HERE.get() - before
}

/// The most bytes that were held meanwhile, beyond those that were held before.
pub fn peak(act: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    act();
    MOST.load(Ordering::Relaxed) - before
}
