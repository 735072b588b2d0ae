//! Any bytes: decoding never panics, and what decodes can be shown, checked, compared, kept in each form and read back.

#![no_main]

use hermetic_journal::{diff, finish, timeline, verify, Form, Journal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(journal) = Journal::decode(bytes) else { return };
    verify(&journal);
    timeline::write(&journal, timeline::Layout { width: Some(80), ..Default::default() }, &mut std::io::sink()).unwrap();
    let events: Vec<_> = journal.events().collect();
    assert_eq!(events.len() as u64, journal.event_count());
    for form in [Form::BINARY, Form::READABLE] {
        let kept = finish(journal.raw(), form).unwrap();
        let again = Journal::decode(&kept).unwrap();
        assert_eq!(again.events().collect::<Vec<_>>(), events);
        assert!(diff(&journal, &again).is_same());
    }
});
