//! A fixed-size table of records in our own memory, handed out without malloc.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::OnceLock;

/// Records of type `T`, all zero at first, that never move. `T` must be valid when all its bytes are zero.
pub struct Arena<T> {
    memory: OnceLock<usize>,
    capacity: usize,
    /// Low half: head of the free list (index + 1); high half: a counter against the ABA problem.
    free: AtomicU64,
    used: AtomicU64,
    marker: core::marker::PhantomData<fn() -> T>,
}

/// A record and the link of the free list.
#[repr(C)]
struct Cell<T> {
    next: AtomicU64,
    value: T,
}

impl<T> Arena<T> {
    pub const fn new(capacity: usize) -> Arena<T> {
        Arena {
            memory: OnceLock::new(),
            capacity,
            free: AtomicU64::new(0),
            used: AtomicU64::new(0),
            marker: core::marker::PhantomData,
        }
    }

    /// Reserves the memory. Called while attaching.
    pub fn prepare(&self) -> io::Result<()> {
        if self.memory.get().is_none() {
            let data = crate::map::zeroed(self.capacity * size_of::<Cell<T>>())?;
            let _ = self.memory.set(data as usize);
        }
        Ok(())
    }

    /// A record for the caller alone, or `None` when all are taken. It holds what its last owner left there.
    pub fn take(&self) -> Option<*mut T> {
        let cell = self.take_free().or_else(|| self.take_fresh())?;
        // SAFETY: `cell` is inside the arena's memory, so the field's address is too.
        Some(unsafe { &raw mut (*cell).value })
    }

    /// Gives a record back.
    ///
    /// # Safety
    /// `record` came from `take` of this arena and is not used afterwards.
    pub unsafe fn give_back(&self, record: *mut T) {
        let Some(&memory) = self.memory.get() else { return };
        let offset = core::mem::offset_of!(Cell<T>, value);
        let index = (record as usize - offset - memory) / size_of::<Cell<T>>();
        let cell = (memory as *mut Cell<T>).wrapping_add(index);
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            // SAFETY: the caller owns the record, hence its cell.
            unsafe { (*cell).next.store(head & 0xffff_ffff, Ordering::Relaxed) };
            let new = (head >> 32).wrapping_add(1) << 32 | (index as u64 + 1);
            match self.free.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(seen) => head = seen,
            }
        }
    }

    fn take_free(&self) -> Option<*mut Cell<T>> {
        let memory = *self.memory.get()?;
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let index = (head & 0xffff_ffff).checked_sub(1)?;
            let cell = (memory as *mut Cell<T>).wrapping_add(index as usize);
            // SAFETY: the cell is inside the arena; its link may be stale, which the counter in `head` detects.
            let next = unsafe { (*cell).next.load(Ordering::Relaxed) };
            let new = (head >> 32).wrapping_add(1) << 32 | next;
            match self.free.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(cell),
                Err(seen) => head = seen,
            }
        }
    }

    fn take_fresh(&self) -> Option<*mut Cell<T>> {
        let memory = *self.memory.get()?;
        let index = self.used.fetch_add(1, Ordering::Relaxed);
        if index >= self.capacity as u64 {
            self.used.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some((memory as *mut Cell<T>).wrapping_add(index as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::Arena;

    #[test]
    fn records_are_distinct_bounded_and_used_again() {
        let arena = Arena::<u64>::new(3);
        arena.prepare().expect("memory");
        let taken: Vec<_> = (0..3).map(|_| arena.take().expect("room") as usize).collect();
        assert!(arena.take().is_none());
        assert_eq!(taken.iter().collect::<std::collections::HashSet<_>>().len(), 3);
        // SAFETY: taken above, not used afterwards.
        unsafe { arena.give_back(taken[1] as *mut u64) };
        assert_eq!(arena.take().map(|record| record as usize), Some(taken[1]));
    }

    #[test]
    fn threads_never_share_a_record() {
        static ARENA: Arena<std::sync::atomic::AtomicU32> = Arena::new(64);
        ARENA.prepare().expect("memory");
        let work = || {
            for _ in 0..10_000 {
                let record = ARENA.take().expect("at most eight are out");
                // SAFETY: the record is this thread's own until it is given back.
                let count = unsafe { (*record).fetch_add(1, std::sync::atomic::Ordering::AcqRel) };
                assert_eq!(count, 0);
                // SAFETY: as above.
                unsafe { (*record).store(0, std::sync::atomic::Ordering::Release) };
                // SAFETY: taken above, not used afterwards.
                unsafe { ARENA.give_back(record) };
            }
        };
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
    }
}
