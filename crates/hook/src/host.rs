//! The host language, as its front end registered it.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use hermetic_abi::{look, Host as Table, Place, PlaceText};
use hermetic_engine::host::Host;

static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());

/// Registers a host. The table is copied and lives for ever; there is one per front end and process.
pub fn register(table: Table) {
    TABLE.store(Box::into_raw(Box::new(table)), Ordering::Release);
}

/// Without a front end, in a program that was started by one: CPython is recognised by a function of its C API, which is all
/// that waits need.
pub fn discover() {
    if table().is_some() {
        return;
    }
    let Some(address) = hermetic_sys::symbol::global(c"PyGILState_Check") else { return };
    type Check = unsafe extern "C" fn() -> core::ffi::c_int;
    // SAFETY: the function of that name in CPython's C API has this type and may be called from any thread.
    let check = unsafe { core::mem::transmute::<usize, Check>(address) };
    STATE.store(hermetic_sys::symbol::global(c"PyGILState_GetThisThreadState").unwrap_or(0), Ordering::Release);
    register(Table {
        size: size_of::<Table>() as u32,
        image: address as *const core::ffi::c_void,
        locks_read_clock: 0,
        is_running: Some(check),
        is_known: Some(has_state),
        place: None,
        describe: None,
        is_importing: None,
        interrupt: None,
    });
}

/// Whether a front end has registered, which refuses by itself what it can name better.
pub fn has_front_end() -> bool {
    table().is_some_and(|table| table.describe.is_some())
}

/// Tells a thread's state, in a program without a front end; zero where it is not there.
static STATE: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn has_state() -> core::ffi::c_int {
    let address = STATE.load(Ordering::Acquire);
    if address == 0 {
        return 1;
    }
    type State = unsafe extern "C" fn() -> *const core::ffi::c_void;
    // SAFETY: the function of that name in CPython's C API has this type and may be called from any thread.
    let state = unsafe { core::mem::transmute::<usize, State>(address) };
    // SAFETY: as above.
    core::ffi::c_int::from(!unsafe { state() }.is_null())
}

/// An address inside the interpreter's image, or zero.
pub fn image() -> usize {
    table().map_or(0, |table| table.image as usize)
}

/// Whether the interpreter has read the clock where it asks for a semaphore without a limit.
pub fn locks_read_clock() -> bool {
    table().is_some_and(|table| table.locks_read_clock != 0)
}

#[inline]
fn table() -> Option<&'static Table> {
    // SAFETY: null, or the address of a table that is never freed.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// The registered host, or one that never runs.
pub struct Registered;

impl Host for Registered {
    #[inline]
    fn is_running(&self) -> bool {
        let Some(ask) = table().and_then(|table| table.is_running) else { return false };
        // SAFETY: the front end's promise in `hermetic_abi::Host`: callable from any thread.
        unsafe { ask() != 0 }
    }

    fn is_known(&self) -> bool {
        // SAFETY: as above.
        table().and_then(|table| table.is_known).is_none_or(|ask| unsafe { ask() != 0 })
    }

    #[inline]
    fn place(&self) -> Option<Place> {
        self.look().1
    }

    #[inline]
    fn look(&self) -> (bool, Option<Place>) {
        let Some(ask) = table().and_then(|table| table.place) else { return (false, None) };
        let mut place = Place::default();
        // SAFETY: as above.
        let bits = unsafe { ask(&mut place) };
        (bits & look::RUNNING != 0, (bits & look::FOUND != 0).then_some(place))
    }

    fn describe(&self, place: Place, out: &mut PlaceText) -> bool {
        let Some(ask) = table().and_then(|table| table.describe) else { return false };
        // SAFETY: as above.
        unsafe { ask(place, out) != 0 }
    }

    fn is_importing(&self) -> bool {
        let Some(ask) = table().and_then(|table| table.is_importing) else { return false };
        // SAFETY: as above.
        unsafe { ask() != 0 }
    }

    fn interrupt(&self, kind: u32) {
        if let Some(act) = table().and_then(|table| table.interrupt) {
            // SAFETY: as above.
            unsafe { act(kind) };
        }
    }
}
