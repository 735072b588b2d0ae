//! Random bytes, and the order of listings.

use crate::host::Host;
use crate::replayer::{Kind, Miss, Value};
use crate::sandbox::{lock, Mode, Sandbox, Tape};
use crate::thread::Thread;
use hermetic_abi::flag;
use hermetic_journal::{Event, Source};
use hermetic_model::stream::Purpose;

impl Sandbox {
    /// Fills the buffer. False: entropy is not part of the sandbox, ask the real source. `real` fills it for a recording,
    /// and says whether it could.
    #[inline]
    pub fn fill(
        &self,
        thread: &mut Thread,
        host: &dyn Host,
        source: Source,
        buffer: &mut [u8],
        real: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        self.commit(thread, host);
        match self.entropy_mode() {
            Mode::Off => false,
            Mode::Virtual => {
                self.stream(thread, purpose_of(source)).fill(buffer);
                true
            }
            Mode::Record => {
                if !real(buffer) {
                    return false;
                }
                let (number, by_chance) = self.level(thread).voice();
                if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
                    let (site, importing) = recorder.site(host, by_chance);
                    recorder.append(&Event::Entropy { thread: number, site, source, bytes: buffer, importing });
                }
                true
            }
            Mode::Replay => {
                self.replay_bytes(thread, host, source, buffer);
                true
            }
        }
    }

    fn replay_bytes(&self, thread: &mut Thread, host: &dyn Host, source: Source, buffer: &mut [u8]) {
        let level = self.level(thread);
        let (pedigree, by_chance) = level.replayed();
        let miss = {
            let mut tape = lock(&self.tape);
            match &mut *tape {
                Tape::Replayer(replayer) => {
                    let (site, importing) = replayer.site(host, by_chance);
                    match replayer.next(pedigree, Kind::Entropy, site, importing) {
                        Ok(Value::Bytes(range)) if range.len() == buffer.len() => {
                            buffer.copy_from_slice(replayer.bytes(range));
                            return;
                        }
                        Ok(_) => Miss::Mismatch,
                        Err(miss) => miss,
                    }
                }
                _ => Miss::Importing,
            }
        };
        self.diverge(thread, host, miss, Kind::Entropy.text(), Some(buffer.len()));
        self.stream(thread, purpose_of(source)).fill(buffer);
    }

    /// Draws from the sandbox's own stream, whatever the mode; for front ends that seed something of theirs.
    pub fn draw(&self, thread: &mut Thread, purpose: Purpose, buffer: &mut [u8]) {
        self.stream(thread, purpose).fill(buffer);
    }

    /// Puts the names of a directory into the order that the program shall see.
    pub fn order<'n, T>(&self, thread: &mut Thread, host: &dyn Host, names: &mut [T], name: impl Fn(&T) -> &'n [u8]) {
        self.commit(thread, host);
        match self.order_mode() {
            Mode::Off => {}
            Mode::Virtual => {
                names.sort_unstable_by(|left, right| name(left).cmp(name(right)));
                if self.has(flag::ORDER_CHAOS) {
                    let stream = self.stream(thread, Purpose::Order);
                    // Fisher and Yates.
                    for last in (1..names.len()).rev() {
                        names.swap(last, stream.below(last as u64 + 1) as usize);
                    }
                }
            }
            // The caller has the names as one text, and hands it to `record_listing`.
            Mode::Record => {}
            Mode::Replay => self.replay_order(thread, host, names, name),
        }
    }

    /// Writes down in which order a directory was listed; `names` are separated by NUL.
    pub fn record_listing(&self, thread: &mut Thread, host: &dyn Host, names: &[u8]) {
        self.commit(thread, host);
        let (number, by_chance) = self.level(thread).voice();
        if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
            let (site, importing) = recorder.site(host, by_chance);
            recorder.append(&Event::Listing { thread: number, site, names, importing });
        }
    }

    /// What was recorded comes in the recorded order; what is new comes after it, sorted.
    fn replay_order<'n, T>(
        &self,
        thread: &mut Thread,
        host: &dyn Host,
        names: &mut [T],
        name: impl Fn(&T) -> &'n [u8],
    ) {
        let level = self.level(thread);
        let (pedigree, by_chance) = level.replayed();
        let miss = {
            let mut tape = lock(&self.tape);
            match &mut *tape {
                Tape::Replayer(replayer) => {
                    let (site, importing) = replayer.site(host, by_chance);
                    match replayer.next(pedigree, Kind::Listing, site, importing) {
                        Ok(Value::Listing(listing)) => {
                            let rank = |entry: &T| replayer.rank(listing, name(entry));
                            names.sort_unstable_by(|left, right| {
                                rank(left).cmp(&rank(right)).then_with(|| name(left).cmp(name(right)))
                            });
                            return;
                        }
                        Ok(_) => Miss::Mismatch,
                        Err(miss) => miss,
                    }
                }
                _ => Miss::Importing,
            }
        };
        names.sort_unstable_by(|left, right| name(left).cmp(name(right)));
        self.diverge(thread, host, miss, Kind::Listing.text(), None);
    }
}

fn purpose_of(source: Source) -> Purpose {
    match source {
        Source::Openssl => Purpose::Openssl,
        _ => Purpose::Application,
    }
}
