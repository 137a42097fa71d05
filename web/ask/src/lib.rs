//! The code behind the ask page: a model, and one case of it at a time.
//!
//! There are five functions of the plain C kind and no generated glue: the page writes into [`room`], calls [`open`] or
//! [`say`], and reads what it is told at [`text`]. Everything else is the library's.

use querent::Model;
use querent::asking::conversation::Conversation;
use querent::asking::page;
use std::cell::RefCell;

#[derive(Default)]
struct Page {
    /// What the page writes.
    room: Vec<u8>,
    /// What it is told.
    text: String,
    case: Option<Conversation<'static>>,
}

thread_local! {
    static PAGE: RefCell<Page> = RefCell::default();
}

/// Does something with what the page has written, keeps what it is told, and says whether that went well.
fn answer(with: impl FnOnce(&mut Page, Vec<u8>) -> querent::Result<String>) -> bool {
    PAGE.with_borrow_mut(|state| {
        let room = std::mem::take(&mut state.room);
        let done = with(state, room);
        let is_well = done.is_ok();
        // As the command says it of a file: without the word for the kind of error in front.
        state.text = done.unwrap_or_else(|error| error.message());
        is_well
    })
}

/// Makes room for so many bytes; where it is.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    PAGE.with_borrow_mut(|state| {
        state.room = vec![0; bytes];
        state.room.as_mut_ptr()
    })
}

/// Takes the bytes of a model's file, and a budget, which is below zero if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn open(budget: f64) -> bool {
    answer(|state, bytes| {
        // The page has one model as long as it lives.
        let model: &'static Model = Box::leak(Box::new(Model::from_bytes(&bytes)?));
        let (case, told) = page::open(model, (budget >= 0.0).then_some(budget))?;
        state.case = Some(case);
        Ok(told.to_string())
    })
}

/// Takes what the page says about the case.
#[unsafe(no_mangle)]
pub extern "C" fn say() -> bool {
    answer(|state, bytes| {
        let Some(case) = &mut state.case else { return Ok("null".into()) };
        Ok(page::say(case, &String::from_utf8_lossy(&bytes))?.to_string())
    })
}

/// Where the text is that answers the last call.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    PAGE.with_borrow(|state| state.text.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn text_len() -> usize {
    PAGE.with_borrow(|state| state.text.len())
}
