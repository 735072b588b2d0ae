//! Writing a journal while the test runs.

use crate::host::Host;
use crate::sites::Sites;
use hermetic_abi::PlaceText;
use hermetic_journal::{Encoder, Event, Full, Sink};
use hermetic_model::stream::Pedigree;
use std::collections::HashMap;

/// The file that a raw journal goes to. The hook library implements it over a map.
pub trait JournalFile: Sink + Send {
    fn path(&self) -> &[u8];
    /// The journal in it, as far as it was published.
    fn bytes(&self) -> &[u8];
}

/// A file of whatever kind.
pub type BoxedSink = Box<dyn JournalFile>;

/// The journal of a sandbox in record mode.
pub struct Recorder {
    sink: BoxedSink,
    encoder: Encoder,
    sites: Sites,
    /// Described call sites by their number less one; none for those that the journal has.
    unannounced: Vec<Option<Box<PlaceText>>>,
    /// The journal's numbers of threads, by pedigree.
    threads: HashMap<u64, u32>,
    is_full: bool,
}

impl Recorder {
    /// Begins a journal with this head.
    pub fn start(mut sink: BoxedSink, head: &[u8]) -> Result<Recorder, Full> {
        let encoder = Encoder::start(&mut *sink, head)?;
        let threads = HashMap::from([(Pedigree::ROOT.0, 0)]);
        Ok(Recorder { sink, encoder, sites: Sites::default(), unannounced: Vec::new(), threads, is_full: false })
    }

    /// Remembers a thread's number. Where a thread starts memory may be taken.
    pub fn name_thread(&mut self, pedigree: u64, number: u32) {
        self.threads.insert(pedigree, number);
    }

    /// The number of a thread.
    pub fn thread(&self, pedigree: u64) -> Option<u32> {
        self.threads.get(&pedigree).copied()
    }

    /// The site of the calling thread, and whether it is importing, or there by chance. The journal learns of the
    /// site with its first event: what is read there may turn out to be no reading of the program.
    #[inline]
    pub fn site(&mut self, host: &dyn Host, by_chance: bool) -> (u32, bool) {
        let Recorder { sites, unannounced, .. } = self;
        let (id, is_importing) = sites.current(host, |text| {
            unannounced.push(Some(Box::new(text.clone())));
            unannounced.len() as u32
        });
        (id, is_importing || by_chance)
    }

    /// Appends an event. After the first that found no room nothing more is written: what is there stays truthful.
    #[inline]
    pub fn append(&mut self, event: &Event<'_>) {
        if let Some(index) = event.site().and_then(|site| site.checked_sub(1)) {
            if self.unannounced.get(index as usize).is_some_and(Option::is_some) {
                self.announce(index as usize);
            }
        }
        self.write(event);
    }

    #[cold]
    fn announce(&mut self, index: usize) {
        if let Some(text) = self.unannounced[index].take() {
            self.write(&Event::Site {
                id: index as u32 + 1,
                file: text.file.as_str(),
                function: text.function.as_str(),
                line: text.line,
                importing: text.importing != 0,
            });
        }
    }

    #[inline]
    fn write(&mut self, event: &Event<'_>) {
        if !self.is_full {
            self.is_full = self.encoder.append(&mut *self.sink, event).is_err();
        }
    }

    /// The disk was full: the journal ends early.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    pub fn events(&self) -> u64 {
        self.encoder.events()
    }

    pub fn len(&self) -> u64 {
        self.encoder.len()
    }

    pub fn is_empty(&self) -> bool {
        self.encoder.is_empty()
    }

    /// Gives the sink back, with the journal in it.
    pub fn finish(self) -> BoxedSink {
        self.sink
    }
}
