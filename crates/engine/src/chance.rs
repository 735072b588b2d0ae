//! What a thread does by chance, such as what callbacks and finalizers do in a garbage collection.

use crate::host::Host;
use crate::sandbox::Sandbox;
use crate::thread::Thread;

impl Sandbox {
    /// What the thread does until [`end_chance`](Sandbox::end_chance) is no part of the program's course, as in a garbage
    /// collection: nothing ticks, and a replay neither misses it nor waits for it.
    pub fn begin_chance(&self, thread: &mut Thread, host: &dyn Host) {
        self.commit(thread, host);
        self.level(thread).begin_chance();
    }

    pub fn end_chance(&self, thread: &mut Thread, host: &dyn Host) {
        self.commit(thread, host);
        self.level(thread).end_chance();
    }
}
